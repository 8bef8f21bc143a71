"""The words that Spark's grammar gives a meaning inside an expression (``SqlBaseParser.g4``), and
the names of its types."""

from __future__ import annotations

import re

from deltacheck.names import quote


def words(text: str) -> frozenset[str]:
    """The words of ``text``, as a set."""
    return frozenset(text.split())


_SIMPLE_TYPES = """
    BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DECIMAL DATE TIME TIMESTAMP TIMESTAMP_LTZ
    TIMESTAMP_NTZ STRING CHAR VARCHAR BINARY VARIANT
"""

TYPES = {
    **{word: word for word in words(_SIMPLE_TYPES)},
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "CHARACTER": "CHAR",
}
"""The names of simple types, and the one that each is short for."""

COMPLEX_TYPES = frozenset({"ARRAY", "MAP", "STRUCT"})

LITERAL_TYPES = words("DATE TIME TIMESTAMP TIMESTAMP_LTZ TIMESTAMP_NTZ INTERVAL X")
"""What may stand before a string and give it a type."""

UNITS = words("YEAR QUARTER MONTH WEEK DAY DAYOFYEAR HOUR MINUTE SECOND MILLISECOND MICROSECOND")
"""Units of time."""

INTERVAL_UNIT = re.compile(
    "(YEAR|MONTH|WEEK|DAY|HOUR|MINUTE|SECOND|MILLISECOND|MICROSECOND|NANOSECOND)S?"
)

UNIT_FIRST = words("DATEADD DATEDIFF DATE_ADD DATE_DIFF TIMEDIFF TIMESTAMPADD TIMESTAMPDIFF")
"""Functions whose first argument, of three, is a unit of time."""

CONNECTIVES = {
    "EXTRACT": ("FROM",),
    "OVERLAY": ("PLACING", "FROM", "FOR"),
    "POSITION": ("IN",),
    "SUBSTR": ("FROM", "FOR"),
    "SUBSTRING": ("FROM", "FOR"),
    "TRIM": ("FROM",),
}
"""Functions that may have words between their arguments instead of commas."""

OPERATOR_WORDS = words(
    "AND AS BETWEEN DIV ELSE ESCAPE ILIKE IN IS LIKE NOT OR REGEXP RLIKE THEN WHEN"
)
"""Words that never begin a value."""

WINDOW_WORDS = words("DISTINCT FILTER IGNORE OVER RESPECT WITHIN")

QUERY_WORDS = words("EXCEPT FROM GROUP HAVING INTERSECT LIMIT ORDER SELECT UNION WHERE")

RESERVED = OPERATOR_WORDS | words("""
        ALL ANTI ANY ARRAY AUTHORIZATION BOTH CASE CAST CHECK COLLATE COLLATION COLUMN CONSTRAINT
        CREATE CROSS CURRENT_DATE CURRENT_PATH CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER
        DISTINCT END EXCEPT EXECUTE EXISTS FALSE FETCH FILTER FOR FOREIGN FROM FULL GRANT GROUP
        HAVING IDENTIFIER INNER INTERSECT INTERVAL INTO JOIN LATERAL LEADING LEFT MAP MINUS
        NATURAL NULL
        OFFSET ON ONLY ORDER OUTER OVER OVERLAPS PRIMARY REDUCE REFERENCES RIGHT SELECT SEMI
        SESSION_USER SOME SQL STRUCT TABLE TIME TO TRAILING TRUE TRY_CAST UNION UNIQUE UNKNOWN USER
        USING VALUES WHEN WHERE WITH WITHIN
        """)
"""Words that a column's name is quoted for, whatever the session reserves: those of ANSI mode,
and those that this grammar reads."""


def spelled(identifier: str) -> str:
    """The identifier as SQL, between back-quotes where it could be read otherwise.

    >>> spelled("amount"), spelled("order"), spelled("2nd")
    ('amount', '`order`', '`2nd`')
    """
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", identifier)
    return identifier if plain and identifier.upper() not in RESERVED else quote(identifier)


OTHER_TYPE_NAMES = {
    "byte": "tinyint",
    "dec": "decimal",
    "integer": "int",
    "long": "bigint",
    "numeric": "decimal",
    "real": "float",
    "short": "smallint",
    "timestamp_ltz": "timestamp",
}
"""Other names that Spark takes for its types, to those that a schema shows."""
