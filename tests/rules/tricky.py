"""Rules that are easily misread, over one table, and rows that tell their meanings apart."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

SCHEMA = (
    "id INT, a INT, b INT, n BIGINT, f FLOAT, x DOUBLE, price DECIMAL(38, 10), s STRING, "
    "note STRING, d DATE, ts TIMESTAMP, ok BOOLEAN, "
    "address STRUCT<zip: STRING, geo: STRUCT<lat: DOUBLE>>, arr ARRAY<INT>, "
    "items ARRAY<STRUCT<sku: STRING, amount: INT>>, m MAP<STRING, INT>, raw BINARY, "
    "`order` INT, user STRING, date DATE, `a.b` INT, `größe` DOUBLE, `it``s` INT, `order id` INT, "
    "`CASE` INT"
)

_FULL: dict[str, Any] = {
    "a": 3,
    "b": 2,
    "n": 1 << 40,
    "f": 1.5,
    "x": -0.5,
    "price": Decimal("12.5000000000"),
    "s": "It's",
    "note": "a\\b%c\td",
    "d": date(2024, 2, 29),
    "ts": datetime(2024, 2, 29, 12, 30),
    "ok": True,
    "address": ("10115", (52.5,)),
    "arr": [1, 2, 3],
    "items": [("x-1", 2)],
    "m": {"k": 5, "ok": 1},
    "raw": b"\x1f",
    "order": 1,
    "user": "root",
    "date": date(2020, 1, 1),
    "a.b": 7,
    "größe": 1.75,
    "it`s": 4,
    "order id": 9,
    "CASE": 1,
}
_EMPTY: dict[str, Any] = dict.fromkeys(_FULL)


def rows() -> list[tuple[Any, ...]]:
    """Rows in which each column takes several values, NULL and the awkward ones among them."""
    changes: list[dict[str, Any]] = [
        {},
        {"a": -1, "b": 0, "s": "Its", "note": "", "ok": False, "x": float("nan")},
        {"a": 1, "s": "its", "note": "a%", "x": float("inf"), "f": float("-inf"), "raw": b""},
        {
            "a": 0,
            "s": "ab",
            "note": 'say "x"',
            "arr": [0],
            "items": [("", None)],
            "m": {},
            "price": None,
        },
        {"a": 5, "s": "a b", "note": "${x}", "address": (None, (None,)), "user": "nobody"},
        {"a": 7, "s": "-1", "note": "a\nb", "address": None, "d": date(1, 1, 1), "order": None},
        {"a": 99_999_999, "s": "é😀", "note": "--", "n": -(2**63), "b": None},
        {"a": 6, "s": "12345", "note": "\\d", "price": Decimal("9" * 28 + "." + "9" * 10)},
        {"a": None, "s": None, "arr": None, "ok": None, "x": None, "a.b": None, "d": None},
        {"a": 8, "s": "A", "note": "a/*b*/c", "b": 3, "order": 5, "date": date(2025, 1, 1)},
        _EMPTY,
    ]
    return [
        (number, *{**_FULL, **change}.values()) for number, change in enumerate(changes, start=1)
    ]


RULES = [
    # precedence
    "a > 0 OR b > 0 AND ok",
    "a = b IS NULL",
    "a < b = ok",
    "NOT a = b AND ok",
    "! a = b",
    "!(a > 0) OR !ok",
    "NOT NOT ok",
    "a - b - 1 > 0 AND a - (b - 1) > 0",
    "a & 1 | b ^ 2 = 3",
    "1 || abs(a) + 1 = 14",
    "a BETWEEN 0 AND 5 AND b NOT BETWEEN 5 AND 6",
    "(a + 1 IN (4, 0)) IS NOT NULL",
    # operators
    "a == 3 OR a <> b",
    "a <=> b OR a !< 3 OR a !> -1",
    "a % 2 = 1 AND a div 2 < 3 AND a / 2 != 0.5",
    "a -1 > 0 AND a - -1 > 0 AND - a < 0 AND -a-1 < 0",
    "~a = -4 OR +a = 1 OR - - a = 5",
    "a >> 1 = 1 OR a << 2 > 20 OR n >>> 3 > 0",
    "a + 1 >> 1 & 1 = 0",
    "s || note = 'Its' OR s||'x' <> 'ax'",
    "a IS DISTINCT FROM b AND ok IS NOT FALSE",
    "(a > b) IS UNKNOWN OR (a > b) IS TRUE",
    # casts
    "a::string = '3' OR s::string IS NULL",
    "-1::string = s OR -a::string = '-5'",
    "CAST(a AS DECIMAL(10, 2)) > 1.50BD AND TRY_CAST(s AS INT) IS NULL",
    "try_cast(s as integer) = -1 OR cast(a as long) > 0L",
    "CAST(arr AS ARRAY<STRING>)[0] = '1'",
    "CAST(ARRAY(ARRAY(a)) AS ARRAY<ARRAY<STRING>>)[0][0] = '3'",
    "CAST(NAMED_STRUCT('p', a) AS STRUCT<q: STRING>).q = '3'",
    # literals
    "a > 1e0 AND x < 1.0E+3D AND n <> 100L AND a <> 7S AND a <> 8Y",
    "f < 1.75F OR f > 1e-3f OR f = -1.5F",
    "price > .5 AND price < 1. + 1e20BD",
    "d >= date '2020-01-01' AND d < DATE'2100-01-01'",
    "ts > timestamp '2020-01-01 00:00:00' + interval 1 day 2 hours",
    "ts > TIMESTAMP'2020-01-01' - INTERVAL '1-2' YEAR TO MONTH",
    "d > date '2020-01-01' + INTERVAL '-3' DAY AND d <> date '2020-01-04' - interval -1 day",
    "raw = X'1F' OR raw = x''",
    "ok = TRUE OR ok IS NULL AND NULL IS NULL",
    # strings
    "s = 'It''s' OR s = 'It\\'s'",
    "s = 'It' 's' OR s = 'a' \"b\"",
    's = "It\'s" OR note = "say ""x"""',
    "s RLIKE r'^\\d+$' OR note = r'\\d'",
    "s RLIKE '^\\\\d+$' OR s REGEXP \"^[A-Z]$\"",
    "note LIKE 'a\\%%' OR note LIKE 'a!%' ESCAPE '!' OR note LIKE '%/*b*/%'",
    "s NOT LIKE ANY ('I%', '%b') AND note NOT ILIKE ALL ('A%')",
    "note = 'a\\\\b' OR note = 'a\\tb' OR note = 'a\\nb' OR note = 'a\nb'",
    "s = '\\u00e9\\U0001F600' OR s = '\\101' OR note = '--'",
    "s = 'é😀' OR s < '\\\\' OR note = 'a\\\\b%c\\td'",
    "s COLLATE UTF8_LCASE = 'ITS' -- case does not matter",
    "/* why */ s != 'a -- b' /* because */ AND a > 0",
    # names
    "`order` > 0 AND order < 5",
    "user = 'root' AND `user` <> 'x'",
    "date >= '2020-01-01' AND date < current_date",
    "`a.b` > 0 AND `it``s` = 4 AND `order id` = 9",
    "`größe` > 1 AND `GRÖßE` < 2",
    "`CASE` = 1 AND A > 0 AND `B` < 3",
    "address.zip = '10115' AND Address.Geo.`lat` > 50",
    "arr[0] = 1 AND m['k'] = 5 AND m.ok = 1 AND items[0].sku LIKE 'x%'",
    "items.amount[0] > 1 AND struct(a AS q, b).q = 3",
    # functions
    "CASE WHEN a > 1 THEN ok WHEN b = 0 THEN NOT ok ELSE a = 1 END",
    "CASE a WHEN 3 THEN TRUE WHEN 1 THEN b > 1 END AND CASE WHEN ok THEN 1 END = 1",
    "if(a > 1, ok, b = 2) AND coalesce(a, b, 0) >= 0",
    "left(s, 2) = 'It' OR right(s, 1) = 'b'",
    "EXTRACT(YEAR FROM d) = 2024 AND year(d) > 2000",
    "trim(BOTH 'I' FROM s) = 't\\'s' OR trim('a' FROM s) = 'b' OR trim(s) = 'A'",
    "trim(LEADING FROM s) <> 'a' AND substring(s FROM 1 FOR 2) <> 'ab' AND substr(s, 2) <> 'x'",
    "position('b' IN s) > 0 OR overlay(s PLACING 'x' FROM 2 FOR 1) = 'xx' OR locate('a', s) = 1",
    "dateadd(DAY, 1, d) > d AND date_add(d, 1) > d AND timestampdiff(HOUR, ts, ts) = 0",
    "(a, b) IN ((3, 2), (1, 2)) AND a NOT IN (5, 6) AND NOT a IN (7)",
    "array_contains(arr, 2) AND size(m) > 1 AND `abs`(a) = 3",
    "current_timestamp > ts AND now() > ts AND d < CURRENT_DATE()",
]
"""Each is put to Spark as it stands, and compared with what becomes of it in Delta."""
