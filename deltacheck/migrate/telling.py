"""Tell what an upgrade did, or what stopped it, to those who want to know of events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager

from deltacheck import events
from deltacheck.errors import ViolationError
from deltacheck.events import Event, Notify, emit
from deltacheck.migrate.results import RunResult
from deltacheck.names import TableName
from deltacheck.rules.model import RuleSet


def announce(result: RunResult, rules: RuleSet, notify: Notify | None) -> None:
    """Tell of a run that changed something; of no other.

    Args:
        rules: The declarations of all tables.
    """
    if result.run is None or result.dry_run:
        return
    steps = [
        (step.table, step.rule, step.violators)
        for step in result.steps
        if step.table is not None and step.rule is not None
    ]
    broken: Counter[str] = Counter()
    for _, rule, found in steps:
        if found is not None:
            # Rules of two tables may have the same name.
            broken[rule] += found.total
    moved = sum(table.moved for table in result.tables)
    event = Event(
        "upgraded",
        f"{result.environment} is at {result.current or 'base'}; {moved:,} "
        f"{'row was' if moved == 1 else 'rows were'} moved to quarantine.",
        table=result.tables[0].table if len(result.tables) == 1 else None,
        rules=dict(broken),
        owners=_owners(rules, [(table, rule) for table, rule, _ in steps]),
        environment=result.environment,
        run=result.run,
    )
    emit(event, notify)


def stops_told(
    environment: str, rules: RuleSet, notify: Notify | None
) -> AbstractContextManager[None]:
    """Tell of a gate or a rule that stops a run, and let it."""

    def owners(stop: ViolationError) -> tuple[str, ...]:
        return _owners(rules, [(stop.table, name) for name in stop.by] if stop.table else [])

    return events.stops_told(notify, owners, environment=environment)


def _owners(rules: RuleSet, names: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Who answers for some rules, by table and name, each once."""
    found = []
    for table, name in names:
        declared = rules.get(TableName.parse(table))
        if declared is not None:
            rule = declared.rule(name)
            found.append((rule.owner if rule is not None else "") or declared.owner)
    return tuple(dict.fromkeys(owner for owner in found if owner))
