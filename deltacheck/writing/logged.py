"""Put into the quality log what became of a batch: one commit for one that has something to tell.

A batch that was simply written has nothing to tell: Delta held every row against every
constraint, and its commit says who made it. A log that cannot be written stops no job: the
batch is where it belongs by then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import SparkSession

from deltacheck.delta.commit import Tag
from deltacheck.delta.table import read_definition
from deltacheck.errors import CheckError, ViolationError
from deltacheck.ledger.quality_log import (
    BATCH,
    GUARD,
    WRITE,
    Line,
    append_lines,
    warned_where_unlogged,
)
from deltacheck.quality.harvest import Written, lines
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.today import held_by_schema
from deltacheck.writing.request import Request
from deltacheck.writing.result import WriteResult
from deltacheck.writing.survey import Survey

STEP = "batch"
"""What a commit to the log says of itself that tells of a batch."""


@dataclass(frozen=True)
class BatchLog:
    """Where one batch's lines come from, and where they go.

    Attributes:
        attempt: The attempt at writing it.
        at: When it began (UTC).
    """

    session: SparkSession
    asked: Request
    known: Survey
    attempt: str
    at: datetime

    def add(self, result: WriteResult) -> None:
        """Log a batch of which rows broke a rule, or that was checked as a whole; no other."""
        news = result.broken or result.quarantined or result.dropped or result._checked
        if not news or result.repeated:
            return
        written = replace(
            self._untold,
            attempt=result._attempt or self.attempt,
            rows=result._came or 0,
            broken=result.broken,
            bad=result.bad,
            # The check for which a batch is quarantined has a line of its own.
            named=None if result.rule in result.checks else result.rule,
            refused=result.route == "batch",
            constraints=None if self._is_unseen(result) else frozenset(self.known.constraints),
            checked=tuple(one.said for one in result._checked),
            version=None if result._landed is None else result._landed.version,
        )
        self._append(written)

    @contextmanager
    def stops(self) -> Iterator[None]:
        """Log what a gate, a rule or a check stops, and let it."""
        try:
            yield
        except ViolationError as stop:
            written = replace(
                self._untold,
                rows=int(stop.rows),
                broken=stop.broken,
                bad=stop.bad,
                named=None if isinstance(stop, CheckError) else stop.rule,
                refused=True,
                checked=tuple(
                    one.said for one in (stop.results if isinstance(stop, CheckError) else ())
                ),
            )
            self._append(written, stop)
            raise

    def _is_unseen(self, result: WriteResult) -> bool:
        """Whether the rows that were written are those that a job's own action made."""
        return self.asked.source == own.GUARD and result.route == "clean"

    @property
    def _untold(self) -> Written:
        """The batch, without what became of it."""
        return Written(
            attempt=self.attempt,
            at=self.at,
            rows=0,
            broken={},
            bad=0,
            refused=False,
            constraints=None,
            batch=self.asked.batch_id,
            job=self.asked.job,
            source=GUARD if self.asked.source == own.GUARD else WRITE,
        )

    def _append(self, written: Written, stop: ViolationError | None = None) -> None:
        ledger, declared = self.known.ledger, self.known.declared
        if ledger is None:
            return
        owner, schema = self.known.owner or None, dict[str, str]()
        base = Line(self.at, ledger.name, str(self.known.table), BATCH, "", owner=owner)
        tag = Tag(attempt=written.attempt, batch=written.batch, job=written.job, step=STEP)
        with warned_where_unlogged(ledger, self.asked.table, "what became of a batch"):
            if written.constraints is not None and self.known.exists:
                table = read_definition(self.session, self.asked.table)
                schema = held_by_schema(table, declared.values())
                written = replace(written, constraints=written.constraints | set(schema))
            told = list(lines([written], base, declared.values(), schema))
            if stop is not None:
                told[-1] = replace(told[-1], message=stop.message)
            append_lines(self.session, ledger, told, tag)
