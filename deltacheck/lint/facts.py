"""Facts about operands that follow from a part of an expression, and whether they can all be so.

Knows constants and ranges; knows nothing of types, so values that might compare otherwise as
another type, or under another collation, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from sqlglot import exp


def path_of(tree: exp.Expr) -> tuple[str, ...]:
    """The names from a column down to a field in it; empty for anything else.

    >>> from sqlglot import parse_one
    >>> path_of(parse_one("Address.`Zip`", dialect="spark")), path_of(parse_one("a[0].b"))
    (('Address', 'Zip'), ())
    """
    if isinstance(tree, exp.Column):
        return tuple(part.name for part in tree.parts)
    if isinstance(tree, exp.Dot) and (above := path_of(tree.this)):
        return (*above, tree.expression.name)
    return ()


def column_key(tree: exp.Expr) -> str:
    """What two spellings of one column, or field, have in common; empty for anything else."""
    return ".".join(path_of(tree)).lower()


def parts_of(tree: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """What AND or OR connects, without the parentheses around it, from left to right.

    Not recursive: sqlglot nests a chain of a thousand ANDs a thousand deep.
    """
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, kind):
            waiting += (part.args["expression"], part.this)
        elif isinstance(part, exp.Paren):
            waiting.append(part.this)
        else:
            yield part


@dataclass(frozen=True)
class Value:
    """A constant that can be compared with others of its domain.

    Attributes:
        domain: ``number``, ``text``, or the form of a date or time.
    """

    domain: str
    value: Decimal | str

    def differs(self, other: Value) -> bool:
        """Whether the two are certainly not equal, whatever the type and the collation."""
        if self.domain != other.domain:
            return False
        if isinstance(self.value, str) and isinstance(other.value, str):
            return self.value.strip().casefold() != other.value.strip().casefold()
        return self.value != other.value


_TIME = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?")
_WORD = re.compile(r"[^\W\d][^\d]*")
_TRUTH = {"true", "false", "t", "f", "y", "n", "yes", "no"}
_NAMED_NUMBERS = {"nan", "inf", "infinity"}


def value_of(tree: exp.Expr) -> Value | None:
    """The constant that an expression is, or None.

    >>> from sqlglot import parse_one
    >>> value_of(parse_one("-5L", dialect="spark"))
    Value(domain='number', value=Decimal('-5'))
    """
    if isinstance(tree, exp.Paren):
        return value_of(tree.this)
    if isinstance(tree, exp.Neg):
        inner = value_of(tree.this)
        if inner is not None and isinstance(inner.value, Decimal):
            return Value("number", -inner.value)
        return None
    if isinstance(tree, exp.Cast):
        return _typed(tree)
    if not isinstance(tree, exp.Literal):
        return None
    text = str(tree.this)
    if not tree.is_string:
        return _number(text)
    if _TIME.fullmatch(text):
        return Value(f"time{len(text)}", text)
    plain = text.strip().casefold()
    if _WORD.fullmatch(plain) and plain not in _TRUTH and plain not in _NAMED_NUMBERS:
        return Value("text", text)
    return None


def _typed(tree: exp.Cast) -> Value | None:
    """A literal with a type, such as ``10L`` or ``DATE '2020-01-01'``."""
    if not isinstance(tree.this, (exp.Literal, exp.Neg)):
        return None
    if tree.is_type(exp.DType.DATE) and (inner := value_of(tree.this)):
        return inner if inner.domain == "time10" else None
    if tree.is_type(*exp.DataType.NUMERIC_TYPES) and (number := _number(tree.this.name)):
        whole = number.value == int(number.value)
        return number if whole or tree.is_type(*exp.DataType.REAL_TYPES) else None
    return None


def _number(text: str) -> Value | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return Value("number", number) if number.is_finite() else None


@dataclass(frozen=True)
class Fact:
    """What must be so about one operand.

    Attributes:
        key: The operand.
        relation: ``=`` (one of ``values``), ``<>`` (none of them), ``<``, ``<=``, ``>``,
            ``>=`` (than the only one), ``null`` or ``known``.
    """

    key: str
    relation: str
    values: tuple[Value, ...] = ()


_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_OPPOSITE = {
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
    "=": "<>",
    "<>": "=",
    "null": "known",
    "known": "null",
}
_RELATIONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


def operand_key(tree: exp.Expr) -> str:
    """What two spellings of one operand have in common."""
    if key := column_key(tree):
        return key
    text = tree.sql(dialect="spark")
    return text if "'" in text else text.lower()


def facts(tree: exp.Expr, *, holds: bool = True) -> tuple[Fact, ...]:
    """What is so about operands when a part is true, or (``holds=False``) false.

    >>> from sqlglot import parse_one
    >>> facts(parse_one("5 >= a", dialect="spark"))[0].relation
    '<='
    """
    if isinstance(tree, exp.Paren):
        return facts(tree.this, holds=holds)
    if isinstance(tree, exp.Not):
        return facts(tree.this, holds=not holds)
    if isinstance(tree, (exp.And, exp.Or)):
        if holds != isinstance(tree, exp.And):
            return ()
        parts = parts_of(tree, type(tree))
        return tuple(fact for part in parts for fact in facts(part, holds=holds))
    if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
        return (Fact(operand_key(tree.this), "null" if holds else "known"),)
    if isinstance(tree, exp.Between) and holds:
        low, high = value_of(tree.args["low"]), value_of(tree.args["high"])
        key = operand_key(tree.this)
        if low and high and not tree.args.get("symmetric"):
            return (Fact(key, ">=", (low,)), Fact(key, "<=", (high,)))
        return (Fact(key, "known"),)
    if isinstance(tree, exp.In) and tree.expressions:
        return (_membership(tree, "=" if holds else "<>"),)
    relation = _RELATIONS.get(type(tree))
    if relation is None:
        return ()
    if not holds:
        relation = _OPPOSITE[relation]
    left, right = tree.this, tree.args["expression"]
    if (value := value_of(right)) is not None:
        return (Fact(operand_key(left), relation, (value,)),)
    if (value := value_of(left)) is not None:
        return (Fact(operand_key(right), _FLIPPED[relation], (value,)),)
    return (Fact(operand_key(left), "known"), Fact(operand_key(right), "known"))


def _membership(tree: exp.In, relation: str) -> Fact:
    key = operand_key(tree.this)
    items = [item for item in tree.expressions if not isinstance(item, exp.Null)]
    values = [value for item in items if (value := value_of(item)) is not None]
    if len(values) < len(items):
        return Fact(key, "known")
    return Fact(key, relation, tuple(values))


def contradict(found: Iterable[Fact]) -> bool:
    """Whether facts cannot all be so at once."""
    by_key: dict[str, list[Fact]] = {}
    for fact in found:
        by_key.setdefault(fact.key, []).append(fact)
    return any(_impossible(about) for about in by_key.values())


def _impossible(about: list[Fact]) -> bool:
    relations = {fact.relation for fact in about}
    if "null" in relations:
        return len(relations) > 1
    bounds = [fact for fact in about if fact.relation in ("<", "<=", ">", ">=")]
    least = [fact for fact in bounds if fact.relation in (">", ">=")]
    most = [fact for fact in bounds if fact.relation in ("<", "<=")]
    if any(_crossed(low, high) for low in least for high in most):
        return True
    choices = [fact.values for fact in about if fact.relation == "="]
    excluded = {value for fact in about if fact.relation == "<>" for value in fact.values}
    return bool(choices) and not any(
        value not in excluded
        and all(_within(value, bound) for bound in bounds)
        and all(any(not value.differs(other) for other in choice) for choice in choices[1:])
        for value in choices[0]
    )


def _crossed(low: Fact, high: Fact) -> bool:
    """Whether a lower bound lies above an upper one."""
    (least,), (most,) = low.values, high.values
    if least.domain != most.domain or least.domain == "text":
        return False
    if least.value == most.value:
        return low.relation == ">" or high.relation == "<"
    return _less(most, least)


def _within(value: Value, bound: Fact) -> bool:
    """Whether a value may lie within a bound."""
    (limit,) = bound.values
    if value.domain != limit.domain or value.domain == "text":
        return True
    if value.value == limit.value:
        return bound.relation in ("<=", ">=")
    return _less(value, limit) == (bound.relation in ("<", "<="))


def _less(one: Value, other: Value) -> bool:
    if isinstance(one.value, str) or isinstance(other.value, str):
        return str(one.value) < str(other.value)
    return one.value < other.value
