"""Every rule of an environment and how things stand: what is declared, applied and on the table.

Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.table import Table, read_table
from deltacheck.errors import TableNotFoundError
from deltacheck.ledger.journal import read_journal
from deltacheck.migrate.preflight import column_path, is_enforced
from deltacheck.migrate.run import check_unedited
from deltacheck.names import TableName
from deltacheck.quarantine.layout import environment_quarantine
from deltacheck.quarantine.place import held_by_rule
from deltacheck.revisions.graph import History
from deltacheck.revisions.state import Managed, state_after
from deltacheck.rules.expression import same_rule
from deltacheck.rules.model import Rule, RuleSet

State = Literal["enforced", "pending", "drifted", "unmanaged", "warn"]
EnforcedBy = Literal["check", "not_null"]


@dataclass(frozen=True)
class RuleStatus:
    """One rule of one table.

    Attributes:
        kind: not_null or check.
        expression: As declared or applied; of an unmanaged constraint as stored.
        enforced_by: How Delta enforces it now, if it does.
        revision: The revision that adds it, applied or not.
        quarantined: Rows held in the quarantine that broke it.
        note: What differs, for a drifted rule.
    """

    table: str
    rule: str
    kind: str
    expression: str
    state: State
    enforced_by: EnforcedBy | None
    revision: str | None
    quarantined: int
    note: str = ""


@dataclass(frozen=True)
class Status:
    """The rules of an environment.

    Attributes:
        current: The revision that the environment is at.
        head: The newest revision of the project.
        missing: Tables that are declared or migrated and are not there.
    """

    environment: str
    current: str | None
    head: str | None
    rules: tuple[RuleStatus, ...]
    missing: tuple[str, ...] = ()

    @property
    def in_sync(self) -> bool:
        """Whether nothing is pending and nothing has drifted."""
        return all(rule.state not in ("pending", "drifted") for rule in self.rules)


def read_status(
    session: SparkSession, environment: Environment, history: History, rules: RuleSet
) -> Status:
    """Compare what is declared and applied with what each table has.

    Raises:
        HistoryError: The migrations are broken, or an applied one was edited.
        NotDeltaError: A table is a view or not Delta.
        LedgerError: The journal cannot be used.
    """
    journal = read_journal(session, environment)
    check_unedited(history, journal)
    done = [one for one in history.revisions if one.revision in journal.applied]
    applied, target = state_after(done), state_after(history.revisions)
    head = history.head()
    names = sorted({*applied, *target, *rules}, key=str)
    found: list[RuleStatus] = []
    missing: list[str] = []
    for name in names:
        try:
            table = read_table(session, name)
        except TableNotFoundError:
            table = None
            missing.append(str(name))
        quarantine = environment_quarantine(name, environment)
        held = {} if table is None else held_by_rule(session, name, quarantine)
        declared = {} if name not in rules else {r.key: r for r in rules[name].rules}
        sides = _Sides(name, table, declared, applied.get(name, {}), target.get(name, {}), held)
        found.extend(_of_table(sides))
    return Status(
        environment=environment.name,
        current=next(reversed(journal.applied), None) if journal.applied else None,
        head=None if head is None else head.revision,
        rules=tuple(found),
        missing=tuple(missing),
    )


@dataclass(frozen=True)
class _Sides:
    """All that is known of one table, each part by rule key."""

    name: TableName
    table: Table | None
    declared: Mapping[str, Rule]
    applied: Mapping[str, Managed]
    target: Mapping[str, Managed]
    held: Mapping[str, int]


def _of_table(sides: _Sides) -> Iterator[RuleStatus]:
    keys = dict.fromkeys((*sides.declared, *sides.target, *sides.applied))
    for key in keys:
        yield _managed(sides, key)
    if sides.table is not None:
        known = set(keys)
        # A NOT NULL of the schema is managed where a rule says so, under any name.
        for name, expression in sides.table.constraints.items():
            if name.lower() not in known:
                yield _status(sides, name, "check", expression, "unmanaged", "check")
        claimed = {
            column_path(managed.added)
            for managed in (*sides.applied.values(), *sides.target.values())
        }
        for column in sorted(sides.table.not_null):
            if tuple(part.lower() for part in column) not in claimed:
                dotted = ".".join(column)
                expression = f"{dotted} IS NOT NULL"
                yield _status(sides, dotted, "not_null", expression, "unmanaged", "not_null")


def _managed(sides: _Sides, key: str) -> RuleStatus:
    rule, applied, target = sides.declared.get(key), sides.applied.get(key), sides.target.get(key)
    table = sides.table
    there = None if table is None else table.constraint(key)
    by: EnforcedBy | None = None if there is None else "check"
    managed = applied or target
    revision = None if managed is None else managed.revision
    wanted = target or applied
    if rule is not None:
        name, kind, expression = rule.name, rule.kind.value, rule.expression
    else:
        assert wanted is not None, "a key comes from one of the three"
        added = wanted.added
        name, kind, expression = added.name, added.kind.value, added.expression
    note = ""
    state: State
    if applied is None:
        state = "warn" if rule is not None and not rule.enforced else "pending"
    elif table is None:
        state, note = "drifted", "the table is gone"
    elif is_enforced(table, applied.added):
        by = "check" if there is not None else "not_null"
        note = _change(rule, applied, target)
        state = "pending" if note else "enforced"
        expression = expression if note else applied.added.expression
    elif there is None:
        state, note = "drifted", "the constraint is gone from the table"
    else:
        state, note = "drifted", f"the table has: {there}"
    return _status(sides, name, kind, expression, state, by, revision, note)


def _change(rule: Rule | None, applied: Managed, target: Managed | None) -> str:
    """How what is wanted differs from what is applied, if it does."""
    if target is None:
        return "a pending revision drops it"
    if not same_rule(target.added.expression, applied.added.expression):
        return f"a pending revision changes it from: {applied.added.expression}"
    if rule is None or not rule.enforced:
        return ""
    if not same_rule(rule.expression, applied.added.expression):
        return f"declared otherwise than applied ({applied.added.expression}); no revision yet"
    return ""


def _status(
    sides: _Sides,
    name: str,
    kind: str,
    expression: str,
    state: State,
    by: EnforcedBy | None,
    revision: str | None = None,
    note: str = "",
) -> RuleStatus:
    held = sides.held.get(name.lower(), 0)
    return RuleStatus(str(sides.name), name, kind, expression, state, by, revision, held, note)


__all__ = ["RuleStatus", "Status", "read_status"]
