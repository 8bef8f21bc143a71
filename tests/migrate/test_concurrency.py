"""Other writers during an upgrade: whatever they do, each row ends in exactly one place."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest
from delta.exceptions import ConcurrentAppendException

import deltacheck
from deltacheck.delta.failures import EngineFailure
from deltacheck.delta.session import verdict_session
from deltacheck.errors import BusyTableError, ConstraintError, FailRuleError, GateError
from deltacheck.migrate import enforce
from deltacheck.names import TableName
from deltacheck.quarantine.holding import Desk, Selection, holding
from deltacheck.quarantine.releasing import release_rows
from deltacheck.revisions.graph import History
from deltacheck.revisions.recorder import Op
from tests.migrate.bench import Bench, Killed, Rows, chain, moments, once

COLUMNS = "id INT, amount DOUBLE"
START = "VALUES (1, 5.0), (2, -1.0), (2, -1.0), (3, CAST(NULL AS DOUBLE))"


@pytest.fixture
def orders(bench: Bench) -> str:
    return bench.table("orders", COLUMNS, START)


def positive(orders: str, gate: str = "100%", expression: str = "amount > 0") -> History:
    return chain(lambda op: op.add_check(orders, "amount_positive", expression, gate=gate))


def everything(bench: Bench, table: str) -> Rows:
    return bench.rows(table) + bench.held(table)


def assert_clean(bench: Bench, orders: str, written: Rows) -> None:
    """Each row in one place, no violator left, one journal that says so."""
    assert everything(bench, orders) == written
    assert all(float(row.split(",")[1].strip(" )")) > 0 for row in bench.rows(orders))
    assert bench.constraints(orders) == {"amount_positive": "amount > 0"}
    assert bench.journal.unsettled == ()


BEFORE_DELETE, BEFORE_ADD = ("before", "orders"), ("before", "orders amount_positive")
TRIED = 1
"""How often a constraint was tried before the rows that break it are moved."""

BEFORE_COPY = ("before", "orders_quarantine")
LOCKED = ("after", "journal 1/0")
AFTER_DELETE, AFTER_COPY = ("after", "orders"), ("after", "orders_quarantine")


@pytest.mark.parametrize(
    ("moment", "amount", "past"),
    [
        (BEFORE_DELETE, "-7.0", 0),
        pytest.param(BEFORE_DELETE, "7.0", 0, marks=pytest.mark.slow),
        pytest.param(AFTER_COPY, "-7.0", 0, marks=pytest.mark.slow),
        pytest.param(AFTER_DELETE, "-7.0", 0, marks=pytest.mark.slow),
        pytest.param(BEFORE_ADD, "-7.0", 0, marks=pytest.mark.slow),
        pytest.param(BEFORE_ADD, "-7.0", TRIED, marks=pytest.mark.slow),
        pytest.param(BEFORE_ADD, "7.0", TRIED, marks=pytest.mark.slow),
    ],
)
def test_a_row_that_comes_in_between(
    bench: Bench, orders: str, moment: tuple[str, str], amount: str, past: int
) -> None:
    """A row appended between two steps is moved if it is bad and stays if it is good."""
    written = bench.rows(orders) + Counter({f"(9, {amount})": 1})
    append = f"INSERT INTO {orders} VALUES (9, {amount})"
    with moments(once(moment, lambda: bench.session.sql(append), past=past)):
        bench.upgrade(positive(orders))
    assert_clean(bench, orders, written)


def test_violators_swapped_for_as_many_others(bench: Bench, orders: str) -> None:
    """Between copy and DELETE one violator goes and another comes: equal counts deceive nobody."""

    def swap() -> None:
        bench.session.sql(f"DELETE FROM {orders} WHERE id = 3")
        bench.session.sql(f"INSERT INTO {orders} VALUES (8, -8.0)")

    with moments(once(BEFORE_DELETE, swap)):
        bench.upgrade(positive(orders))
    assert_clean(bench, orders, Counter({"(1, 5.0)": 1, "(2, -1.0)": 2, "(8, -8.0)": 1}))


@pytest.mark.slow
def test_violators_repaired_by_others_are_not_kept(bench: Bench, orders: str) -> None:
    """All violators are repaired between copy and DELETE: the copy goes, no row is doubled."""
    repair = f"UPDATE {orders} SET amount = 1.0 WHERE amount < 0 OR amount IS NULL"
    with moments(once(BEFORE_DELETE, lambda: bench.session.sql(repair))):
        result = bench.upgrade(positive(orders))
    assert result.tables[0].moved == 0
    assert bench.held(orders) == Counter()
    assert_clean(bench, orders, Counter({"(1, 5.0)": 1, "(2, 1.0)": 2, "(3, 1.0)": 1}))


@pytest.mark.slow
def test_a_column_that_comes_in_between_is_quarantined_with_its_values(
    bench: Bench, orders: str
) -> None:
    """A column gained between count and DELETE goes with the rows that have values in it."""

    def evolve() -> None:
        bench.session.sql(f"ALTER TABLE {orders} ADD COLUMN note STRING")
        bench.session.sql(f"UPDATE {orders} SET note = 'late' WHERE id = 2")

    with moments(once(BEFORE_DELETE, evolve)):
        bench.upgrade(positive(orders))
    assert bench.rows(orders) == Counter({"(1, 5.0, None)": 1})
    assert bench.held(orders) == Counter({"(2, -1.0, 'late')": 2, "(3, None, None)": 1})


@pytest.mark.slow
def test_files_rewritten_in_between(bench: Bench, orders: str) -> None:
    """OPTIMIZE between copy and DELETE changes no row, and none is lost by it."""
    bench.session.sql(f"INSERT INTO {orders} VALUES (4, 4.0)")
    written = bench.rows(orders)
    with moments(once(BEFORE_DELETE, lambda: bench.session.sql(f"OPTIMIZE {orders}"))):
        bench.upgrade(positive(orders))
    assert_clean(bench, orders, written)


@pytest.mark.slow
def test_the_same_constraint_added_by_another_client(bench: Bench, orders: str) -> None:
    """Someone adds the very constraint first: it is read back and counts as enforced."""
    bench.session.sql(f"DELETE FROM {orders} WHERE amount < 0 OR amount IS NULL")
    add = f"ALTER TABLE {orders} ADD CONSTRAINT amount_positive CHECK (AMOUNT > 0)"
    with moments(once(BEFORE_ADD, lambda: bench.session.sql(add))):
        result = bench.upgrade(positive(orders))
    assert [step.state for step in result.steps] == ["enforced"]


@pytest.mark.slow
def test_a_name_taken_by_another_client_is_not_taken_from_it(bench: Bench, orders: str) -> None:
    """Someone adds another rule under the name: it stays, and the run says so."""
    bench.session.sql(f"DELETE FROM {orders} WHERE amount < 0 OR amount IS NULL")
    add = f"ALTER TABLE {orders} ADD CONSTRAINT amount_positive CHECK (id > 0)"
    with (
        moments(once(BEFORE_ADD, lambda: bench.session.sql(add))),
        pytest.raises(ConstraintError, match="already"),
    ):
        bench.upgrade(positive(orders))
    assert bench.constraints(orders) == {"amount_positive": "id > 0"}


def conflict() -> None:
    raise ConcurrentAppendException("another writer was first")


def failing(*moments_: tuple[str, str]) -> Callable[[int, str, str], None]:
    """At each of these moments, in this order, another writer's commit wins."""
    left = list(moments_)

    def act(number: int, when: str, what: str) -> None:
        if left and (when, what) == left[0]:
            left.pop(0)
            conflict()

    return act


