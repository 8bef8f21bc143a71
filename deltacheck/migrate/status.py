"""Every rule of an environment and how things stand: what is declared, applied and on the table.

Writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.table import Commit, Definition, read_definition
from deltacheck.delta.table import history as commits_of
from deltacheck.errors import TableNotFoundError
from deltacheck.ledger.journal import read_journal
from deltacheck.migrate.drift import Drift, cause_of_check, find_cause, requires
from deltacheck.migrate.preflight import column_path, is_enforced
from deltacheck.migrate.run import check_unedited
from deltacheck.names import TableName
from deltacheck.quarantine.fates import restored_rows
from deltacheck.quarantine.layout import environment_quarantine
from deltacheck.quarantine.place import held_by_rule
from deltacheck.revisions.graph import History, Revision
from deltacheck.revisions.operations import AddConstraint, RenameTable
from deltacheck.revisions.state import Managed, State, moved, state_after
from deltacheck.rules.expression import same_rule
from deltacheck.rules.model import Kind, Rule, RuleSet, TableRules
from deltacheck.rules.selection import EVERYTHING, Selection
from deltacheck.rules.words import spelled

RuleState = Literal["enforced", "pending", "drifted", "unmanaged", "warn"]
KindName = Literal["check", "not_null"]
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
        note: What differs, in words.
        drift: Why a drifted rule, or an unmanaged CHECK, is as it is.
        tags: As declared, for the rule and for its table.
        owner: Who answers for it, as declared.
    """

    table: str
    rule: str
    kind: KindName
    expression: str
    state: RuleState
    enforced_by: EnforcedBy | None
    revision: str | None
    quarantined: int
    note: str = ""
    drift: Drift | None = None
    tags: tuple[str, ...] = ()
    owner: str = ""


@dataclass(frozen=True)
class Status:
    """The rules of an environment.

    Attributes:
        current: The revision that the environment is at.
        head: The newest revision of the project.
        missing: Tables that are declared or migrated and are not there.
        selection: What was asked for; the rules and the missing tables are all that meet it.
        restored: Table to the rows held in its quarantine that are in the table again, since a
            RESTORE has undone the run that moved them.
    """

    environment: str
    current: str | None
    head: str | None
    rules: tuple[RuleStatus, ...]
    missing: tuple[str, ...] = ()
    selection: Selection = EVERYTHING
    restored: Mapping[str, int] = field(default_factory=dict)

    @property
    def in_sync(self) -> bool:
        """Whether nothing of what was asked for is pending or has drifted."""
        return all(rule.state not in ("pending", "drifted") for rule in self.rules)


def read_status(
    session: SparkSession,
    environment: Environment,
    history: History,
    rules: RuleSet,
    selection: Selection = EVERYTHING,
) -> Status:
    """Compare what is declared and applied with what each table has.

    Args:
        selection: Which rules are asked for; tables that have none of them are not looked at.

    Raises:
        HistoryError: The migrations are broken, or an applied one was edited.
        NotDeltaError: A table is a view or not Delta.
        LedgerError: The journal cannot be used.
    """
    journal = read_journal(session, environment)
    check_unedited(history, journal)
    done = [one for one in history.revisions if one.revision in journal.applied]
    waiting = [one for one in history.revisions if one.revision not in journal.applied]
    applied, target = _renamed(state_after(done), waiting), state_after(history.revisions)
    head = history.head()
    found: list[RuleStatus] = []
    missing: list[str] = []
    restored: dict[str, int] = {}
    for name in sorted({*applied, *target, *rules}, key=str):
        declared = rules.get(name, TableRules(name, ()))
        if not _is_asked_for(selection, declared):
            continue
        try:
            table = read_definition(session, name)
        except TableNotFoundError:
            table = None
            missing.append(str(name))
        quarantine = environment_quarantine(name, environment)
        held = {} if table is None else held_by_rule(session, name, quarantine)
        if held and (back := restored_rows(session, name, quarantine)):
            restored[str(name)] = back
        sides = _Sides(
            session,
            table,
            declared,
            applied.get(name, {}),
            target.get(name, {}),
            held,
            cache(lambda name=name: commits_of(session, name)),
        )
        found += [one for one in _of_table(sides) if _is_meant(selection, declared, one)]
    return Status(
        environment=environment.name,
        current=next(reversed(journal.applied), None) if journal.applied else None,
        head=None if head is None else head.revision,
        rules=tuple(found),
        missing=tuple(missing),
        selection=selection,
        restored=restored,
    )


