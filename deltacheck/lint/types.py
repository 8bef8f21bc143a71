"""A lint about types: when comparing makes Spark convert the column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from deltacheck.lint.expressions import COMPARISONS
from deltacheck.lint.facts import column_key, path_of
from deltacheck.lint.finding import Remark
from deltacheck.lint.subjects import Constraint, code, shown
from deltacheck.rules.words import OTHER_TYPE_NAMES

_WHOLE = {"tinyint": 0, "smallint": 1, "int": 2, "bigint": 3}
_NUMBERS = (*_WHOLE, "decimal", "float", "double")
_TIMES = {"date": 0, "timestamp_ntz": 1, "timestamp": 2}
_TEXTS = ("string", "char", "varchar")


@dataclass(frozen=True)
class Literal:
    """What a literal is to Spark.

    Attributes:
        type: Its type, without precision.
        whole: The digits before the point, for numbers.
        fraction: The digits after it.
    """

    type: str
    whole: int = 0
    fraction: int = 0


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
        left, right = node.this, node.args["expression"]
        for one, other in ((left, right), (right, left)):
            literal = literal_of(other)
            if literal is None:
                continue
            column = constraint.types.get(column_key(one), "")
            if isinstance(one, exp.Cast) and path_of(one.this):
                yield Remark(
                    f"{code(shown(one))} converts the column before it is compared, so Delta "
                    "cannot skip files.",
                    "Compare the column itself, with a literal of its type.",
                )
            elif column and converts(column, literal):
                yield Remark(
                    f"{shown(one)} is {column.upper()} and {shown(other)} is "
                    f"{literal.type.upper()}: Spark converts the column, so Delta cannot skip "
                    "files.",
                    f"Write the literal as {column.upper()}.",
                )


def literal_of(tree: exp.Expr) -> Literal | None:
    """The literal that an expression is, or None.

    >>> from sqlglot import parse_one
    >>> literal_of(parse_one("-10.5", dialect="spark"))
    Literal(type='decimal', whole=2, fraction=1)
    """
    if isinstance(tree, (exp.Neg, exp.Paren)):
        return literal_of(tree.this)
    if isinstance(tree, exp.Boolean):
        return Literal("boolean")
    if isinstance(tree, exp.Cast) and (inner := literal_of(tree.this)) is not None:
        kind = _name(tree.to.sql(dialect="spark"))
        if kind == "decimal" and inner.type == "string":  # what 10.5BD is to sqlglot
            inner = _number(tree.this.name) or inner
        return replace(inner, type=kind)
    if not isinstance(tree, exp.Literal):
        return None
    return Literal("string") if tree.is_string else _number(tree.name)


def _number(text: str) -> Literal | None:
    match = re.fullmatch(r"0*(\d*)(?:\.(\d*))?([eE].*)?", text)
    if match is None:
        return None
    whole, fraction, exponent = match.groups()
    if exponent:
        return Literal("double")
    if fraction is not None:
        return Literal("decimal", len(whole), len(fraction))
    value = int(whole or "0")
    kind = "int" if value < 2**31 else "bigint" if value < 2**63 else "decimal"
    return Literal(kind, len(whole))


def _name(kind: str) -> str:
    """A type without its precision, by one of its names."""
    bare = kind.partition("(")[0].strip().lower()
    return OTHER_TYPE_NAMES.get(bare, bare)


def converts(column: str, literal: Literal) -> bool:
    """Whether Spark converts the column, not the literal, to compare the two.

    As Spark 4.2 analyses it in ANSI mode.

    >>> converts("INT", Literal("bigint", 2)), converts("BIGINT", Literal("int", 2))
    (True, False)

    Args:
        column: The column's type, as DESCRIBE shows it.
        literal: The literal.
    """
    kind = _name(column)
    if kind in _TEXTS:
        return literal.type != "string"
    if literal.type == "string":
        return kind in ("tinyint", "smallint", "int", "float", "decimal")
    if kind in _TIMES:
        return _TIMES.get(literal.type, -1) > _TIMES[kind]
    if literal.type not in _NUMBERS:
        return False
    if kind in _WHOLE:
        if literal.type == "decimal":
            return kind != "bigint"
        return _WHOLE.get(literal.type, 4) > _WHOLE[kind]
    if kind == "decimal":
        precision, scale = _precision(column)
        if literal.type not in (*_WHOLE, "decimal"):
            return True
        return literal.whole > precision - scale or literal.fraction > scale
    return kind == "float" and literal.type != "float"


def _precision(decimal: str) -> tuple[int, int]:
    """The digits in all and those after the point."""
    match = re.search(r"\((\d+)(?:\s*,\s*(\d+))?\)", decimal)
    return (int(match[1]), int(match[2] or 0)) if match else (10, 0)
