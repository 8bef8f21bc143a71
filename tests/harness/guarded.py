"""Rules whose parts keep each other from failing, and rows that tell whether they do."""

from __future__ import annotations

from collections.abc import Mapping

COLUMNS = "a INT, b INT"

ROWS = ((0, 1), (5, 2), (20, 3), (2, 4), (0, -1), (2, -1))
"""Rows of ``COLUMNS``. Each guard is for those with ``a = 0``."""

VALUES = ", ".join(map(str, ROWS))
"""The same, as after VALUES."""

RULES: Mapping[str, Mapping[str, str]] = {
    "two rules": {"large": "a = 0 OR 10 DIV a > 1", "small": "a = 0 OR 10 DIV a < 100"},
    "one rule twice": {"large": "a = 0 OR (10 DIV a > 1 AND 10 DIV a < 100)"},
    "and after or": {
        "large": "(a = 0 OR 10 DIV a > 1) AND b > 0",
        "small": "(a = 0 OR 10 DIV a < 100) AND b > 0",
    },
    "case": {
        "large": "CASE WHEN a = 0 THEN true WHEN 10 DIV a > 100 THEN false "
        "ELSE 10 DIV a > 1 END AND b > 0"
    },
}
"""What is shared, and its guard, in each form in which Spark has overlooked the guard."""


def good(kind: str, row: tuple[int, int]) -> bool:
    """Whether a row breaks no rule of a kind."""
    a, b = row
    large = a == 0 or 10 // a > 1
    return large and (b > 0 or kind in ("two rules", "one rule twice"))
