"""Lints about writers other than Spark: what delta-rs makes of the stored text.

From runs of delta-rs (the ``deltalake`` package 1.6.6) on tables with these constraints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from deltacheck.lint.facts import column_key, path_of
from deltacheck.lint.finding import Remark
from deltacheck.lint.subjects import Constraint, columns_of, literals, without_literals
from deltacheck.rules.model import Kind

_LACKING = frozenset(
    re.findall(
        r"\w+",
        """add_months array date date_add date_sub datediff day dayofmonth dayofweek endswith
    equal_null hash hour if int isnotnull isnull last_day lcase len locate mod month
    months_between pmod quarter regexp regexp_extract rlike sha2 shiftleft shiftright sign size
    split startswith string ucase unix_timestamp weekday year""",
    )
)
"""Functions of Spark that delta-rs 1.6.6 says it does not know."""

_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")


def read_otherwise(constraint: Constraint) -> Iterator[Remark]:
    r"""delta-rs reads the stored text otherwise than Spark.

    The same constraint then means something else to a writer that is not Spark: a backslash
    in a string is just a backslash to it, and `/` between whole numbers drops the remainder.
    (So do strings in double quotes and strings side by side, which deltacheck rewrites.)
    Nothing to do where only Spark writes.

        check: code LIKE 'a\\_%'      # to delta-rs: a, two backslashes, _, anything
        check: total / pieces > 0.5  # to delta-rs: never true for 1 / 2
        check: total > 0.5 * pieces
    """
    if not constraint.enforced:
        return
    if any("\\" in text for text in literals(constraint.stored)):
        yield Remark(
            "A string has a backslash in it, which delta-rs takes as it stands.",
            "Say it without one, if delta-rs writes to this table.",
        )
    if constraint.tree.find(exp.Div):
        yield Remark(
            "`/` between whole numbers drops the remainder in delta-rs and keeps it in Spark.",
            "Multiply instead, or CAST one side to DOUBLE or DECIMAL.",
        )


def not_readable(constraint: Constraint) -> Iterator[Remark]:
    """delta-rs cannot read the stored text.

    Every write by delta-rs to this table then fails. Nothing to do where only Spark writes.

    It lacks `DIV`, `RLIKE` and `REGEXP`, and functions such as `year`, `size`,
    `startswith` and `isnull`; and it tells the case of columns apart.

        check: year(placed_on) >= 2020
        check: extract(YEAR FROM placed_on) >= 2020
    """
    if not constraint.enforced:
        return
    if constraint.kind is Kind.CHECK:
        text = without_literals(constraint.stored)
        words = [f"{name}()" for name in _CALL.findall(text) if name.lower() in _LACKING]
        words += re.findall(r"\b(?:RLIKE|REGEXP|DIV)\b(?!\s*\()", text, re.IGNORECASE)
        if words:
            yield Remark(
                f"delta-rs does not know {', '.join(dict.fromkeys(words))}: its writes to this "
                "table will fail.",
                "Say it in other words, if delta-rs writes to this table.",
            )
    for column in columns_of(constraint.tree):
        written = ".".join(path_of(column))
        spelled = constraint.spellings.get(column_key(column), written)
        if spelled != written:
            yield Remark(
                f"The table spells the column {written} as {spelled}; delta-rs tells case apart, "
                "and its writes to this table will fail.",
                f"Write {spelled}.",
            )
