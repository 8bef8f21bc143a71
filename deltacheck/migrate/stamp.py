"""Record revisions as applied, or as not applied, without running them.

For an environment whose tables have the constraints already, or whose journal is wrong. No
table but the journal is touched; `status` tells afterwards whether the tables agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.ledger.journal import (
    DONE,
    REVERTED,
    REVISION,
    STAMPED,
    Entry,
    Journal,
    now,
    read_journal,
)
from deltacheck.ledger.lock import locked
from deltacheck.migrate.run import engine_versions
from deltacheck.revisions.graph import History, Revision


@dataclass(frozen=True)
class Stamped:
    """What was recorded.

    Attributes:
        run: The run that recorded it; None: the journal said so already.
        before: The revision that the environment was at.
        current: The revision that it is at now.
        stamped: Revisions recorded as applied, in order.
        reverted: Revisions recorded as not applied, the newest first.
    """

    environment: str
    run: str | None
    before: str | None
    current: str | None
    stamped: tuple[str, ...] = ()
    reverted: tuple[str, ...] = ()


def stamp(
    session: SparkSession,
    environment: Environment,
    history: History,
    target: str,
    *,
    lock_timeout: float = 0.0,
) -> Stamped:
    """Record that an environment is at a revision.

    The revision and all that it builds on count as applied, all others as not applied. A file
    that was edited since it was applied counts with its content of now.

    Args:
        target: ``head``, ``base``, a revision or the beginning of one.
        lock_timeout: Seconds to wait for another run to end.

    Raises:
        UnknownTargetError: There is no such revision.
        HistoryError: ``head`` was asked for and there are two.
        LockHeldError: Another run holds the lock; nothing was recorded.
        LedgerError: The journal cannot be used.
    """
    wanted = wanted_at(history, target)
    journal = read_journal(session, environment)
    if not changes(journal, wanted):
        at = current_of(journal)
        return Stamped(environment.name, None, at, at)
    with locked(
        session,
        environment,
        command="stamp",
        revisions=[one.revision for one in wanted],
        tables=[],
        engine=engine_versions(session),
        timeout=lock_timeout,
    ) as lock:
        entries = changes(lock.journal, wanted)
        lock.end(entries, DONE)
    return Stamped(
        environment=environment.name,
        run=lock.run,
        before=current_of(lock.journal),
        current=wanted[-1].revision if wanted else None,
        stamped=tuple(_of(entries, STAMPED)),
        reverted=tuple(_of(entries, REVERTED)),
    )


def wanted_at(history: History, target: str) -> tuple[Revision, ...]:
    """The revisions that count as applied at a target, in order.

    Raises:
        UnknownTargetError: There is no such revision.
        HistoryError: ``head`` was asked for and there are two.
    """
    if target == "base":
        return ()
    ancestry = history.ancestry(history.get(target).revision)
    return tuple(one for one in history.revisions if one.revision in ancestry)


def changes(journal: Journal, wanted: Iterable[Revision]) -> list[Entry]:
    """The entries that make a journal say what is wanted; none where it does.

    >>> one = Revision("0001", checksum="c")
    >>> [(entry.revision, entry.state) for entry in changes(Journal(None, ()), [one])]
    [('0001', 'stamped')]
    """
    revisions = list(wanted)
    ids = {one.revision for one in revisions}
    gone = [name for name in reversed(journal.applied) if name not in ids]
    new = [
        one
        for one in revisions
        if (there := journal.applied.get(one.revision)) is None or there.checksum != one.checksum
    ]
    if revisions and (gone or new) and revisions[-1] not in new:
        # The journal's newest entry says where the environment is.
        new.append(revisions[-1])
    return [
        *(_entry(name, REVERTED, None) for name in gone),
        *(_entry(one.revision, STAMPED, one.checksum) for one in new),
    ]


def current_of(journal: Journal) -> str | None:
    """The revision that a journal's environment is at; None: nothing is applied."""
    return next(reversed(journal.applied), None)


def _entry(revision: str, state: str, checksum: str | None) -> Entry:
    # Token, run and place are filled in when the run ends.
    return Entry(0, 0, REVISION, "", now(), state=state, revision=revision, checksum=checksum)


def _of(entries: Iterable[Entry], state: str) -> list[str]:
    return [entry.revision for entry in entries if entry.state == state and entry.revision]


__all__ = ["Stamped", "changes", "current_of", "stamp", "wanted_at"]