def _renamed(applied: State, waiting: Sequence[Revision]) -> State:
    """What is applied, by the names that tables have at the head."""
    for revision in waiting:
        for operation in revision.upgrade:
            if isinstance(operation, RenameTable) and operation.old in applied:
                applied[operation.new] = moved(applied.pop(operation.old), operation.new)
    return applied


def _is_asked_for(selection: Selection, declared: TableRules) -> bool:
    return selection.has_table(declared.table) and (
        not selection.by_declaration
        or any(selection.has_rule(declared, rule) for rule in declared.rules)
    )


def _is_meant(selection: Selection, declared: TableRules, status: RuleStatus) -> bool:
    if selection.by_declaration:
        rule = declared.rule(status.rule)
        if rule is None or not selection.has_rule(declared, rule):
            return False
    return selection.has_expression(status.expression)


@dataclass(frozen=True)
class _Sides:
    """All that is known of one table, each part by rule key.

    Attributes:
        commits: The table's history, read when first asked for.
    """

    session: SparkSession
    table: Definition | None
    declared: TableRules
    applied: Mapping[str, Managed]
    target: Mapping[str, Managed]
    held: Mapping[str, int]
    commits: Callable[[], list[Commit]]

    @property
    def name(self) -> TableName:
        """The table's name."""
        return self.declared.table


def _of_table(sides: _Sides) -> Iterator[RuleStatus]:
    declared = [rule.key for rule in sides.declared.rules]
    keys = dict.fromkeys((*declared, *sides.target, *sides.applied))
    for key in keys:
        yield _managed(sides, key)
    if sides.table is not None:
        known = set(keys)
        for name, expression in sides.table.constraints.items():
            if name.lower() not in known:
                yield _unmanaged(sides, name, expression)
        # A NOT NULL of the schema is managed where a rule says so, under any name.
        claimed = {
            column_path(managed.added)
            for managed in (*sides.applied.values(), *sides.target.values())
        }
        for column in sorted(sides.table.not_null):
            if tuple(part.lower() for part in column) not in claimed:
                dotted = ".".join(map(spelled, column))
                expression = f"{dotted} IS NOT NULL"
                yield _status(sides, dotted, "not_null", expression, "unmanaged", "not_null")


def _unmanaged(sides: _Sides, name: str, expression: str) -> RuleStatus:
    drift = cause_of_check(sides.commits(), name, expression)
    told = drift.version is not None
    return _status(
        sides,
        name,
        "check",
        expression,
        "unmanaged",
        "check",
        note=drift.sentence if told else "",
        drift=drift if told else None,
    )


def _managed(sides: _Sides, key: str) -> RuleStatus:
    rule, applied, target = sides.declared.rule(key), sides.applied.get(key), sides.target.get(key)
    table = sides.table
    there = None if table is None else table.constraint(key)
    by: EnforcedBy | None = None if there is None else "check"
    managed = applied or target
    revision = None if managed is None else managed.revision
    wanted = target or applied
    one: Rule | AddConstraint
    if rule is not None:
        one = rule
    else:
        assert wanted is not None, "a key comes from one of the three"
        one = wanted.added
    name, expression = one.name, one.expression
    kind: KindName = "not_null" if one.kind is Kind.NOT_NULL else "check"
    note = ""
    drift = None
    state: RuleState
    if applied is None:
        state = "warn" if rule is not None and not rule.enforced else "pending"
    elif table is None:
        state, drift = "drifted", Drift("table_gone")
        note = drift.sentence
    elif is_enforced(table, applied.added):
        by = "check" if there is not None else "not_null"
        note = _change(rule, applied, target)
        state = "pending" if note else "enforced"
        expression = expression if note else applied.added.expression
    else:
        state = "drifted"
        column = column_path(applied.added)
        required = None if column is None else requires(sides.session, sides.name, column)
        drift = find_cause(sides.commits(), key, there, required)
        note = drift.sentence if there is None else f"{drift.sentence}; the table has: {there}"
    return _status(sides, name, kind, expression, state, by, revision, note, drift)


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
    kind: KindName,
    expression: str,
    state: RuleState,
    by: EnforcedBy | None,
    revision: str | None = None,
    note: str = "",
    drift: Drift | None = None,
) -> RuleStatus:
    rule = sides.declared.rule(name)
    return RuleStatus(
        table=str(sides.name),
        rule=name,
        kind=kind,
        expression=expression,
        state=state,
        enforced_by=by,
        revision=revision,
        quarantined=sides.held.get(name.lower(), 0),
        note=note,
        drift=drift,
        tags=() if rule is None else tuple(dict.fromkeys((*sides.declared.tags, *rule.tags))),
        owner="" if rule is None else rule.owner or sides.declared.owner,
    )


__all__ = ["RuleStatus", "Status", "read_status"]
