"""The lock of an environment: one run at a time, and a holder that lost it cannot go on.

The journal is the lock. Taking it is an append under the journal's own id with the next
token: of two at the same instant Delta lets one commit. It holds until the run's end is
appended, it expires, or a person breaks it. On a local warehouse an operating-system lock
tells at once whether the holder lives.
"""

from __future__ import annotations

import getpass
import itertools
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.commit import Fence, Tag, commit
from deltacheck.delta.failures import EngineFailure, is_conflict
from deltacheck.delta.session import apart, aside
from deltacheck.delta.table import history
from deltacheck.delta.warehouse import run_lock
from deltacheck.errors import EngineError, LockHeldError, LockLostError
from deltacheck.ledger.journal import (
    BROKEN,
    END,
    FAILED,
    RENEW,
    START,
    Entry,
    Journal,
    Run,
    Touched,
    create_journal,
    entries_frame,
    journal_name,
    now,
    read_again,
    read_journal,
)
from deltacheck.ledger.upkeep import TRIM, compact_table

LEASE = timedelta(minutes=5)
"""How long the lock holds without being renewed."""

_SPAN = 1_000_000
"""How many fenced writes one run can make; what it did and its end come after them."""

_FRESH = 10.0
"""For how many seconds a look at the journal counts as a look at the lock of now."""

_TRIES = 10
"""How often an entry is appended where something else was committed to the journal."""

_PLACE = re.compile(r"(?P<token>\d+)/(?P<seq>\d+)")
"""An entry's place, as the tag of its commit tells it."""

MANY_FILES = 20
"""More of them in the journal are put together in the course of a run: each run adds at least
two, and each command reads them all."""

_COMMITS = 20
"""How many of the journal's last commits are looked at; no holder makes as many in between."""

_POLL = 1.0
"""Seconds between two looks at a lock that another run holds."""


