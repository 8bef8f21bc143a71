"""Ten simulated days of the worked example, three of which are wrong."""

from __future__ import annotations

from collections.abc import Callable

DOUBLED = 8

WRONG: dict[int, Callable[[str], str]] = {
    6: lambda rows: f"SELECT * FROM ({rows}) WHERE order_id % 2 = 0",
    7: lambda rows: (
        "SELECT order_id, customer_id, CAST(IF(country = 'FR', amount * 100, amount) AS "
        f"DECIMAL(10, 2)) AS amount, status, ordered_on, country FROM ({rows})"
    ),
    DOUBLED: lambda rows: f"{rows} UNION ALL {rows}",
}
"""Half a file, a country in cents, and a retry that doubled the orders."""


def right(number: int) -> str:
    """SQL for the orders of a day as they should be: about a hundred, placed yesterday."""
    return (
        f"SELECT id + {10_000 + number * 1000} AS order_id, id % 7 + 1 AS customer_id, "
        "CAST(60 + id % 7 AS DECIMAL(10, 2)) AS amount, IF(id % 5 = 0, 'paid', 'placed') AS "
        "status, current_date() - INTERVAL 1 DAY AS ordered_on, "
        "element_at(array('DE', 'FR', 'IE'), CAST(id % 3 AS INT) + 1) AS country "
        f"FROM range({rows_of(number)})"
    )


def came(number: int) -> str:
    """SQL for the orders of a day as they came in."""
    change = WRONG.get(number)
    return right(number) if change is None else change(right(number))


def put_right(number: int) -> str:
    """SQL that leaves each order of a day once: what stays in the table stays wrong."""
    since = f"order_id >= {10_000 + number * 1000}"
    return f"INSERT INTO shop.orders REPLACE WHERE {since} {right(number)}"


def rows_of(number: int) -> int:
    """How many orders there are on a day."""
    return 100 + number * 7 % 5


A_DAY_PASSES = "UPDATE shop.orders SET ordered_on = ordered_on - INTERVAL 1 DAY"
"""Makes yesterday's orders those of the day before: a check knows no clock but Spark's."""
