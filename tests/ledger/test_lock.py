"""One run at a time, and a holder that lost the lock cannot go on."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from deltacheck.errors import LockHeldError, LockLostError
from deltacheck.ledger import lock as locks
from deltacheck.ledger.journal import DONE, Journal, journal_name, read_journal
from deltacheck.ledger.lock import Lock, break_lock, locked
from deltacheck.migrate.results import RunResult
from deltacheck.revisions.graph import History
from tests.migrate.bench import Bench, Killed, chain, moments

pytestmark = pytest.mark.slow

WAIT = 600
"""Seconds after which a test gives up on another thread."""


def take(
    bench: Bench,
    *,
    timeout: float = 0.0,
    lease: timedelta = locks.LEASE,
    seen: Journal | None = None,
) -> Iterator[Lock]:
    """Take the lock, as a run would."""
    with locked(
        bench.session,
        bench.environment,
        command="upgrade",
        revisions=["0001"],
        tables=[],
        engine="",
        timeout=timeout,
        lease=lease,
        seen=seen,
    ) as lock:
        yield lock


taken = contextmanager(take)


@dataclass
class Gatekeeper:
    """Holds a thread at a moment until it is let through."""

    moment: tuple[str, str]
    arrived: threading.Event = field(default_factory=threading.Event)
    open: threading.Event = field(default_factory=threading.Event)

    def __call__(self, number: int, when: str, what: str) -> None:
        first = not self.arrived.is_set()
        if first and (when, what) == self.moment:
            self.arrived.set()
            assert self.open.wait(WAIT)


def history(orders: str) -> History:
    return chain(lambda op: op.add_check(orders, "amount_positive", "amount > 0", gate="100%"))


@pytest.fixture
def orders(bench: Bench) -> str:
    return bench.table("orders", "id INT, amount DOUBLE", "VALUES (1, 5.0), (2, -1.0), (2, -1.0)")


@contextmanager
def held_up(
    bench: Bench, orders: str, moment: tuple[str, str]
) -> Iterator[tuple[Gatekeeper, Future[RunResult]]]:
    """An upgrade in a thread of its own that waits at a moment."""
    keeper = Gatekeeper(moment)
    with moments(keeper), ThreadPoolExecutor(1) as pool:
        first = pool.submit(bench.upgrade, history(orders))
        try:
            assert keeper.arrived.wait(WAIT)
            yield keeper, first
        finally:
            keeper.open.set()


def applied_once(journal: Journal) -> bool:
    return [e.revision for e in journal.entries if e.kind == "revision"] == ["0001"]


def assert_moved_once(bench: Bench, orders: str) -> None:
    assert bench.rows(orders) == Counter({"(1, 5.0)": 1})
    assert bench.held(orders) == Counter({"(2, -1.0)": 2})
    assert bench.constraints(orders) == {"amount_positive": "amount > 0"}


def test_a_second_upgrade_is_told_who_holds_the_lock(any_spark: object, bench: Bench) -> None:
    """Of two upgrades at once one runs, the other stops with exit code 5 and names the holder."""
    orders = bench.table("orders", "id INT, amount DOUBLE", "VALUES (1, 5.0), (2, -1.0), (2, -1.0)")
    with held_up(bench, orders, ("before", "orders")) as (keeper, first):
        with pytest.raises(LockHeldError, match=r"locked by run .* started") as held:
            bench.upgrade(history(orders))
        assert held.value.exit_code == 5
        keeper.open.set()
        assert first.result(WAIT).tables[0].moved == 2
    assert_moved_once(bench, orders)
    assert applied_once(bench.journal)


def test_what_was_seen_of_the_journal_serves_only_while_no_other_run_came(bench: Bench) -> None:
    """Not after another run, and not for a journal made anew."""
    empty = read_journal(bench.session, bench.environment)
    with taken(bench, seen=empty) as lock:
        lock.end([], DONE)
    seen = read_journal(bench.session, bench.environment)
    with taken(bench, seen=seen) as lock:
        assert (lock.journal, lock.token) == (seen, 2)
        with pytest.raises(LockHeldError), taken(bench, seen=seen):
            pass
        lock.end([], DONE)
    with taken(bench, seen=seen) as lock:
        assert lock.token == 3
        assert [run.state for run in lock.journal.runs] == [DONE, DONE]
        lock.end([], DONE)
    bench.session.sql(f"DROP TABLE {journal_name(bench.environment).sql}")
    with taken(bench, seen=seen) as lock:
        assert lock.journal.id not in (None, seen.id)
        assert lock.token == 1
        lock.end([], DONE)


@pytest.mark.slow
def test_a_second_upgrade_can_wait(any_spark: object, bench: Bench) -> None:
    """With a lock timeout the second waits, finds everything done and applies nothing twice."""
    orders = bench.table("orders", "id INT, amount DOUBLE", "VALUES (1, 5.0), (2, -1.0), (2, -1.0)")
    with (
        held_up(bench, orders, ("before", "orders")) as (keeper, first),
        ThreadPoolExecutor(1) as pool,
    ):
        second = pool.submit(bench.upgrade, history(orders), lock_timeout=WAIT)
        keeper.open.set()
        first.result(WAIT)
        assert second.result(WAIT).steps == ()
    assert_moved_once(bench, orders)
    assert applied_once(bench.journal)


def test_the_first_two_runs_of_an_environment_at_once(any_spark: object, bench: Bench) -> None:
    """Both find no journal: one makes it, and one runs.

    Kind of bug: two that make the journal at once, each with an identity of its own.
    """
    start = threading.Barrier(2)

    def one() -> str:
        start.wait(WAIT)
        try:
            with taken(bench) as lock:
                lock.end([], DONE)
                return "ran"
        except LockHeldError:
            return "held"

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(one) for _ in range(2)]
        outcomes = sorted(each.result(WAIT) for each in both)
    assert outcomes in (["held", "ran"], ["ran", "ran"])
    tokens = [run.token for run in bench.journal.runs]
    assert tokens == list(range(1, outcomes.count("ran") + 1))


def test_the_lock_of_a_dead_process_of_this_machine_is_free_at_once(bench: Bench) -> None:
    """On a local warehouse the operating system tells that the holder is dead."""
    with pytest.raises(Killed), taken(bench):
        raise Killed
    assert bench.journal.holder is not None
    with taken(bench) as lock:
        lock.end([], DONE)
    assert bench.journal.holder is None


@pytest.mark.connect
@pytest.mark.usefixtures("connect")
def test_the_lock_of_a_dead_client_expires(bench: Bench) -> None:
    """Elsewhere the lock of a dead holder holds until its lease is over, and no longer."""
    with pytest.raises(Killed), taken(bench, lease=timedelta(seconds=5)):
        raise Killed
    with pytest.raises(LockHeldError), taken(bench):
        pytest.fail("the dead run's lease is not over")
    with taken(bench, timeout=WAIT) as lock:
        assert lock.token == 2
        lock.end([], DONE)


@pytest.mark.slow
@pytest.mark.connect
@pytest.mark.usefixtures("connect")
def test_a_living_holder_renews_its_lease(bench: Bench) -> None:
    """The lock is kept while a scan runs that takes longer than a lease."""
    with taken(bench, lease=timedelta(seconds=4)) as lock:
        with pytest.raises(LockHeldError), taken(bench, timeout=8):
            pytest.fail("the holder lives")
        lock.end([], DONE)
    assert [run.state for run in bench.journal.runs] == [DONE]


def test_a_broken_lock_is_lost(any_spark: object, bench: Bench) -> None:
    """After ``unlock`` the holder can neither go on nor record that it ended well."""
    with taken(bench) as lock:
        assert break_lock(bench.session, bench.environment) is not None
        lock._seen = 0.0
        with pytest.raises(LockLostError):
            lock.ensure()
        with pytest.raises(LockLostError):
            lock.end([], DONE)
    assert bench.journal.runs[-1].state == "broken"
    assert break_lock(bench.session, bench.environment) is None


@pytest.mark.slow
@pytest.mark.connect
@pytest.mark.usefixtures("connect")
@pytest.mark.parametrize("moment", ["orders_quarantine", "orders", "orders amount_positive"])
def test_a_paused_holder_cannot_go_on(
    bench: Bench, orders: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run sleeps, its lock is broken, another run does the work; the sleeper changes nothing.

    Its copy, its DELETE and its ALTER come after the other run's fence.
    """
    monkeypatch.setattr(locks, "_FRESH", 0.0)
    with held_up(bench, orders, ("before", moment)) as (keeper, first):
        break_lock(bench.session, bench.environment)
        bench.upgrade(history(orders))
        before = bench.rows(orders), bench.held(orders), bench.constraints(orders)
        keeper.open.set()
        error = first.exception(WAIT)
        assert isinstance(error, LockLostError), error
    assert (bench.rows(orders), bench.held(orders), bench.constraints(orders)) == before
    assert_moved_once(bench, orders)
    assert applied_once(bench.journal)
    bench.upgrade(history(orders))
    assert_moved_once(bench, orders)


@pytest.mark.parametrize("way", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize(
    "moment", [("before", "journal 2/0"), ("after", "journal 2/0"), ("before", "orders")]
)
def test_an_interrupted_run_ends_its_journal(
    bench: Bench, orders: str, way: type[BaseException], moment: tuple[str, str]
) -> None:
    """Ctrl-C and SIGTERM leave an ended journal; the next run goes on at once.

    Kind of bug: told to stop between taking the lock and the first step.
    """
    told = False
    # A journal is there already: the first commit to one is its making.
    with taken(bench) as lock:
        lock.end([], DONE)

    def interrupt(number: int, when: str, what: str) -> None:
        nonlocal told
        if (when, what) == moment and not told:
            told = True
            raise way

    with moments(interrupt), pytest.raises(way):
        bench.upgrade(history(orders))
    assert bench.journal.holder is None
    assert bench.journal.runs[-1].state == "failed"
    bench.upgrade(history(orders))
    assert_moved_once(bench, orders)
