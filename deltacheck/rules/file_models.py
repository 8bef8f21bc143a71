"""What may stand in ``constraints/`` and in rules given from Python, as pydantic models.

The models say which keys there are and what each may hold; they do not read files and do
not judge expressions beyond handing them to ``parse_rule``. The JSON Schema for editors is
generated from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from deltacheck.rules.check_models import BatchCheckDeclaration, CheckDeclaration, Steps
from deltacheck.rules.expression import check_name, not_null, parse_rule
from deltacheck.rules.fields import (
    ActionWord,
    Column,
    GateText,
    Strict,
    Text,
    Word,
    did_you_mean,
    refuse_whole,
)
from deltacheck.rules.model import Action, Kind, Origin, Rule


class RuleDeclaration(Strict):
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
            raise refuse_whole(
                "has both check and not_null" if both else "has neither check nor not_null",
                "Make two rules of it."
                if both
                else "Write `check: amount > 0` or `not_null: order_id`.",
            )
        return self


class TableDeclaration(Strict):
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
    batch: dict[str, BatchCheckDeclaration] = Field(
        default_factory=dict,
        description="What must hold for a batch as a whole before it is written, by name.",
    )
    checks: dict[str, CheckDeclaration] = Field(
        default_factory=dict,
        description="What must hold for the table as a whole, by name; run by `deltacheck check`.",
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


class RuleSetDeclaration(Strict):
    """Rules that several tables take in with ``use:``, named after the file."""

    description: Text = Field("", description="What the rules have in common.")
    rules: dict[str, RuleDeclaration] = Field(description="The rules by name.")


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
    found = error.errors(include_url=False)
    misspelled = {one["loc"][:-1] for one in found if one["type"] == "extra_forbidden"}
    return tuple(
        _complaint(details, model)
        for details in found
        # A key that is missing where another is unknown is most likely the one meant.
        if details["type"] != "missing" or details["loc"][:-1] not in misspelled
    )


_ENTRIES: dict[type[BaseModel], str] = {
    RuleDeclaration: "Write `check: ...` or `not_null: ...` below its name, further in.",
    CheckDeclaration: "Write `row_count: ...`, `unique: ...` or another test below its name, "
    "further in.",
    BatchCheckDeclaration: "Write `row_count: ...`, `unique: ...` or another test below its name, "
    "further in.",
}
"""What stands below the name of a rule or a check."""


def _complaint(details: ErrorDetails, model: type[BaseModel]) -> Complaint:
    steps, kind = details["loc"], details["type"]
    last = steps[-1] if steps else ""
    key = next((step for step in reversed(steps) if isinstance(step, str)), "")
    context = details.get("ctx", {})
    if kind == "extra_forbidden":
        owner = _model_at(model, steps[:-1])
        return Complaint(steps, True, f"unknown key {last!r}", did_you_mean(str(last), owner))
    if kind == "missing":
        return Complaint(steps, True, f"the key {last!r} is missing", "Add it.")
    if kind == "deltacheck":
        message = f"{key}: {str(details['input'])!r} {context['problem']}"
        return Complaint(steps, False, message, context["hint"])
    if kind == "together":
        return Complaint(steps, True, context["problem"], context["hint"])
    if kind in ("model_type", "dict_type"):
        wanted = _type_at(model, steps)
        if wanted in _ENTRIES:
            return Complaint(steps, False, "it must be a mapping", _ENTRIES[wanted])
        hint = f"Write `{last}:` and its entries below it, further in."
        return Complaint(steps, False, f"{last!r} must be a mapping", hint)
    if kind == "tuple_type":
        return Complaint(steps, False, f"{key!r} must be a list", f"Write `{key}: [a, b]`.")
    if kind in ("string_too_short", "too_short"):
        return Complaint(steps, False, f"{key!r} is empty", "Give it a value, or delete the key.")
    if kind == "string_pattern_mismatch":
        return Complaint(
            steps, False, f"{details['input']!r} in {key!r} is not one word", "Leave spaces out."
        )
    if kind.startswith("int_") or kind == "greater_than_equal":
        return Complaint(steps, False, f"{key!r} must be a number of rows", "Such as 1000.")
    if kind.startswith("bool_"):
        return Complaint(steps, False, f"{key!r} must be true or false", "Write `true`.")
    return Complaint(steps, False, f"{key!r} must be a text", "Quote it.")


def _model_at(model: type[BaseModel], steps: Steps) -> list[str]:
    """The keys that a mapping in a declaration may have."""
    found = _type_at(model, steps)
    return [] if found is None else list(found.model_fields)


def _type_at(model: type[BaseModel], steps: Steps) -> type[BaseModel] | None:
    """The model of a mapping in a declaration, where it has one."""
    here: Any = model
    for step in steps:
        if get_origin(here) is dict:
            here = get_args(here)[1]
        elif _is_model(here) and step in here.model_fields:
            here = here.model_fields[step].annotation
            if get_origin(here) is Union:
                here = next((one for one in get_args(here) if _is_model(one)), here)
        else:
            return None
    return here if _is_model(here) else None


def _is_model(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel)


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
