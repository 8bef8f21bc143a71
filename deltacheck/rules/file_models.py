"""What may stand in ``constraints/`` and in rules given from Python, as pydantic models.

The models say which keys there are and what each may hold; they do not read files and do
not judge expressions beyond handing them to ``parse_rule``. The JSON Schema for editors is
generated from them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Union

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from deltacheck.errors import DeclarationError
from deltacheck.names import split_path
from deltacheck.rules.expression import check_name, not_null, parse_rule
from deltacheck.rules.model import Action, Gate, Kind, Origin, Rule

_SYNONYMS = {
    "action": "on_violation",
    "condition": "check",
    "constraint": "check",
    "constraints": "rules",
    "expr": "check",
    "expression": "check",
    "include": "use",
    "name": "table",
    "notnull": "not_null",
    "required": "not_null",
    "severity": "on_violation",
    "sql": "check",
    "threshold": "gate",
}
"""What other tools call our keys."""


def _refuse(text: str, hint: str) -> PydanticCustomError:
    return PydanticCustomError("deltacheck", "{problem}", {"problem": text, "hint": hint})


def _gate(value: object) -> Gate:
    if isinstance(value, Gate):
        return value
    if not isinstance(value, (str, int)):
        raise _refuse("is not a gate", "Write a number of rows, a percentage or a fraction.")
    try:
        return Gate.parse(value)
    except DeclarationError as error:
        raise _refuse("is not a gate", error.hint) from None


def _action(value: object) -> object:
    if isinstance(value, Action) or value in [action.value for action in Action]:
        return value
    raise _refuse("is not an action", did_you_mean(str(value), [action.value for action in Action]))


def _column(value: str) -> str:
    if value.lower() in ("true", "false", "yes", "no", "on", "off"):
        raise _refuse(
            "is not a column",
            f"`not_null` takes the column's name; a column that is called so is written "
            f"`{value}`, with the back-quotes.",
        )
    try:
        split_path(value)
    except DeclarationError as error:
        raise _refuse("is not a column", error.hint) from None
    return value


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, pattern=r"^\S+$")]
Column = Annotated[Text, AfterValidator(_column)]
ActionWord = Annotated[Action, BeforeValidator(_action)]
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


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class RuleDeclaration(_Strict):
    """A rule: what must be true for each row of the table."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["check"]}, {"required": ["not_null"]}]}
    )

    check: Text = Field(
        "",
        description="A SQL boolean expression. False and NULL break it.",
        examples=["amount > 0"],
    )
    not_null: Column = Field(
        "",
        description="A column, or a field in one, that may not be NULL.",
        examples=["order_id", "address.zip"],
    )
    on_violation: ActionWord = Field(
        Action.QUARANTINE,
        description="What happens to rows of a batch that break the rule. quarantine: they are "
        "kept in the quarantine table. fail: the write raises. drop: they are left out and "
        "counted. warn: they are written and counted, and Delta does not enforce the rule.",
    )
    description: Text = Field("", description="What the rule says.")
    tags: tuple[Word, ...] = Field((), description="Words by which commands can be narrowed.")
    owner: Text = Field("", description="Who answers for the rule.")
    gate: GateText = Field(
        None,
        description="The most rows that may break this rule: a number, 5% or 1/3 of the rows "
        "looked at. More, and nothing is moved or written.",
    )
    renamed_from: Text = Field("", description="The name that the rule had before.")

    @model_validator(mode="after")
    def _one_of_two(self) -> RuleDeclaration:
        both = bool(self.check and self.not_null)
        if both or not (self.check or self.not_null):
            raise _refuse(
                "has both check and not_null" if both else "has neither check nor not_null",
                "Make two rules of it."
                if both
                else "Write `check: amount > 0` or `not_null: order_id`.",
            )
        return self


class TableDeclaration(_Strict):
    """The rules of one table."""

    table: Text = Field(
        description="table, schema.table, catalog.schema.table or delta.`/path`. ${NAME} and "
        "${NAME:-default} take environment variables.",
        examples=["shop.orders", "${CATALOG:-dev}.shop.orders"],
    )
    description: Text = Field("", description="What a row of it is.")
    rules: dict[str, RuleDeclaration] = Field(
        default_factory=dict, description="The rules by name."
    )
    use: tuple[Text, ...] = Field(
        (), description="Rule sets to take in: names of files without `table:`."
    )
    gate: GateText = Field(
        None,
        description="The most rows that may break any of the table's rules: a number, 5% or 1/3 "
        "of the rows looked at. More, and nothing is moved or written.",
    )
    tags: tuple[Word, ...] = Field((), description="Words by which commands can be narrowed.")
    owner: Text = Field("", description="Who answers for the table.")
    renamed_from: Text = Field("", description="The name that the table had before.")


