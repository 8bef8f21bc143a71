"""The kinds of value that a declaration may hold, and the words in which one is refused.

Knows which texts are a gate, a column or a measure; not which keys they stand under.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Annotated, Any, TypeVar, Union

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from deltacheck.errors import DeclarationError
from deltacheck.names import split_path
from deltacheck.rules.expression import parse_rule, parse_value
from deltacheck.rules.model import Action, Gate
from deltacheck.rules.quantities import Age, Measure, Tolerance, Window

_SYNONYMS = {
    "action": ("on_violation", "on_failure"),
    "condition": ("check",),
    "constraint": ("check",),
    "constraints": ("rules",),
    "duplicates": ("unique",),
    "expr": ("check",),
    "expression": ("check",),
    "filter": ("where",),
    "foreign_key": ("references",),
    "group_by": ("by",),
    "include": ("use",),
    "is_unique": ("unique",),
    "name": ("table",),
    "notnull": ("not_null",),
    "primary_key": ("unique",),
    "required": ("not_null",),
    "row_condition": ("where",),
    "severity": ("on_violation", "on_failure"),
    "sql": ("check",),
    "tests": ("checks",),
    "threshold": ("gate",),
}
"""What other tools call our keys."""

_Quantity = TypeVar("_Quantity")
_Word = TypeVar("_Word", bound=Enum)


def refuse(text: str, hint: str) -> PydanticCustomError:
    """The refusal of one value; the caller raises it."""
    return PydanticCustomError("deltacheck", "{problem}", {"problem": text, "hint": hint})


def refuse_whole(text: str, hint: str) -> PydanticCustomError:
    """The refusal of a mapping for what its entries make together; the caller raises it."""
    return PydanticCustomError("together", "{problem}", {"problem": text, "hint": hint})


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A suggestion for a word that is not known.

    >>> did_you_mean("chek", ["check", "not_null"])
    "Did you mean 'check'?"
    >>> did_you_mean("colour", ["check", "not_null"])
    'It may be: check, not_null.'
    """
    choices = list(known)
    lower = word.casefold().replace("-", "_")
    close = difflib.get_close_matches(lower, choices, n=1)
    if not close:
        close = [name for name in _SYNONYMS.get(lower, ()) if name in choices]
    return f"Did you mean {close[0]!r}?" if close else f"It may be: {', '.join(choices)}."


def _gate(value: object) -> Gate:
    if isinstance(value, Gate):
        return value
    if not isinstance(value, (str, int)):
        raise refuse("is not a gate", "Write a number of rows, a percentage or a fraction.")
    try:
        return Gate.parse(value)
    except DeclarationError as error:
        raise refuse("is not a gate", error.hint) from None


def _column(value: str) -> str:
    if value.lower() in ("true", "false", "yes", "no", "on", "off"):
        raise refuse(
            "is not a column",
            f"`not_null` takes the column's name; a column that is called so is written "
            f"`{value}`, with the back-quotes.",
        )
    try:
        split_path(value)
    except DeclarationError as error:
        raise refuse("is not a column", error.hint) from None
    return value


def _read(kind: str, read: Callable[[str], _Quantity]) -> PlainValidator:
    """A validator that reads a text, or the number that a caller of Python gives."""

    def validate(value: object) -> _Quantity:
        if isinstance(value, bool) or not isinstance(value, (str, int, float, Decimal)):
            raise refuse(f"is not {kind}", "Write it as a text.")
        try:
            return read(str(value))
        except DeclarationError as error:
            raise refuse(f"is not {kind}", error.hint) from None

    return PlainValidator(validate)


def _sql(text: str) -> str:
    try:
        return parse_value(text).sql
    except DeclarationError as error:
        reason = error.message.removeprefix(repr(text.strip())).strip(" .")
        raise refuse(reason, error.hint) from None


def _condition(text: str) -> str:
    try:
        return parse_rule(text).stored
    except DeclarationError as error:
        reason = error.message.removeprefix("The expression of a rule ").rstrip(".")
        raise refuse(reason, error.hint) from None


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _number(text: str) -> Fraction:
    try:
        number = Fraction(text.strip())
    except ValueError:
        number = Fraction(0)
    if number <= 0:
        raise DeclarationError(f"{text!r} is not a number above zero.", hint="For example: 4.")
    return number


def one_of(kind: str, words: type[_Word]) -> BeforeValidator:
    """A validator for a word of an enumeration."""

    def validate(value: object) -> object:
        known = [word.value for word in words]
        if isinstance(value, words) or value in known:
            return value
        raise refuse(f"is not {kind}", did_you_mean(str(value), known))

    return BeforeValidator(validate)


def _text(pattern: str | None = None) -> WithJsonSchema:
    return WithJsonSchema({"type": "string"} | ({"pattern": pattern} if pattern else {}))


def _number_or_text(pattern: str, least: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"type": "number", **least}, _pattern(pattern)]})


def _pattern(pattern: str) -> dict[str, str]:
    return {"type": "string", "pattern": pattern}


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, pattern=r"^\S+$")]
Column = Annotated[Text, AfterValidator(_column)]
Sql = Annotated[Text, AfterValidator(_sql)]
Condition = Annotated[Text, AfterValidator(_condition)]
NonEmpty = Annotated[list[str], Field(min_length=1)]
SqlList = Annotated[
    tuple[Sql, ...],
    Field(min_length=1),
    BeforeValidator(_as_list, json_schema_input_type=Union[str, NonEmpty]),
]
ActionWord = Annotated[Action, one_of("an action", Action)]
GateText = Annotated[
    Union[Gate, None],
    PlainValidator(_gate),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": r"^\d+$|^\d+(\.\d+)?\s*%$|^\d+\s*/\s*[1-9]\d*$"},
            ]
        }
    ),
]
Count = Annotated[int, Field(ge=0)]
MeasureText = Annotated[
    Measure,
    _read("a measure", Measure.parse),
    _text(r"^row_count$|^(sum|mean|null_share|shares|failure_share)\s*\(.+\)$"),
]
AgeText = Annotated[Age, _read("a length of time", Age.parse), _text(r"^\d{1,6}\s*[mhdwMHDW]$")]
ToleranceText = Annotated[
    Tolerance,
    _read("a tolerance", Tolerance.parse),
    _number_or_text(r"^\d+(\.\d+)?\s*%?$", {"minimum": 0}),
]
WindowText = Annotated[
    Window, _read("something to look back at", Window.parse), _text(r"^\d{1,4}\s*(runs|weeks)$")
]
NumberText = Annotated[
    Fraction,
    _read("a number above zero", _number),
    _number_or_text(r"^\d+(\.\d+)?$", {"exclusiveMinimum": 0}),
]


class Strict(BaseModel):
    """A declaration: it has no keys but those that are named."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)
