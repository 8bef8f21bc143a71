"""Killed at any instant, the same command run again ends as if nothing had happened.

The process dies by an exception that nothing catches, raised at the one door before and after
each commit; what a real SIGKILL leaves beyond that is in ``test_sigkill.py``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest

from deltacheck.migrate.stamp import stamp
from deltacheck.revisions.graph import History, history_of
from deltacheck.revisions.recorder import Op
from tests.migrate.bench import Bench, Killed, Rows, chain, kill_at, moments, revision

ORDERS = """VALUES
    (1, 5.0, 'paid'), (2, -1.0, 'paid'), (2, -1.0, 'paid'), (3, CAST(NULL AS DOUBLE), 'paid'),
    (3, CAST(NULL AS DOUBLE), 'paid'), (4, 7.0, 'lost'), (5, -2.0, 'lost'), (6, 1.0, NULL)"""
ITEMS = "VALUES (1, 1), (1, 1), (2, 0), (2, 0), (3, NULL)"

RUN = 28
"""Moments of a run of the two revisions: before and after each of its commits."""

COPIED = 9
"""The moment after the first copy, before its rows are deleted."""

RECOVERY = range(3, 36, 4)
"""Moments of the run that recovers: it has fences and a copy to take back besides."""

QUICK = {11, 26}
"""Those that a quick run tries: after the DELETE, and before the end."""


def every(count: int, quick: set[int]) -> list[object]:
    return [
        pytest.param(number, marks=() if number in quick else pytest.mark.slow)
        for number in range(count)
    ]


@dataclass(frozen=True)
class Shop:
    """Two tables with duplicates and NULLs among their violators, and two revisions."""

    bench: Bench
    orders: str
    items: str
    history: History

    def account(self) -> tuple[Rows, Rows, Rows, Rows]:
        """Rows left and rows held, of both tables."""
        bench = self.bench
        left, held = bench.rows(self.orders), bench.held(self.orders)
        return left, held, bench.rows(self.items), bench.held(self.items)


@pytest.fixture
def shop(bench: Bench) -> Shop:
    orders = bench.table("orders", "id INT, amount DOUBLE, status STRING", ORDERS)
    items = bench.table("items", "id INT, pieces INT", ITEMS)

    def first(op: Op) -> None:
        op.add_check(orders, "amount_positive", "amount > 0", gate="100%")
        op.add_check(items, "pieces_positive", "pieces > 0", gate="100%")

    def second(op: Op) -> None:
        op.add_check(orders, "status_known", "status IN ('placed', 'paid')", gate="100%")

    return Shop(bench, orders, items, chain(first, second))


def assert_settled(shop: Shop) -> None:
    """The end state, whatever happened on the way."""
    bench, account = shop.bench, shop.account()
    assert account[0] == Counter({"(1, 5.0, 'paid')": 1})
    assert account[1] == Counter(
        {
            "(2, -1.0, 'paid')": 2,
            "(3, None, 'paid')": 2,
            "(4, 7.0, 'lost')": 1,
            "(5, -2.0, 'lost')": 1,
            "(6, 1.0, None)": 1,
        }
    )
    assert account[2] == Counter({"(1, 1)": 2})
    assert account[3] == Counter({"(2, 0)": 2, "(3, None)": 1})
    assert bench.labels(shop.orders)["amount_positive", "status_known"] == 1
    assert bench.constraints(shop.orders).keys() == {"amount_positive", "status_known"}
    assert bench.constraints(shop.items).keys() == {"pieces_positive"}
    journal = bench.journal
    assert list(journal.applied) == ["0001", "0002"]
    assert journal.unsettled == ()
    assert journal.holder is None


def test_a_clean_run_ends_in_the_state_that_all_others_are_held_against(shop: Shop) -> None:
    """Without a kill: violators of both kinds moved once, constraints there, journal closed."""
    with moments() as recorded:
        shop.bench.upgrade(shop.history)
    assert_settled(shop)
    assert len(recorded.seen) == RUN
    assert recorded.seen[-1][1].startswith("journal")


@pytest.mark.parametrize("number", every(RUN, QUICK))
def test_killed_at_any_commit_the_next_run_finishes(shop: Shop, number: int) -> None:
    """Killed before or after any commit of a run, the next one makes every row count once."""
    with moments(kill_at(number)), pytest.raises(Killed):
        shop.bench.upgrade(shop.history)
    shop.bench.upgrade(shop.history)
    assert_settled(shop)


@pytest.mark.slow
@pytest.mark.parametrize("number", RECOVERY)
def test_killed_again_while_recovering(shop: Shop, number: int) -> None:
    """Killed after the copy, and killed again at any commit of the run that recovers."""
    with moments(kill_at(COPIED)), pytest.raises(Killed):
        shop.bench.upgrade(shop.history)
    with moments(kill_at(number)) as recorded:
        try:
            shop.bench.upgrade(shop.history)
        except Killed:
            assert len(recorded.seen) == number + 1
        else:
            assert len(recorded.seen) <= number
    shop.bench.upgrade(shop.history)
    assert_settled(shop)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_killed_while_a_constraint_is_replaced(bench: Bench, number: int) -> None:
    """Between any two statements of a replacement the table is protected by one expression."""
    items = bench.table("items", "id INT, pieces INT", "VALUES (1, 1), (1, 1), (2, 0)")
    bench.session.sql(f"ALTER TABLE {items} ADD CONSTRAINT Pieces CHECK (id > 0)")
    history = chain(
        lambda op: op.add_check(items, "pieces", "id > 0"),
        lambda op: op.replace_check(items, "pieces", "id > 0 AND pieces > 0", gate="100%"),
    )
    stamp(bench.session, bench.environment, history, "0001")

    def watch(now: int, when: str, what: str) -> None:
        assert "id > 0" in " ".join(bench.constraints(items).values())
        kill_at(6 + number)(now, when, what)

    with moments(watch), pytest.raises(Killed):
        bench.upgrade(history)
    bench.upgrade(history)
    assert bench.constraints(items) == {"pieces": "id > 0 AND pieces > 0"}
    assert bench.rows(items) == Counter({"(1, 1)": 2})
    assert bench.held(items) == Counter({"(2, 0)": 1})


@pytest.mark.slow
@pytest.mark.parametrize("number", range(2, 8))
def test_killed_while_a_revision_is_taken_back(bench: Bench, number: int) -> None:
    """A downgrade killed before or after any of its commits is finished by the next."""
    items = bench.table("items", "id INT, pieces INT", "VALUES (1, 1), (2, 0)")

    def up(op: Op) -> None:
        op.add_check(items, "pieces", "pieces > 0", gate="100%")
        op.set_not_null(items, "id")

    def down(op: Op) -> None:
        op.drop_not_null(items, "id")
        op.drop_check(items, "pieces")

    history = history_of([revision("0001", None, up, down)])
    bench.upgrade(history)
    with moments(kill_at(number)):
        try:
            bench.downgrade(history, "base")
        except Killed:
            bench.downgrade(history, "base")
    assert bench.constraints(items) == {}
    assert bench.rows(items) + bench.held(items) == Counter({"(1, 1)": 1, "(2, 0)": 1})
    assert list(bench.journal.applied) == []
    assert bench.journal.unsettled == ()