def new_run() -> str:
    """An identity for a run: readable, unique, of no meaning for the order of runs."""
    return f"{now():%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def holder_name() -> str:
    """Who holds a lock: user and machine."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


@dataclass
class Lock:
    """The lock, as its holder sees it.

    Attributes:
        journal: The journal as it was when the lock was taken, without this run.
    """

    session: SparkSession
    environment: Environment
    run: str
    token: int
    journal: Journal
    lease: timedelta = LEASE
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _renewed: float = field(default_factory=time.time)
    _seen: float = field(default_factory=time.time)
    _lost: bool = False
    _ended: bool = False
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def fence(self) -> Fence:
        """The next place in the order of this environment's writes to a table."""
        return _fence(self.journal, self.token, next(self._numbers))

    def ensure(self) -> None:
        """Go on only if the lock is still ours; renews it where that is due.

        Raises:
            LockLostError: It expired and another run took it, or it was broken by hand.
        """
        # By the wall clock: it also runs on while a machine sleeps.
        now_ = time.time()
        if self._lost or now_ - self._renewed > self.lease.total_seconds() / 3:
            self.renew(self.session)
        elif now_ - self._seen > _FRESH:
            if self._taken():
                self._lost = True
                raise self._loss("The run stops here; nothing is half done.")
            self._seen = now_

    def _taken(self) -> bool:
        """Whether a later run, or an end of this one, is in the journal."""
        places = _places(self.session, self.environment).values()
        return any(
            token > self.token or (token, seq) >= (self.token, _SPAN) for token, seq in places
        )

    def _loss(self, what: str) -> LockLostError:
        return LockLostError(
            f"Run {self.run} lost the lock of environment {self.environment.name}: it expired "
            f"or was broken while the run went on. {what}",
            hint="Run the same command again once no other run is going on; it finds what was "
            "done.",
        )

    def record(self, entries: Sequence[Entry]) -> None:
        """Append entries in the course of the run; holds the lock for another lease.

        Args:
            entries: Token, run and place are filled in here.

        Raises:
            LockLostError: The lock is no longer ours.
        """
        self._go_on(self.session, entries)

    def renew(self, session: SparkSession) -> None:
        """Hold the lock for another lease.

        Args:
            session: The session to write with.

        Raises:
            LockLostError: It is no longer ours.
        """
        self._go_on(session, [Entry(0, 0, RENEW, "", now())])

    def _go_on(self, session: SparkSession, entries: Sequence[Entry]) -> None:
        with self._guard:
            until = now() + self.lease
            placed = [
                replace(
                    entry,
                    token=self.token,
                    run=self.run,
                    seq=next(self._numbers),
                    expires=until,
                )
                for entry in entries
            ]
            if self._lost or not self._append(session, placed):
                self._lost = True
                raise self._loss("The run stops here; nothing is half done.")
            self._renewed = self._seen = time.time()

    def end(self, entries: Sequence[Entry], state: str) -> None:
        """Append what the run did, and its end.

        Args:
            entries: Revisions, steps and settled runs; token and run are filled in here.
            state: How it ended: done, stopped or failed.

        Raises:
            LockLostError: The lock is no longer ours.
        """
        did = [
            replace(entry, token=self.token, run=self.run, seq=_SPAN + place)
            for place, entry in enumerate(entries)
        ]
        last = Entry(self.token, 2 * _SPAN - 1, END, self.run, now(), state=state)
        with self._guard:
            self._ended = True
            if self._lost or not self._append(self.session, [*did, last]):
                raise self._loss("What it did to the tables stands; its end is not recorded.")

    def leave(self, entries: Sequence[Entry] = ()) -> None:
        """End a run that was told to stop as failed, unless it has ended.

        Also one whose lock was just being taken: the end has a later place than the start, so
        a start that is still in flight fails.
        """

        def end() -> None:
            # What is on its way says more than a lock that is gone with it.
            with suppress(LockLostError, *EngineFailure):
                self.end(entries, FAILED)

        if not self._ended:
            apart(end)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Renew the lock in the background, as long as a scan may take."""
        stop = threading.Event()

        def keep(session: SparkSession) -> None:
            # Delta makes up the journal's state for each fenced write after another one. Done
            # here, to count its files, the run's end need not wait for it.
            tag = Tag(run=self.run, step=TRIM)
            with suppress(*EngineFailure):
                compact_table(session, journal_name(self.environment), tag, above=MANY_FILES)
            while not stop.wait(self.lease.total_seconds() / 4):
                try:
                    self.renew(session)
                except LockLostError:
                    return
                except (EngineError, *EngineFailure):
                    # Tried again at the next beat; the holder itself asks before each step.
                    continue

        # A session of its own: settings of the holder's statements must not reach it.
        with aside(self.session) as session:
            thread = threading.Thread(
                target=keep, args=(session,), name="deltacheck-lock", daemon=True
            )
            thread.start()
            try:
                yield
            finally:
                stop.set()
                thread.join()

    def _append(self, session: SparkSession, entries: Sequence[Entry]) -> bool:
        return _append(session, self.environment, self.journal, entries)


@contextmanager
def locked(
    session: SparkSession,
    environment: Environment,
    *,
    command: str,
    revisions: Sequence[str],
    tables: Sequence[Touched],
    engine: str,
    timeout: float = 0.0,
    lease: timedelta = LEASE,
    seen: Journal | None = None,
) -> Iterator[Lock]:
    """Take the lock of an environment, keep it, and leave it to ``Lock.end`` to give it back.

    Args:
        command: What the run does: upgrade, downgrade, stamp.
        revisions: The revisions that it is about to run.
        tables: The tables that it is about to touch.
        engine: The versions of deltacheck, Spark and Delta.
        timeout: Seconds to wait for another run to end.
        lease: How long the lock holds without being renewed.
        seen: The journal as it was read before.

    Raises:
        LockHeldError: Another run holds it.
        LedgerError: The journal cannot be used.
    """
    deadline = time.monotonic() + timeout
    run = new_run()
    read = read_journal if seen is None else partial(read_again, seen=seen)
    refused, last = 0, 0
    while True:
        with run_lock(environment) as mine:
            journal = read(session, environment)
            read = read_journal
            if journal.id is None and mine is not False:
                create_journal(session, environment)
                continue
            holder = journal.holder
            if mine is not False and (mine is True or holder is None or holder.expires <= now()):
                token = max(journal.token, last) + 1
                starts = _starts(run, token, command, revisions, tables, engine, lease)
                lock = Lock(session, environment, run, token, journal, lease)
                try:
                    if _append(session, environment, journal, starts):
                        with lock.kept():
                            yield lock
                        return
                except (KeyboardInterrupt, SystemExit):
                    lock.leave()
                    raise
                # Another run was quicker; or the journal was restored, and Delta still knows the
                # tokens of the runs that were undone.
                refused += 1
                places = _places(session, environment).values()
                last = max((place[0] for place in places), default=0)
                if refused < _TRIES:
                    continue
        if time.monotonic() >= deadline:
            raise _held(environment, holder)
        time.sleep(min(_POLL, max(0.0, deadline - time.monotonic())))


def _starts(
    run: str,
    token: int,
    command: str,
    revisions: Sequence[str],
    tables: Sequence[Touched],
    engine: str,
    lease: timedelta,
) -> list[Entry]:
    start = Entry(
        token,
        0,
        START,
        run,
        now(),
        command=command,
        expires=now() + lease,
        who=holder_name(),
        engine=engine,
        detail=" ".join(revisions),
    )
    return [replace(start, **_touching(table)) for table in tables] or [start]


def announced(tables: Sequence[Touched]) -> list[Entry]:
    """Entries for ``Lock.record``: tables that a run is about to touch after all."""
    return [replace(Entry(0, 0, START, "", now()), **_touching(table)) for table in tables]


def _touching(touched: Touched) -> dict[str, Any]:
    return {
        "table": str(touched.table),
        "table_id": touched.id,
        "version_before": touched.version,
        "quarantine": None if touched.quarantine is None else str(touched.quarantine),
    }


def _held(environment: Environment, holder: Run | None) -> LockHeldError:
    if holder is None:
        who = "another process of this machine"
    else:
        age = int((now() - holder.started).total_seconds())
        who = f"run {holder.run} of {holder.who}, {holder.command}, started {age} seconds ago"
    return LockHeldError(
        f"Environment {environment.name} is locked by {who}; nothing was done.",
        hint="Wait for it (--lock-timeout SECONDS), or, if you know that it is dead, break the "
        "lock with `deltacheck unlock`.",
    )


def break_lock(session: SparkSession, environment: Environment) -> Run | None:
    """Break the lock of an environment; its holder, if it lives, cannot go on.

    Returns:
        The run that held it, or None where none did.
    """
    journal = read_journal(session, environment)
    holder = journal.holder
    if holder is None:
        return None
    entry = Entry(holder.token, 2 * _SPAN, END, holder.run, now(), state=BROKEN, who=holder_name())
    _append(session, environment, journal, [entry])
    return holder


def _fence(journal: Journal, token: int, number: int) -> Fence:
    return Fence(f"deltacheck-{journal.id}", token * 4 * _SPAN + number)


def _append(
    session: SparkSession, environment: Environment, journal: Journal, entries: Sequence[Entry]
) -> bool:
    """Append under the place of the last entry; False if a later one is there already."""
    name = journal_name(environment)
    last = entries[-1]
    frame = entries_frame(session, entries)
    fence = _fence(journal, last.token, last.seq)
    step = f"{last.token}/{last.seq}"
    tag = Tag(run=last.run, step=step)
    try:
        # Where a later place was taken in the meantime, the next try is skipped.
        commit(session, name, frame, tag=tag, fence=fence, tries=_TRIES)
    except EngineFailure as error:
        if is_conflict(error):
            return False
        raise
    # A write that its fence skipped is silent.
    return (last.run, step) in _places(session, environment)


def _places(
    session: SparkSession, environment: Environment
) -> dict[tuple[str, str], tuple[int, int]]:
    """Run and step of the journal's last commits, to the places of their last entries.

    From the tags of its history: that costs less than a look at its rows.
    """
    places = {}
    for entry in history(session, journal_name(environment), limit=_COMMITS):
        run, step = entry.tag.get("run"), str(entry.tag.get("step"))
        # What only keeps the journal small is committed by runs of `check` too, and has no place.
        if isinstance(run, str) and (place := _PLACE.fullmatch(step)) is not None:
            places[run, step] = (int(place["token"]), int(place["seq"]))
    return places
