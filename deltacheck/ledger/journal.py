"""The journal: an append-only table of runs, revisions and steps, from which all state is derived.

Order is by token (one per run) and sequence, never by clock. What was applied is read from
here; what a table really has is read from the table.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property

from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType

from deltacheck.config import Environment
from deltacheck.delta.commit import Frame
from deltacheck.delta.table import read_properties
from deltacheck.errors import TableNotFoundError
from deltacheck.ledger.tables import (
    create_table,
    frame_of,
    own_properties,
    read_rows,
    schema_of,
)
from deltacheck.names import TableName, split_path

JOURNAL = "a journal"
"""What the table is."""

_ID_KEY = "deltacheck.journal"

START, RENEW, REVISION, STEP, SETTLED, END = "start", "renew", "revision", "step", "settled", "end"
"""The kinds of entry: a run begins, renews its lock, did a revision or a step, settled what
an earlier run left, ends."""

RAN = "ran"
"""The state of a step that was a statement of the user's own."""

APPLIED, REVERTED, STAMPED = "applied", "reverted", "stamped"
DONE, STOPPED, FAILED, BROKEN = "done", "stopped", "failed", "broken"


@dataclass(frozen=True)
class Entry:
    """One row of the journal. Times are UTC; ``seconds`` is wall time.

    Attributes:
        token: The run's place in the order of runs.
        seq: The entry's place within the run.
        state: Of a revision: applied, reverted, stamped. Of a step: enforced, dropped, ran.
            Of an end: done, stopped, failed, broken.
        base: The revision's down_revision, for a history without its file.
        table_id: Delta's own id of the table that a run is about to touch.
        quarantine: Where that table's violators go.
        version_before: The table's version when the run began, or before the step.
        expires: Until when the lock holds without being renewed.
        detail: Anything else, as JSON.
    """

    token: int
    seq: int
    kind: str
    run: str
    at: datetime
    command: str | None = None
    state: str | None = None
    revision: str | None = None
    checksum: str | None = None
    table: str | None = None
    table_id: str | None = None
    quarantine: str | None = None
    rule: str | None = None
    version_before: int | None = None
    version_after: int | None = None
    violators_false: int | None = None
    violators_null: int | None = None
    moved: int | None = None
    statement: str | None = None
    seconds: float | None = None
    expires: datetime | None = None
    who: str | None = None
    engine: str | None = None
    detail: str | None = None


SCHEMA = schema_of(Entry, {"seq": IntegerType()})


@dataclass(frozen=True)
class Touched:
    """A table that a run is about to touch.

    Attributes:
        version: A version of the table from before the run.
        id: Delta's own id of the table; another one means that it was made anew.
        quarantine: Where its violators go.
    """

    table: TableName
    version: int
    id: str | None = None
    quarantine: TableName | None = None


@dataclass(frozen=True)
class Run:
    """A run as the journal tells it."""

    token: int
    run: str
    command: str
    who: str
    started: datetime
    expires: datetime
    state: str | None
    tables: tuple[Touched, ...]
    revisions: tuple[str, ...]

    @property
    def open(self) -> bool:
        """Whether it has neither ended nor been broken."""
        return self.state is None


@dataclass(frozen=True)
class Journal:
    """All entries of an environment's journal, in order.

    Attributes:
        id: The journal's own identity; None where there is no journal yet.
    """

    id: str | None
    entries: tuple[Entry, ...]

    @cached_property
    def token(self) -> int:
        """The last token given out."""
        return max((entry.token for entry in self.entries), default=0)

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """All runs, oldest first."""
        by_token: dict[int, list[Entry]] = {}
        for entry in self.entries:
            by_token.setdefault(entry.token, []).append(entry)
        return tuple(_run(group) for _, group in sorted(by_token.items()))

    @property
    def holder(self) -> Run | None:
        """The run that holds the lock, alive or dead."""
        last = self.runs[-1] if self.runs else None
        return last if last is not None and last.open else None

    @cached_property
    def unsettled(self) -> tuple[Run, ...]:
        """Runs that died or failed, whose traces no later run has settled yet."""
        settled = {entry.detail for entry in self.entries if entry.kind == SETTLED}
        return tuple(
            run
            for run in self.runs
            if run.state in (None, FAILED, BROKEN) and run.run not in settled
        )

    @cached_property
    def ran(self) -> dict[str, list[str]]:
        """The statements of users' own that ran, by revision, of revisions not finished."""
        found: dict[str, list[str]] = {}
        for entry in self.entries:
            if entry.revision is None:
                continue
            if entry.kind == REVISION:
                found.pop(entry.revision, None)
            elif entry.kind == STEP and entry.state == RAN and entry.statement is not None:
                found.setdefault(entry.revision, []).append(entry.statement)
        return found

    @cached_property
    def applied(self) -> dict[str, Entry]:
        """The revisions applied or stamped, each with the entry that says so, oldest first."""
        last: dict[str, Entry] = {}
        for entry in self.entries:
            if entry.kind == REVISION and entry.revision is not None:
                last.pop(entry.revision, None)
                last[entry.revision] = entry
        return {name: entry for name, entry in last.items() if entry.state != REVERTED}


