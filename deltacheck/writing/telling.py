"""Tell what became of a batch to those who want to know of events."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager

from deltacheck import events
from deltacheck.events import Event, EventKind, emit
from deltacheck.writing.request import Request
from deltacheck.writing.result import WriteResult
from deltacheck.writing.survey import Survey


def announce(result: WriteResult, asked: Request, known: Survey, message: str) -> None:
    """Tell of a batch that was quarantined, or written with warnings; of no other.

    Args:
        message: What became of it, in a sentence.
    """
    rules = dict(result.broken) | dict.fromkeys(result.checks, 0)
    kind: EventKind = "quarantined" if result.quarantined else "warned"
    if result.quarantined or rules or result.dropped:
        event = Event(
            kind,
            message,
            table=result.table,
            rules=rules,
            owners=owners(known, rules),
            environment=known.environment,
            batch=result.batch_id,
            job=asked.job,
        )
        emit(event, known.notify)


def stops_told(asked: Request, known: Survey) -> AbstractContextManager[None]:
    """Tell of a gate, a rule or a check that stops a batch, and let it."""
    return events.stops_told(
        known.notify,
        lambda stop: owners(known, stop.by),
        environment=known.environment,
        batch=asked.batch_id,
        job=asked.job,
    )


def owners(known: Survey, names: Iterable[str]) -> tuple[str, ...]:
    """Who answers for some rules and checks of a table, each once."""
    by_name = {key: rule.owner for key, rule in known.declared.items()}
    by_name |= {check.name.lower(): check.owner for check in known.checks}
    found = [by_name.get(name.lower(), "") or known.owner for name in names]
    return tuple(dict.fromkeys(owner for owner in found or [known.owner] if owner))
