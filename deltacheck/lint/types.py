"""A lint about types: when comparing makes Spark convert the column."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from deltacheck.lint.expressions import COMPARISONS
from deltacheck.lint.finding import Remark
from deltacheck.lint.subjects import Constraint, code, shown
from deltacheck.lint.truth import column_key

_RANKS = {
    "byte": 0,
    "tinyint": 0,
    "short": 1,
    "smallint": 1,
    "int": 2,
    "integer": 2,
    "long": 3,
    "bigint": 3,
    "decimal": 4,
    "float": 5,
    "real": 5,
    "double": 6,
}
_TIMES = {"date": 0, "timestamp_ntz": 1, "timestamp": 2, "timestamp_ltz": 2}


def type_differs(constraint: Constraint) -> Iterator[Remark]:
    """A literal of another type than its column.

    Spark then converts the column, row by row, and Delta can no longer skip files by their
    minimum and maximum: counting the violators reads the whole table.

    Without the column's type only an explicit CAST of the column tells.

        check: CAST(amount AS BIGINT) > 0
        check: quantity > 10L     # quantity is INT
        check: quantity > 10
    """
    for node in constraint.tree.find_all(*COMPARISONS):
        for one, other in (
            (node.this, node.args["expression"]),
            (node.args["expression"], node.this),
        ):
            literal = _literal_type(other)
            if literal is None:
                continue
            name, text = shown(one), shown(other)
            if isinstance(one, exp.Cast) and isinstance(one.this, (exp.Column, exp.Dot)):
                yield Remark(
                    f"{code(name)} converts the column before it is compared, so Delta cannot skip "
                    "files.",
                    "Compare the column itself, with a literal of its type.",
                )
            elif isinstance(one, (exp.Column, exp.Dot)):
                column = constraint.types.get(column_key(one), "").lower()
                if column and _converts(column, literal):
                    yield Remark(
                        f"{name} is {column.upper()} and is compared with {text}, which is "
                        f"{literal.upper()}: Spark converts the column, so Delta cannot skip "
                        "files.",
                        f"Write the literal as {column.upper()}.",
                    )


def _literal_type(tree: exp.Expr) -> str | None:
    """The Spark type of a literal, as DESCRIBE spells it, or None."""
    if isinstance(tree, exp.Neg):
        return _literal_type(tree.this)
    if isinstance(tree, exp.Cast) and isinstance(tree.this, (exp.Literal, exp.Neg)):
        return tree.to.sql(dialect="spark").lower()
    if not isinstance(tree, exp.Literal):
        return None
    text = tree.name
    if tree.is_string:
        return "string"
    if "e" in text.lower():
        return "double"
    if "." in text:
        whole, _, fraction = text.partition(".")
        return f"decimal({len(whole.lstrip('0')) + len(fraction)},{len(fraction)})"
    return "int" if int(text) < 2**31 else "bigint" if int(text) < 2**63 else "decimal(38,0)"


def _converts(column: str, literal: str) -> bool:
    """Whether Spark converts the column, not the literal, to compare the two."""
    if literal == "string":
        return column.split("(")[0] in _RANKS or column == "boolean"
    if column in _TIMES and literal in _TIMES:
        return _TIMES[literal] > _TIMES[column]
    if column == "string" or column.startswith(("char", "varchar")):
        return literal != "string"
    left, right = column.split("(")[0], literal.split("(")[0]
    if left not in _RANKS or right not in _RANKS:
        return False
    if left == right == "decimal":
        return _digits(literal) > _digits(column)
    if left == "float" and right == "decimal":
        return True
    return _RANKS[right] > _RANKS[left]


def _digits(decimal: str) -> int:
    """The digits after the point."""
    match = re.search(r",\s*(\d+)\)", decimal)
    return int(match[1]) if match else 0