class RuleSetDeclaration(_Strict):
    """Rules that several tables take in with ``use:``, named after the file."""

    description: Text = Field("", description="What the rules have in common.")
    rules: dict[str, RuleDeclaration] = Field(description="The rules by name.")


Steps = tuple[Union[str, int], ...]
"""The way to a value in a declaration, for example ``("rules", "amount_positive", "check")``."""


@dataclass(frozen=True)
class Complaint:
    """One thing that is wrong with a declaration.

    Attributes:
        steps: The way to it.
        at_key: Whether the key is wrong, not the value.
        message: What is wrong, to follow the name of the table and rule.
        hint: What to write instead.
    """

    steps: Steps
    at_key: bool
    message: str
    hint: str = ""


def complaints(error: ValidationError, model: type[BaseModel]) -> tuple[Complaint, ...]:
    """What pydantic found, in the words of the files.

    Args:
        error: The failed validation.
        model: The model that it failed against.
    """
    return tuple(_complaint(details, model) for details in error.errors(include_url=False))


def _complaint(details: ErrorDetails, model: type[BaseModel]) -> Complaint:
    steps, kind = details["loc"], details["type"]
    last = steps[-1] if steps else ""
    key = next((step for step in reversed(steps) if isinstance(step, str)), "")
    context = details.get("ctx", {})
    if kind == "extra_forbidden":
        owner = model if len(steps) == 1 else RuleDeclaration
        hint = did_you_mean(str(last), list(owner.model_fields))
        return Complaint(steps, True, f"unknown key {last!r}", hint)
    if kind == "missing":
        return Complaint(steps, True, f"the key {last!r} is missing", "Add it.")
    if kind == "deltacheck" and len(steps) != 2:
        message = f"{key}: {str(details['input'])!r} {context['problem']}"
        return Complaint(steps, False, message, context["hint"])
    if kind == "deltacheck":
        return Complaint(steps, True, context["problem"], context["hint"])
    if kind == "model_type" and len(steps) == 2:
        hint = "Write `check: ...` or `not_null: ...` below its name, further in."
        return Complaint(steps, False, "it must be a mapping", hint)
    if kind in ("model_type", "dict_type"):
        hint = f"Write `{last}:` and its entries below it, further in."
        return Complaint(steps, False, f"{last!r} must be a mapping", hint)
    if kind == "tuple_type":
        return Complaint(steps, False, f"{key!r} must be a list", f"Write `{key}: [a, b]`.")
    if kind == "string_too_short":
        return Complaint(steps, False, f"{key!r} is empty", "Give it a value, or delete the key.")
    if kind == "string_pattern_mismatch":
        return Complaint(
            steps, False, f"{details['input']!r} in {key!r} is not one word", "Leave spaces out."
        )
    return Complaint(steps, False, f"{key!r} must be a text", "Quote it.")


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
    if not close and _SYNONYMS.get(lower) in choices:
        close = [_SYNONYMS[lower]]
    return f"Did you mean {close[0]!r}?" if close else f"It may be: {', '.join(choices)}."


def rule_of(
    name: str, declaration: RuleDeclaration, *, table: str, origin: Origin | None = None
) -> Rule:
    """The rule that a declaration describes.

    Args:
        name: Its name.
        declaration: What was declared.
        table: Its table or rule set, for messages.
        origin: Where it was declared.

    Raises:
        ExpressionError: Its expression is not one that Delta can carry and enforce.
        IdentifierError: Its name, or the one before, is not one that Delta can hold.
    """
    check_name(name, table=table)
    if declaration.renamed_from:
        check_name(declaration.renamed_from, table=table)
    if declaration.not_null:
        kind, expression = Kind.NOT_NULL, not_null(declaration.not_null, table=table, rule=name)
    else:
        kind, expression = Kind.CHECK, parse_rule(declaration.check, table=table, rule=name)
    return Rule(
        name=name,
        kind=kind,
        expression=expression.stored,
        column=declaration.not_null or None,
        on_violation=declaration.on_violation,
        description=declaration.description,
        tags=declaration.tags,
        owner=declaration.owner,
        gate=declaration.gate,
        renamed_from=declaration.renamed_from or None,
        declared=expression.text,
        origin=origin,
    )
