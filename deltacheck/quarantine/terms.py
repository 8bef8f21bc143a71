"""What people write about quarantined rows: conditions, and repairs such as ``amount = 0``.

Read by the grammar of rules, so each is about one row and holds no sub-query, and respelled over
the columns of the quarantine, where a column of the source can have another name. Knows no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from deltacheck.errors import ExpressionError
from deltacheck.names import TableName
from deltacheck.rules.grammar import parse
from deltacheck.rules.nodes import Form, Node, sql
from deltacheck.rules.tokens import Kind, NotARuleError, Token, tokenize


@dataclass(frozen=True)
class Term:
    """An expression about one row, as a value."""

    text: str
    _root: Node = field(compare=False, repr=False)

    def over(self, values: Mapping[str, str]) -> str:
        """The SQL of the expression with other expressions in the place of columns.

        Args:
            values: Column, in lower case, to the SQL of its value; a column that is not among
                them stays as it is.

        >>> condition("Amount > 0 AND a.amount = 1").over({"amount": "coalesce(x, y)"})
        '(coalesce(x, y)) > 0 AND a.amount = 1'
        """
        return sql(_respelled(self._root, values))


@dataclass(frozen=True)
class Repair:
    """A new value for a column: ``column = expression``."""

    column: str
    value: Term


def condition(text: str, table: TableName | None = None) -> Term:
    """Read a condition, such as one given with ``--where``.

    Raises:
        ExpressionError: It is not one boolean expression about one row.
    """
    try:
        return Term(text, parse(text))
    except NotARuleError as refusal:
        raise _refused("The condition", refusal, refusal.position, table) from None


def rule_term(text: str) -> Term | None:
    """Read the expression of a constraint; None where it is not one that a rule can have."""
    try:
        return Term(text, parse(text))
    except NotARuleError:
        return None


def repair(text: str, table: TableName | None = None) -> Repair:
    """Read a repair, such as one given with ``--set``.

    >>> repair("`unit price` = abs(price)").column
    'unit price'

    Raises:
        ExpressionError: It is not ``column = expression``, or the expression is not about one
            row.
    """
    try:
        column, equals, *_ = tokenize(text)
    except NotARuleError as refusal:
        raise _refused("The repair", refusal, refusal.position, table) from None
    if column.kind not in (Kind.WORD, Kind.NAME) or equals.text != "=":
        raise ExpressionError(
            f"{_of('A repair', table)} must be a column, an equals sign and an expression; "
            "nothing was done.",
            hint="For example: amount = abs(amount). A field of a struct is repaired by setting "
            "the whole column.",
            table=None if table is None else str(table),
        )
    start = equals.start + 1
    try:
        # Any value will do here, and the grammar reads one inside a predicate.
        root = parse(f"({text[start:]}\n) IS NOT NULL")
    except NotARuleError as refusal:
        where = refusal.position - 1 + start
        raise _refused("The repair", refusal, where, table) from None
    value = next(root.nodes)
    if root.form is not Form.PREDICATE or value.form is not Form.PARENTHESES:
        raise ExpressionError(
            f"{_of('The repair', table)} of {column.value or column.text} is not one expression; "
            "nothing was done.",
            hint="Repair each column with a --set of its own.",
            table=None if table is None else str(table),
        )
    return Repair(column.value or column.text, Term(text[start:].strip(), value))


def _respelled(node: Node, values: Mapping[str, str]) -> Iterator[Token]:
    tokens = iter(node.parts)
    if node.form is Form.COLUMN:
        first = next(tokens)
        assert isinstance(first, Token), "a column begins with a name"
        value = values.get((first.value or first.text).lower())
        yield first if value is None else Token(Kind.NAME, f"({value})", first.start)
    for part in tokens:
        if isinstance(part, Node):
            yield from _respelled(part, values)
        else:
            yield part


def _refused(
    what: str, refusal: NotARuleError, position: int, table: TableName | None
) -> ExpressionError:
    return ExpressionError(
        f"{_of(what, table)} {refusal.reason} (character {position + 1}); nothing was done.",
        hint=refusal.hint,
        table=None if table is None else str(table),
    )


def _of(what: str, table: TableName | None) -> str:
    return what if table is None else f"{what} on the quarantine of {table}"
