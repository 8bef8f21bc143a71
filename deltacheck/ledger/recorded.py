"""The recorded rules of a table: one JSON property that a job on a cluster reads.

A cluster has no project folder. So an upgrade writes what ``constraints/`` says of a table
into the table's own properties; reading them costs no Spark job.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from deltacheck.config import Environment
from deltacheck.names import TableName, literal
from deltacheck.rules.check_models import declaration_of
from deltacheck.rules.given import checks_given
from deltacheck.rules.model import Action, Gate, Kind, Rule, TableRules

PROPERTY = "deltacheck.rules"
"""The table property that holds them."""

FORMAT = 1


def recorded_text(declared: TableRules, quarantine: TableName, environment: Environment) -> str:
    """The rules of a table as the property's value; equal rules give equal text.

    Args:
        environment: Whose tables of deltacheck's own tell of this table.
    """
    value: dict[str, object] = {
        "format": FORMAT,
        "quarantine": str(quarantine),
        "ledger": environment.schema,
        "environment": environment.name,
        "rules": [_rule(rule) for rule in declared.rules],
    }
    if declared.owner:
        value["owner"] = declared.owner
    if declared.gate is not None:
        value["gate"] = declared.gate.text
    if declared.batch:
        value["batch"] = {check.name: declaration_of(check) for check in declared.batch}
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)


def _rule(rule: Rule) -> dict[str, str]:
    entry = {
        "name": rule.name,
        "kind": rule.kind.value,
        "expression": rule.expression,
        "on_violation": rule.on_violation.value,
    }
    if rule.column is not None:
        entry["column"] = rule.column
    if rule.owner:
        entry["owner"] = rule.owner
    if rule.gate is not None:
        entry["gate"] = rule.gate.text
    return entry


def set_statement(table: TableName, text: str) -> str:
    """The SQL that records rules."""
    return f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({literal(PROPERTY)} = {literal(text)})"


def read_recorded(table: TableName, properties: Mapping[str, str]) -> TableRules | None:
    """The recorded rules of a table, or None where it has none that this version can read."""
    text = properties.get(PROPERTY)
    if text is None:
        return None
    value = json.loads(text)
    if value["format"] > FORMAT:
        return None
    return TableRules(
        table=table,
        rules=tuple(
            Rule(
                name=entry["name"],
                kind=Kind(entry["kind"]),
                expression=entry["expression"],
                column=entry.get("column"),
                on_violation=Action(entry["on_violation"]),
                owner=entry.get("owner", ""),
                gate=_gate(entry.get("gate")),
            )
            for entry in value["rules"]
        ),
        gate=_gate(value.get("gate")),
        owner=value.get("owner", ""),
        batch=checks_given(table, value.get("batch", {})),
    )


def recorded_quarantine(properties: Mapping[str, str]) -> TableName | None:
    """Where the recorded rules of a table say that its bad rows go."""
    text = properties.get(PROPERTY)
    return None if text is None else TableName.parse(json.loads(text)["quarantine"])


def recorded_environment(properties: Mapping[str, str]) -> Environment | None:
    """The environment whose ledger tells of a table, where its recorded rules say it."""
    text = properties.get(PROPERTY)
    if text is None:
        return None
    value = json.loads(text)
    return Environment(value.get("environment", "recorded"), schema=value["ledger"])


def _gate(text: str | None) -> Gate | None:
    if text is None:
        return None
    number = text.removesuffix(" rows").removesuffix(" row")
    return Gate.parse(number)
