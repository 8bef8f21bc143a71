"""Tell people what happened: a function of Python's, a command, or a log record.

An event has names, figures and an owner, never a value of a row. It is told after everything
has been written, or after a stop; what a handler raises is raised. Knows no Spark.
"""

from __future__ import annotations

import json
import logging
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from typing import Literal, get_args

from deltacheck.errors import ViolationError

log = logging.getLogger("deltacheck")

EventKind = Literal["quarantined", "warned", "stopped", "check_failed", "upgraded"]
EVENT_KINDS: tuple[str, ...] = get_args(EventKind)
"""What can happen: rows of a batch were quarantined; a batch was written with warnings; a gate,
a ``fail`` rule or a check stopped a write or a run; a check of a table failed; an upgrade
changed tables."""

_PATIENCE = 60
"""Seconds that a command may take."""

_STANDARD_ERROR = 2
"""The process's own, whatever Python's has been replaced by."""


@dataclass(frozen=True)
class Event:
    """Something that people may want to know.

    Attributes:
        message: What happened, in a sentence.
        rules: Rule or check to the rows concerned, as far as they were counted.
        owners: Who answers for these rules and checks, each once.
        run: The run, of a check or an upgrade.
        batch, job: The batch's id and the job's name, of a write.
    """

    kind: EventKind
    message: str
    table: str | None = None
    rules: Mapping[str, int] = field(default_factory=dict)
    owners: tuple[str, ...] = ()
    environment: str | None = None
    run: str | None = None
    batch: str | None = None
    job: str | None = None
    at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    def text(self) -> str:
        """The event as one line of JSON."""
        return json.dumps({**asdict(self), "at": self.at.isoformat()})


@dataclass(frozen=True)
class Notify:
    """Where a project wants its events told (``[notify]`` in ``deltacheck.toml``).

    Attributes:
        command: A program and its arguments; it is given the event as JSON on standard input.
        logger: The name of a logger; the event is a warning whose message is the JSON.
        events: Only these kinds.
    """

    command: tuple[str, ...] = ()
    logger: str | None = None
    events: tuple[str, ...] = EVENT_KINDS


Handler = Callable[[Event], object]

_handlers: list[Handler] = []


def on_event(handler: Handler) -> Handler:
    """Have a function called with each event of this process.

    Can stand as a decorator. What it raises is raised by the call that the event comes from,
    whose work is done by then.

    >>> seen = []
    >>> told = on_event(lambda event: seen.append(event.kind))
    >>> emit(Event("warned", "a batch was written, with warnings"))
    >>> off_event(told)
    >>> seen
    ['warned']
    """
    _handlers.append(handler)
    return handler


def off_event(handler: Handler) -> None:
    """Have a function called no more.

    Raises:
        ValueError: It was not called before.
    """
    _handlers.remove(handler)


def emit(event: Event, notify: Notify | None = None) -> None:
    """Tell an event to all who want to know.

    A command that fails or takes more than a minute is logged, and stops nothing.

    Args:
        notify: What the project says of it.
    """
    if notify is not None and event.kind in notify.events:
        if notify.logger is not None:
            logging.getLogger(notify.logger).warning(event.text())
        if notify.command:
            _run(notify.command, event)
    for handler in tuple(_handlers):
        handler(event)


@contextmanager
def stops_told(
    notify: Notify | None,
    owners: Callable[[ViolationError], tuple[str, ...]],
    *,
    environment: str | None,
    batch: str | None = None,
    job: str | None = None,
) -> Iterator[None]:
    """Tell of a gate, a rule or a check that stops what is done here, and let it.

    Args:
        notify: What the project says of events.
        owners: Who answers for what stops it.
        environment, batch, job: As in the event.
    """
    try:
        yield
    except ViolationError as stop:
        event = Event(
            "stopped",
            stop.message,
            table=stop.table,
            rules=stop.by,
            owners=owners(stop),
            environment=environment,
            batch=batch,
            job=job,
        )
        emit(event, notify)
        raise


def _run(command: tuple[str, ...], event: Event) -> None:
    try:
        done = subprocess.run(
            command,
            input=event.text(),
            text=True,
            check=False,
            timeout=_PATIENCE,
            # What we print may be JSON, for another program.
            stdout=_STANDARD_ERROR,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        log.warning("the command of [notify] failed: %s", type(error).__name__)
        return
    if done.returncode:
        log.warning("the command of [notify] ended with %d", done.returncode)
