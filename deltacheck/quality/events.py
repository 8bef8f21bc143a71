"""What people are told of a run of checks: an event for each table that has bad news."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from deltacheck.events import Event, EventKind
from deltacheck.quality.results import Checked
from deltacheck.quality.words import listed


@dataclass(frozen=True)
class _News:
    """A check or a rule of a table that did not hold.

    Attributes:
        stops: Whether that is more than a warning.
    """

    table: str
    name: str
    rows: int
    owner: str
    message: str
    stops: bool


def events_of(checked: Checked) -> Iterator[Event]:
    """The events of a run: for each table one of what failed, and one of what warns."""
    unseen = {
        **{table: f"{table} has checks and is not there." for table in checked.missing},
        **checked.problems,
    }
    news = [one for one in _news(checked) if one.table not in unseen]
    for table in dict.fromkeys(one.table for one in news):
        for stops in (True, False):
            some = [one for one in news if one.table == table and one.stops is stops]
            if some:
                yield _event(checked, some)
    for table, why in unseen.items():
        owners = [one.owner for one in checked.checks if one.table == table and one.owner]
        yield Event(
            "check_failed",
            why,
            table=table,
            owners=tuple(dict.fromkeys(owners)),
            environment=checked.environment,
            run=checked.run,
        )


def _news(checked: Checked) -> Iterator[_News]:
    for one in checked.checks:
        if one.state == "failed":
            said = one.outcome
            yield _News(one.table, one.check.name, said.failed, one.owner, said.message, one.stops)
    for rule in checked.rules:
        if rule.gated:
            yield _News(rule.table, rule.rule, rule.failed, rule.owner, rule.told, True)
    for gate in checked.gates:
        if gate.gated:
            yield _News(gate.table, "gate", gate.failed, gate.owner, gate.told, True)


def _event(checked: Checked, some: list[_News]) -> Event:
    kind: EventKind = "check_failed" if some[0].stops else "warned"
    verb = "failed" if some[0].stops else "did not hold, which is a warning"
    said = "; ".join(f"{one.name}: {one.message}" for one in some)
    names = listed(tuple(one.name for one in some))
    return Event(
        kind,
        f"{some[0].table}: {names} {verb} ({said}).",
        table=some[0].table,
        rules={one.name: one.rows for one in some},
        owners=tuple(dict.fromkeys(one.owner for one in some if one.owner)),
        environment=checked.environment,
        run=checked.run,
    )
