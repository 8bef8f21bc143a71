"""Rules that come from Python: a dict, a list of ``Rule``, or the rows of a table of rules.

They go through the same models and the same parser as the rules of ``constraints/``. Knows
nothing of Spark: rows are plain dicts (``Row.asDict()``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from pydantic import ValidationError

from deltacheck.errors import DeclarationError
from deltacheck.names import TableName
from deltacheck.rules.check_models import batch_check_of
from deltacheck.rules.checks import BatchCheck
from deltacheck.rules.expression import check_name, not_null, parse_rule
from deltacheck.rules.fields import did_you_mean
from deltacheck.rules.file_models import (
    RuleDeclaration,
    RuleSetDeclaration,
    TableDeclaration,
    complaints,
    rule_of,
)
from deltacheck.rules.model import Kind, Rule, TableRules

_ROW_COLUMNS = ("table", "name", *RuleDeclaration.model_fields, "column")


def rules_given(table: TableName | str, given: Mapping[str, object] | Iterable[Rule]) -> TableRules:
    """The rules of one table, from Python.

    >>> rules = rules_given("shop.orders", {"amount_positive": "amount > 0"})
    >>> rules.rules[0].expression
    'amount > 0'

    Args:
        table: The table.
        given: Names of rules, each with its expression or with what a file may say about a
            rule (``{"not_null": "order_id", "on_violation": "warn"}``); or ``Rule`` objects.

    Raises:
        DeclarationError: A declaration is malformed or a name stands twice.
        ExpressionError: A rule is not an expression that Delta can carry and enforce.
        IdentifierError: A name is not one that Spark or Delta can hold.
    """
    name = table if isinstance(table, TableName) else TableName.parse(table)
    rules = (
        _from_mapping(name, given)
        if isinstance(given, Mapping)
        else [_checked(name, rule) for rule in given]
    )
    return TableRules(table=name, rules=_distinct(name, rules))


def checks_given(table: TableName | str, given: Mapping[str, object]) -> tuple[BatchCheck, ...]:
    """The checks of a batch, from Python.

    >>> (check,) = checks_given("shop.orders", {"some": {"row_count": {"min": 1}}})
    >>> check.test
    RowCount(least=1, most=None)

    Args:
        table: The table that the batch is for.
        given: Names of checks, each with what a file may say about it under ``batch:``.

    Raises:
        DeclarationError: A declaration is malformed.
        IdentifierError: A name is not one that a check or a table can have.
    """
    name = table if isinstance(table, TableName) else TableName.parse(table)
    try:
        declared = TableDeclaration.model_validate({"table": str(name), "batch": dict(given)})
    except ValidationError as error:
        first = complaints(error, TableDeclaration)[0]
        check = str(first.steps[1]) if len(first.steps) > 1 else None
        where = f"Table {name}" if check is None else f"Table {name}, batch check {check!r}"
        raise DeclarationError(
            f"{where}: {first.message}.", hint=first.hint, table=str(name), rule=check
        ) from None
    return tuple(
        batch_check_of(
            check_name(check, table=str(name)),
            one,
            name_table=lambda _, text: TableName.parse(text),
        )
        for check, one in declared.batch.items()
    )


def rules_from_rows(rows: Iterable[Mapping[str, object]]) -> dict[TableName, TableRules]:
    """The rules that a table of rules holds.

    Args:
        rows: One mapping per rule: ``table``, ``name``, and ``check`` or ``not_null`` (or
            ``column``, which means the same); where wanted ``on_violation``,
            ``description``, ``tags`` (a list, or words separated by commas), ``owner``,
            ``gate`` and ``renamed_from``. None is no value.

    Returns:
        The rules of each table, in the order of the rows.

    Raises:
        DeclarationError: As for ``rules_given``; the message names the row, counted from 1.
    """
    found: dict[TableName, list[Rule]] = {}
    for number, row in enumerate(rows, start=1):
        entries = {key: value for key, value in row.items() if value is not None}
        for key in entries:
            if key not in _ROW_COLUMNS:
                raise DeclarationError(
                    f"Row {number} of the table of rules has the unknown column {key!r}.",
                    hint=did_you_mean(key, _ROW_COLUMNS),
                )
        table = TableName.parse(_text(entries, "table", number))
        name = _text(entries, "name", number)
        if "column" in entries and "not_null" in entries:
            raise DeclarationError(
                f"Row {number} of the table of rules has both column and not_null, which mean "
                "the same.",
                hint="Leave one out.",
                table=str(table),
                rule=name,
            )
        if "column" in entries:
            entries["not_null"] = entries.pop("column")
        if isinstance(tags := entries.get("tags"), str):
            entries["tags"] = [word.strip() for word in tags.split(",") if word.strip()]
        found.setdefault(table, []).extend(_from_mapping(table, {name: entries}, row=number))
    return {table: TableRules(table, _distinct(table, rules)) for table, rules in found.items()}


def _text(entries: dict[str, object], key: str, number: int) -> str:
    value = entries.pop(key, None)
    if not isinstance(value, str) or not value.strip():
        raise DeclarationError(
            f"Row {number} of the table of rules has no text in {key!r}.",
            hint="Each row names a table and a rule.",
        )
    return value.strip()


def _from_mapping(
    table: TableName, given: Mapping[str, object], *, row: int | None = None
) -> list[Rule]:
    rules = {
        name: {"check": entry}
        if isinstance(entry, str)
        else {key: _as_list(value) for key, value in entry.items() if value is not None}
        if isinstance(entry, Mapping)
        else entry
        for name, entry in given.items()
    }
    try:
        declared = RuleSetDeclaration.model_validate({"rules": rules})
    except ValidationError as error:
        first = complaints(error, RuleSetDeclaration)[0]
        rule = str(first.steps[1]) if len(first.steps) > 1 else None
        where = f"Table {table}" if rule is None else f"Table {table}, rule {rule!r}"
        if row is not None:
            where = f"Row {row} of the table of rules ({where})"
        raise DeclarationError(
            f"{where}: {first.message}.", hint=first.hint, table=str(table), rule=rule
        ) from None
    return [
        rule_of(name, declaration, table=str(table)) for name, declaration in declared.rules.items()
    ]


def _as_list(value: object) -> object:
    return list(value) if isinstance(value, (set, frozenset)) else value


def _checked(table: TableName, rule: Rule) -> Rule:
    """A rule made by hand, with its expression read like any other."""
    if not isinstance(rule, Rule):
        raise DeclarationError(
            f"Table {table}: {type(rule).__name__!r} is not a rule.",
            hint="Give Rule objects, or a dict of names and expressions.",
            table=str(table),
        )
    check_name(rule.name, table=str(table))
    if rule.kind is Kind.NOT_NULL:
        if rule.column is None:
            raise DeclarationError(
                f"Table {table}, rule {rule.name!r}: it is NOT NULL and names no column.",
                hint="Set its column.",
                table=str(table),
                rule=rule.name,
            )
        expression = not_null(rule.column, table=str(table), rule=rule.name)
    else:
        expression = parse_rule(rule.expression, table=str(table), rule=rule.name)
    return dataclasses.replace(
        rule, expression=expression.stored, declared=rule.declared or expression.text
    )


def _distinct(table: TableName, rules: Iterable[Rule]) -> tuple[Rule, ...]:
    seen: dict[str, Rule] = {}
    for rule in rules:
        if (first := seen.setdefault(rule.key, rule)) is not rule:
            raise DeclarationError(
                f"Table {table} has two rules called {rule.name!r}"
                + ("." if first.name == rule.name else f" (the other is {first.name!r})."),
                hint="Names compare without regard to case: rename one of them.",
                table=str(table),
                rule=rule.name,
            )
    return tuple(seen.values())
