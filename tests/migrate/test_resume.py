"""What a run finds of runs before it, dead, failed or edited, and how it goes on."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace

import pytest

from deltacheck.errors import DeltacheckError, GateError, TableNotFoundError
from deltacheck.ledger.journal import DONE, REVERTED, REVISION, Entry, now
from deltacheck.ledger.lock import locked
from deltacheck.migrate.stamp import stamp
from deltacheck.revisions.recorder import Op
from tests.migrate.bench import Bench, Killed, Moments, chain, moments

pytestmark = pytest.mark.slow

ROWS = "VALUES (1, 5), (2, -1), (2, -1)"


@pytest.fixture
def orders(bench: Bench) -> str:
    return bench.table("orders", "id INT, amount INT", ROWS)


def die_at(moment: tuple[str, str]) -> AbstractContextManager[Moments]:
    def act(number: int, when: str, what: str) -> None:
        if (when, what) == moment:
            raise Killed

    return moments(act)


def test_a_statement_of_the_users_own_runs_once(bench: Bench, orders: str) -> None:
    """It ran, what came after it failed: the next run goes on behind it.

    Kind of bug: the statement ran again, and an INSERT of its rows with it.
    """
    log = bench.table("log", "what STRING")

    def upgrade(op: Op) -> None:
        op.add_check(orders, "id_positive", "id > 0")
        op.execute(f"INSERT INTO {log} VALUES ('ran')", table=log)
        op.add_check(orders, "amount_positive", "amount > 0", gate=0 if not raised else "100%")

    raised: list[bool] = []
    with pytest.raises(GateError):
        bench.upgrade(chain(upgrade))
    assert bench.rows(log) == Counter()

    def later(op: Op) -> None:
        op.add_check(orders, "id_positive", "id > 0")
        op.execute(f"INSERT INTO {log} VALUES ('ran')", table=log)
        op.execute(f"INSERT INTO {log} SELECT raise_error('no')", table=log)

    with pytest.raises(DeltacheckError, match="statement of revision 0001 failed"):
        bench.upgrade(chain(later))
    raised.append(True)
    result = bench.upgrade(chain(upgrade))
    assert bench.rows(log) == Counter({"('ran',)": 1})
    assert [step.state for step in result.steps] == ["enforced", "skipped", "enforced"]
    assert bench.held(orders) == Counter({"(2, -1)": 2})


@pytest.mark.slow
def test_a_table_made_anew_since_the_death_of_a_run(bench: Bench, orders: str) -> None:
    """Its history cannot tell whether the dead run's rows are in it: they stay, and a note says so.

    Kind of bug: the copy was removed since no DELETE was found, and with it the only rows.
    """
    history = chain(lambda op: op.add_check(orders, "amount_positive", "amount > 0", gate="100%"))
    with die_at(("after", "orders")), pytest.raises(Killed):
        bench.upgrade(history)
    bench.session.sql(f"DROP TABLE {orders}")
    bench.table("orders", "id INT, amount INT", "VALUES (7, 7)")
    result = bench.upgrade(history)
    assert bench.held(orders) == Counter({"(2, -1)": 2})
    assert any("2 rows of run" in note for note in result.notes)


def test_a_table_that_is_away_since_the_death_of_a_run(bench: Bench, orders: str) -> None:
    """Only its history tells whether the dead run's rows are in it: the run stays unsettled.

    Kind of bug: it was settled for good, and its copy, whatever it was, taken for the rows
    that were deleted.
    """
    history = chain(lambda op: op.add_check(orders, "amount_positive", "amount > 0", gate="100%"))
    with die_at(("after", "orders")), pytest.raises(Killed):
        bench.upgrade(history)
    assert bench.environment.warehouse is not None
    folder = bench.environment.warehouse / bench.database / "orders"
    folder.rename(folder.with_name("away"))
    bench.session.sql(f"DROP TABLE {orders}")
    with pytest.raises(TableNotFoundError):
        bench.upgrade(history)
    other = bench.table("other", "id INT", "VALUES (1)")
    result = bench.upgrade(chain(lambda op: op.add_check(other, "id_positive", "id > 0")))
    assert any(f"{orders} is not there" in note for note in result.notes)
    assert not result.settled

    folder.with_name("away").rename(folder)
    result = bench.upgrade(
        chain(
            lambda op: op.add_check(other, "id_positive", "id > 0"),
            lambda op: op.add_check(orders, "amount_positive", "amount > 0", gate="100%"),
        )
    )
    assert len(result.settled) >= 1
    assert bench.rows(orders) == Counter({"(1, 5)": 1})
    assert bench.held(orders) == Counter({"(2, -1)": 2})


@pytest.mark.slow
def test_a_quarantine_that_is_elsewhere_since_the_death_of_a_run(bench: Bench, orders: str) -> None:
    """The dead run's quarantine is settled where it was, not where the pattern leads now.

    Kind of bug: its rows were copied again into the new place.
    """
    history = chain(lambda op: op.add_check(orders, "amount_positive", "amount > 0", gate="100%"))
    with die_at(("after", "orders")), pytest.raises(Killed):
        bench.upgrade(history)
    old = bench.held(orders)
    moved = Bench(
        bench.session,
        replace(bench.environment, quarantine="{schema}.{table}_bad"),
        bench.database,
    )
    moved.upgrade(history)
    assert moved.held(orders) == Counter()
    assert bench.held(orders) == old == Counter({"(2, -1)": 2})


@pytest.mark.slow
def test_a_run_whose_work_grew_while_it_waited(bench: Bench, orders: str) -> None:
    """It announces the tables that it touches after all, and its death on one of them is settled.

    Kind of bug: only the tables known before the wait were settled; a copy stayed behind.
    """
    items = bench.table("items", "id INT", "VALUES (1)")
    history = chain(
        lambda op: op.add_check(orders, "amount_positive", "amount > 0", gate="100%"),
        lambda op: op.add_check(items, "id_positive", "id > 0"),
    )
    stamp(bench.session, bench.environment, history, "0001")
    with ThreadPoolExecutor(1) as pool, die_at(("before", "orders")):
        with locked(
            bench.session,
            bench.environment,
            command="downgrade",
            revisions=["0001"],
            tables=[],
            engine="",
        ) as lock:
            looked = threading.Event()
            waiting = pool.submit(
                bench.upgrade, history, lock_timeout=300, review=lambda plan: looked.set()
            )
            assert looked.wait(300)
            reverted = Entry(0, 0, REVISION, "", now(), state=REVERTED, revision="0001")
            lock.end([reverted], DONE)
        assert isinstance(waiting.exception(300), Killed)
    bench.upgrade(history)
    assert bench.rows(orders) == Counter({"(1, 5)": 1})
    assert bench.held(orders) == Counter({"(2, -1)": 2})
    assert len(bench.copies(orders)) == 1
