"""Exactly once: whatever is killed and however often it is retried, one attempt wins whole.

No transaction spans a table and its quarantine, so the table's log alone decides. Under a
batch's id it has slots that are taken in order, each by one commit and for good: Delta skips
a write whose ``txnVersion`` is not above the stored one, and fails one that was in flight
when another of the same ``txnAppId`` committed.

- A batch that is written as it came takes slot 1: that is the whole of it.
- An attempt that finds bad rows takes a slot to begin, then writes the quarantine under its
  own id, then takes the next slot with the rows that are good. That commit decides: the
  attempt that it names has won, and what others left in the quarantine is removed.
- Whoever finds slot 1 taken and no decision begins in the next free slot. So an older attempt,
  dead or slow, can no longer decide; and what it may still send to the quarantine fails once
  the winner has fenced that off too.

So nothing has to be asked before the first write of a batch, and no instant of a crash leaves
a row in two places or in none. Knows nothing of rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from deltacheck.delta.commit import Fence, Statement, Tag, commit
from deltacheck.delta.session import aside
from deltacheck.delta.table import Commit, exists, history
from deltacheck.errors import BatchError
from deltacheck.names import TableName, literal, quote
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.fates import BEGIN
from deltacheck.quarantine.move import fence_off

ABANDON = "abandon"
"""What a commit says of itself that decides nothing, as ``BEGIN`` does."""

ROWS = "rows"
"""What a quarantine's commit says of itself that holds the rows of a batch."""

_SLOTS = 1_000_000
"""Slots of one batch of a stream; the last one is kept for the quarantine's final fence."""

_RECENT = 10
_TRIES = 5


@dataclass(frozen=True)
class Batch:
    """A batch that is to be written once.

    Attributes:
        id: As told to people and kept with quarantined rows.
        app: Its place among all applications that write to a table.
        number: Its place among the batches of its stream.
        query: The stream, or None.
        checkpoint: An id of the stream's checkpoint, where it can be told.
    """

    id: str
    app: str
    number: int = 0
    query: str | None = None
    checkpoint: str | None = None

    def fence(self, slot: int) -> Fence:
        """A slot as Delta's ``txnAppId`` and ``txnVersion``."""
        return Fence(self.app, self.number * _SLOTS + slot)


def job_batch(batch_id: str) -> Batch:
    """A batch of a job, by an id of the job's own."""
    return Batch(id=batch_id, app=f"deltacheck/{batch_id}")


def stream_batch(query: str, number: int, checkpoint: str | None = None) -> Batch:
    """A batch of a streaming query."""
    return Batch(
        id=f"{query}/{number}",
        app=f"deltacheck-stream/{query}",
        number=number,
        query=query,
        checkpoint=checkpoint,
    )


@dataclass(frozen=True)
class Standing:
    """What the table's log says of a batch.

    Attributes:
        slot: The last slot that is taken; 0: none.
        decision: The commit that decided.
        attempts: The attempts that began.
        places: The quarantines that they named.
    """

    slot: int = 0
    decision: Commit | None = None
    attempts: frozenset[str] = frozenset()
    places: frozenset[TableName] = frozenset()


def find_commit(
    session: SparkSession, table: TableName, attempt: str, step: str | None = None
) -> Commit | None:
    """The commit of an attempt in a table's history, or None where there is none.

    Args:
        step: What it says of itself; None: it decided.
    """
    entries = history(session, table, limit=_RECENT)
    found = _of_attempt(entries, attempt, step)
    if found is None and len(entries) == _RECENT:
        found = _of_attempt(history(session, table), attempt, step)
    return found


def _of_attempt(entries: list[Commit], attempt: str, step: str | None) -> Commit | None:
    return next(
        (
            entry
            for entry in entries
            if entry.tag.get("attempt") == attempt and entry.tag.get("step") == step
        ),
        None,
    )


def standing(session: SparkSession, table: TableName, batch: Batch) -> Standing:
    """What became of a batch of which a slot was found taken.

    Raises:
        BatchError: The history does not tell; or it has later batches of the same stream, so
            the stream was started anew from another checkpoint.
    """
    found, stand = _standing(session, table, batch)
    if not found:
        raise BatchError(
            f"Batch {batch.id} was written to {table} before, and the table's history no longer "
            "says what became of it. Nothing was written.",
            hint="Give the batch a new id if it is to be written again.",
            table=str(table),
        )
    return stand