def test_no_copy_is_forgotten_when_settling_it_fails_too(bench: Bench, orders: str) -> None:
    """DELETE loses to a writer, and so does taking the copy back: it is taken back later.

    Kind of bug: a try that failed twice left its copy behind, and the run ended as done.
    """
    written = bench.rows(orders)
    quarantine = ("before", "orders_quarantine")
    losing = failing(BEFORE_DELETE, quarantine)
    with moments(losing):
        bench.upgrade(positive(orders))
    assert_clean(bench, orders, written)
    assert len(bench.copies(orders)) == 1


@pytest.mark.slow
def test_giving_up_leaves_nothing_half_done(
    bench: Bench, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that always wins: the run gives up, names it, and no copy stays behind."""
    written = bench.rows(orders)
    monkeypatch.setattr(enforce, "TRIES", 2)

    def always(number: int, when: str, what: str) -> None:
        if (when, what) == BEFORE_DELETE:
            bench.session.sql(f"INSERT INTO {orders} VALUES (7, 7.0)")
            conflict()

    with (
        moments(always),
        pytest.raises(BusyTableError, match="since the run began: 2 WRITE by Apache-Spark"),
    ):
        bench.upgrade(positive(orders))
    assert bench.held(orders) == Counter()
    assert bench.rows(orders) == written + Counter({"(7, 7.0)": 2})
    assert bench.journal.unsettled == ()
    assert bench.journal.runs[-1].state == "stopped"
    bench.upgrade(positive(orders))
    assert_clean(bench, orders, written + Counter({"(7, 7.0)": 2}))


def test_giving_up_names_jobs_that_write_through_the_wrapper(
    bench: Bench, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What keeps winning is a guarded job: it is named like any other writer.

    Kind of bug: commits with a tag of deltacheck's counted as the run's own.
    """
    monkeypatch.setattr(enforce, "TRIES", 2)
    batch = bench.session.sql("SELECT 7 AS id, 7.0D AS amount")

    writing: list[str] = []

    def always(number: int, when: str, what: str) -> None:
        if (when, what) == BEFORE_DELETE and not writing:
            writing.append(what)
            deltacheck.write(batch, orders, job="nightly")
            writing.clear()
            conflict()

    with (
        moments(always),
        pytest.raises(BusyTableError, match=r"2 WRITE by Apache-Spark.*, job nightly"),
    ):
        bench.upgrade(positive(orders))


def test_late_violators_are_under_the_same_gate(bench: Bench, orders: str) -> None:
    """3 of 4 rows are allowed; 3 late ones more are not: the run stops, and says what it moved."""
    late = f"INSERT INTO {orders} VALUES (7, -7.0), (7, -7.0), (7, -7.0)"
    with (
        moments(once(BEFORE_ADD, lambda: bench.session.sql(late), past=TRIED)),
        pytest.raises(GateError, match="3 rows were moved") as stopped,
    ):
        bench.upgrade(positive(orders, gate="3/4"))
    assert (stopped.value.violators, stopped.value.rows) == (6, 7)
    assert bench.held(orders) == Counter({"(2, -1.0)": 2, "(3, None)": 1})
    assert bench.journal.unsettled == ()


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_while_the_copy_is_repaired(bench: Bench, orders: str, when: str) -> None:
    """A violator came between copy and DELETE; the process dies as it puts the copy right."""
    written = bench.rows(orders) + Counter({"(9, -9.0)": 1})
    seen: list[str] = []

    def act(number: int, now: str, what: str) -> None:
        if (now, what) == BEFORE_DELETE and not seen:
            seen.append(what)
            bench.session.sql(f"INSERT INTO {orders} VALUES (9, -9.0)")
        elif seen and (now, what) == (when, "orders_quarantine"):
            raise Killed

    with moments(act), pytest.raises(Killed):
        bench.upgrade(positive(orders))
    bench.upgrade(positive(orders))
    assert_clean(bench, orders, written)


def test_giving_up_says_what_was_moved_and_leaves_it_there(
    bench: Bench, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A violator comes before each ALTER, the trial too: two tries move what was there."""
    monkeypatch.setattr(enforce, "TRIES", 2)

    def always(number: int, when: str, what: str) -> None:
        if (when, what) == BEFORE_ADD:
            bench.session.sql(f"INSERT INTO {orders} VALUES (7, -7.0)")

    with moments(always), pytest.raises(BusyTableError, match=r"5 rows were moved .* stay there"):
        bench.upgrade(positive(orders))
    assert bench.held(orders) == {"(2, -1.0)": 2, "(3, None)": 1, "(7, -7.0)": 2}
    assert bench.rows(orders) == {"(1, 5.0)": 1, "(7, -7.0)": 1}


@pytest.mark.slow
def test_violators_that_come_with_the_delete_are_under_the_gate_too(
    bench: Bench, orders: str
) -> None:
    """Rows that the DELETE took beyond what was counted stop the run, and are in quarantine."""
    late = f"INSERT INTO {orders} VALUES (7, -7.0), (7, -7.0), (7, -7.0)"
    with (
        moments(once(BEFORE_DELETE, lambda: bench.session.sql(late))),
        pytest.raises(GateError, match="6 rows were moved") as stopped,
    ):
        bench.upgrade(positive(orders, gate="3/4"))
    assert (stopped.value.violators, stopped.value.rows) == (6, 7)
    assert sum(bench.held(orders).values()) == 6
    assert bench.constraints(orders) == {}


@pytest.mark.slow
def test_a_gate_is_charged_for_its_own_rule_alone(bench: Bench, orders: str) -> None:
    """Rows moved for one rule do not count against the gate of another, over tries and revisions.

    Kind of bug: everything that the run had moved counted against every gate.
    """
    history = chain(
        lambda op: op.add_check(orders, "amount_positive", "amount > 0", gate="100%"),
        lambda op: op.add_check(orders, "id_small", "id < 9", gate=1),
    )
    late = f"INSERT INTO {orders} VALUES (9, 9.0)"
    with moments(once(("before", "orders id_small"), lambda: bench.session.sql(late))):
        bench.upgrade(history)
    assert sum(bench.held(orders).values()) == 4


@pytest.mark.slow
def test_the_journal_tells_a_table_by_its_id_before_a_late_violator_is_moved(bench: Bench) -> None:
    """Whoever settles the run when it died must know the table from another of its name."""
    orders = bench.table("orders", COLUMNS, "VALUES (1, 5.0)")
    late = f"INSERT INTO {orders} VALUES (9, -9.0)"
    announced: set[tuple[str | None, int]] = set()

    def act(number: int, when: str, what: str) -> None:
        if (when, what) == BEFORE_ADD and not announced:
            bench.session.sql(late)
        if (when, what) == BEFORE_COPY:
            (touched,) = bench.journal.runs[-1].tables
            announced.add((touched.id, touched.version))

    with moments(act):
        # With a count first, as a review asks for: the row comes after it.
        outcome = bench.upgrade(positive(orders), review=lambda _: None).tables[0]
    assert announced == {(bench.read(orders).id, 2)}
    assert (outcome.before, outcome.moved, outcome.after) == (1, 1, 1)
    assert bench.held(orders) == Counter({"(9, -9.0)": 1})


@pytest.mark.parametrize("moment", [LOCKED, BEFORE_ADD])
def test_rows_that_came_in_the_course_of_a_run_are_among_those_after_it(
    bench: Bench, moment: tuple[str, str]
) -> None:
    """Another writer's good row: nothing was moved, and the table has grown."""
    orders = bench.table("orders", COLUMNS, "VALUES (1, 5.0)")
    late = f"INSERT INTO {orders} VALUES (9, 9.0)"
    with moments(once(moment, lambda: bench.session.sql(late))) as recorded:
        outcome = bench.upgrade(positive(orders)).tables[0]
    assert moment in recorded.seen
    assert (outcome.before, outcome.moved, outcome.after) == (1, 0, 2)


@pytest.mark.slow
def test_late_violators_of_a_fail_rule_stay_where_they_are(bench: Bench, orders: str) -> None:
    """A rule whose migration says "fail" moves no row, not even one that comes late."""

    def both(op: Op) -> None:
        op.add_check(orders, "amount_positive", "amount > 0", gate="100%")
        op.add_check(orders, "id_small", "id < 9", violators="fail")

    history = chain(both)
    late = f"INSERT INTO {orders} VALUES (9, 9.0)"
    with (
        moments(once(BEFORE_DELETE, lambda: bench.session.sql(late))),
        pytest.raises(FailRuleError, match="id_small"),
    ):
        bench.upgrade(history)
    assert bench.rows(orders) == Counter({"(1, 5.0)": 1, "(9, 9.0)": 1})
    assert bench.journal.unsettled == ()


@pytest.mark.slow
def test_a_constant_appender(bench: Bench, orders: str) -> None:
    """Under a client that appends good and bad rows all the while, every row counts once."""
    written, refused = bench.rows(orders), 0
    stop = threading.Event()

    def append() -> None:
        nonlocal refused
        session = bench.session.newSession()
        number = 0
        while not stop.wait(0.2):
            number += 1
            amount = float(number if number % 3 else -number)
            try:
                session.sql(f"INSERT INTO {orders} VALUES ({number}, {amount})")
            except EngineFailure:
                refused += 1
            else:
                written[f"({number}, {amount})"] += 1

    thread = threading.Thread(target=append)
    thread.start()
    try:
        # Conservation is promised, not progress: a machine that scans slower than the client
        # writes gives up, and the next run goes on where it stopped.
        with suppress(BusyTableError):
            bench.upgrade(positive(orders))
    finally:
        stop.set()
        thread.join()
    bench.upgrade(positive(orders))
    assert_clean(bench, orders, written)


@pytest.mark.slow
def test_a_release_claims_no_row_of_a_run_that_began_meanwhile(bench: Bench, orders: str) -> None:
    """Rows that a run has copied, and not yet deleted, are not written back to the table.

    Kind of bug: a release that had looked before claimed them, so they were in the table twice.
    """
    bench.upgrade(positive(orders))
    bench.session.sql(f"INSERT INTO {orders} VALUES (9, 9.0)")
    history = chain(
        lambda op: op.add_check(orders, "amount_positive", "amount > 0", gate="100%"),
        lambda op: op.add_check(orders, "id_small", "id < 9", gate="100%"),
    )

    def die(number: int, when: str, what: str) -> None:
        if (when, what) == BEFORE_DELETE:
            raise Killed

    def die_with_a_copy() -> None:
        with moments(die), pytest.raises(Killed):
            bench.upgrade(history)

    name = TableName.parse(orders)
    claiming = once(("before", "orders_quarantine claim"), die_with_a_copy)
    with moments(claiming), verdict_session(bench.session) as ours:
        place = holding(Desk(ours, bench.session, bench.environment), name)
        release_rows(place, bench.session, Selection(), repairs=["amount = abs(amount)"])
    bench.upgrade(history)
    assert bench.rows(orders) == Counter({"(1, 5.0)": 1, "(2, 1.0)": 2})
    assert bench.held(orders) == Counter({"(3, None)": 1, "(9, 9.0)": 1})