def _run(entries: Sequence[Entry]) -> Run:
    start = next((entry for entry in entries if entry.kind == START), entries[0])
    ends = [entry for entry in entries if entry.kind == END]
    expires = [entry.expires for entry in entries if entry.expires is not None]
    return Run(
        token=start.token,
        run=start.run,
        command=start.command or "",
        who=start.who or "",
        started=start.at,
        expires=max(expires, default=start.at),
        # The first end counts: a lock may be broken in the instant in which it is given back.
        state=ends[0].state if ends else None,
        tables=_touched(entry for entry in entries if entry.kind == START),
        revisions=tuple((start.detail or "").split()),
    )


def _touched(starts: Iterable[Entry]) -> tuple[Touched, ...]:
    """The tables that a run announced, each as it was told with its id, if it was."""
    found: dict[TableName, Touched] = {}
    for entry in starts:
        if entry.table is None:
            continue
        touched = Touched(
            TableName.parse(entry.table),
            entry.version_before or 0,
            entry.table_id,
            None if entry.quarantine is None else TableName.parse(entry.quarantine),
        )
        if touched.id is not None or touched.table not in found:
            found[touched.table] = touched
    return tuple(found.values())


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(timezone.utc)


def journal_name(environment: Environment) -> TableName:
    """Where an environment's journal is."""
    return TableName((*split_path(environment.schema), "journal"))


def read_journal(session: SparkSession, environment: Environment) -> Journal:
    """Read an environment's journal; an empty one where there is none yet. Writes nothing.

    Raises:
        LedgerError: A newer deltacheck wrote it, or the table is not a journal.
    """
    name = journal_name(environment)
    properties = own_properties(session, name, JOURNAL)
    if properties is None:
        return Journal(None, ())
    found = [Entry(**values) for values in read_rows(session.table(name.sql), SCHEMA)]
    ordered = sorted(found, key=lambda entry: (entry.token, entry.seq))
    return Journal(properties[_ID_KEY], tuple(ordered))


def read_again(session: SparkSession, environment: Environment, seen: Journal) -> Journal:
    """A journal that was read before, as good as one of now for taking the lock.

    What is read again only where it must be: where no run held the lock then, any entry since
    is that of a run with a later token, and makes taking the lock fail. No Spark job then.

    Raises:
        LedgerError: As for ``read_journal``.
    """
    if seen.id is not None and seen.holder is None:
        try:
            properties = read_properties(session, journal_name(environment))
        except TableNotFoundError:
            return Journal(None, ())
        if properties.get(_ID_KEY) == seen.id:
            return seen
    return read_journal(session, environment)


def create_journal(session: SparkSession, environment: Environment) -> None:
    """Make the journal where there is none yet.

    Raises:
        PySparkException, Py4JJavaError: It cannot be made.
    """
    create_table(
        session,
        environment,
        journal_name(environment),
        SCHEMA,
        "Runs of deltacheck; append-only",
        [(_ID_KEY, uuid.uuid4().hex)],
    )


def entries_frame(session: SparkSession, entries: Sequence[Entry]) -> Frame:
    """Entries as rows to be appended, in one file."""
    return frame_of(session, entries, SCHEMA)