def earlier(session: SparkSession, table: TableName, batch: Batch) -> Standing:
    """What became of a batch of which nobody knows whether it was tried before.

    Raises:
        BatchError: The history has later batches of the same stream.
    """
    return _standing(session, table, batch)[1]


def _standing(session: SparkSession, table: TableName, batch: Batch) -> tuple[bool, Standing]:
    # A job's id may look like that of a stream's batch.
    entries = [
        entry
        for entry in history(session, table)
        if entry.tag.get("batch") is not None and _detail(entry).get("query") == batch.query
    ]
    found = [entry for entry in entries if entry.tag["batch"] == batch.id]
    decision = next((entry for entry in found if entry.tag.get("step") is None), None)
    numbers = [number for entry in entries if (number := _number(entry, batch)) is not None]
    # Spark begins a batch only once the one before it is done.
    if (numbers and max(numbers) > batch.number) or _is_anothers(decision, batch):
        raise BatchError(
            f"{table} already has batch {max(numbers)} of the stream {batch.query!r}, and was "
            f"given batch {batch.number} of another checkpoint: the stream was started anew. "
            "Nothing was written.",
            hint="Give the stream a new query name, so that its batches are told from those that "
            "are there; or go back to the checkpoint that it had.",
            table=str(table),
        )
    begun = [entry for entry in found if entry.tag.get("step") == BEGIN]
    slots = [int(told["slot"]) for entry in found if "slot" in (told := _detail(entry))]
    return bool(found), Standing(
        slot=max(slots, default=1 if found else 0),
        decision=decision,
        attempts=frozenset(entry.tag["attempt"] for entry in begun),
        places=frozenset(TableName.parse(_detail(entry)["quarantine"]) for entry in begun),
    )


def _detail(entry: Commit) -> Mapping[str, Any]:
    found: Mapping[str, Any] = entry.tag.get("detail", {})
    return found


def _is_anothers(decision: Commit | None, batch: Batch) -> bool:
    """Whether a batch of this number was decided for a stream with another checkpoint."""
    if decision is None or batch.checkpoint is None:
        return False
    told = _detail(decision).get("checkpoint", batch.checkpoint)
    return bool(told != batch.checkpoint)


def _number(entry: Commit, batch: Batch) -> int | None:
    if batch.query is None:
        return None
    return int(str(entry.tag["batch"]).rpartition("/")[2])


def begin(
    session: SparkSession, table: TableName, batch: Batch, tag: Tag, slot: int, place: TableName
) -> bool:
    """Take a slot to begin an attempt; False where another attempt has it."""
    detail = {**(tag.detail or {}), "slot": slot, "quarantine": str(place)}
    fence_off(session, table, replace(tag, step=BEGIN, detail=detail), batch.fence(slot))
    return find_commit(session, table, str(tag.attempt), BEGIN) is not None


def abandon(session: SparkSession, table: TableName, batch: Batch, tag: Tag, slot: int) -> bool:
    """Take the slot in which an attempt was to decide; False where it did decide after all."""
    told = replace(tag, step=ABANDON, detail={**(tag.detail or {}), "slot": slot})
    fence_off(session, table, told, batch.fence(slot))
    return find_commit(session, table, str(tag.attempt)) is None


def settle(session: SparkSession, batch: Batch, stand: Standing, tag: Tag, winner: str) -> None:
    """Remove what the losers of a decided batch left in its quarantine, now and for good.

    Args:
        winner: The attempt that the table's log names.
    """
    lost = stand.attempts - {winner}
    if not lost:
        return
    losers = f"{quote(own.ATTEMPT)} IN ({', '.join(map(literal, sorted(lost)))})"
    for place in stand.places:
        if exists(session, place):
            fence_off(session, place, tag, batch.fence(_SLOTS - 1))
            _remove(session, place, losers, tag)


def remove_attempt(session: SparkSession, place: TableName, tag: Tag) -> None:
    """Remove what an attempt of ours wrote to a quarantine."""
    _remove(session, place, f"{quote(own.ATTEMPT)} = {literal(str(tag.attempt))}", tag)


def _remove(session: SparkSession, place: TableName, where: str, tag: Tag) -> None:
    with aside(session) as other:
        statement = Statement(f"DELETE FROM {place.sql} WHERE {where}")
        commit(other, place, statement, tag=tag, tries=_TRIES)
