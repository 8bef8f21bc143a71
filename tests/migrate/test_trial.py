"""One revision that only adds constraints is tried before anything is counted.

A table that takes them is not counted; what stops a run afterwards takes them back.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from delta.exceptions import ConcurrentWriteException
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql import SparkSession

from deltacheck.delta.table import history
from deltacheck.errors import (
    AppendOnlyError,
    DeltacheckError,
    ExpressionError,
    FailRuleError,
    GateError,
)
from deltacheck.ledger.lock import break_lock
from deltacheck.migrate import preflight
from deltacheck.migrate.results import RunResult
from deltacheck.names import TableName
from deltacheck.revisions.graph import History
from deltacheck.revisions.recorder import Op
from tests.migrate.bench import Bench, Killed, chain, kill_at, moments, once

COLUMNS = "id INT, amount DOUBLE"
RUN = 19
"""Moments of a run of one revision: before and after each commit, and a refused ALTER."""

slow = pytest.mark.slow

ROWS = "VALUES (1, 5.0), (2, -1.0), (3, CAST(NULL AS DOUBLE)), (4, 1.0), (4, 1.0)"


@pytest.fixture
def orders(bench: Bench) -> str:
    """Five rows, of which two have no amount that is above zero."""
    return bench.table("orders", COLUMNS, ROWS)


@pytest.fixture
def items(bench: Bench) -> str:
    """A table without a bad row."""
    return bench.table("items", COLUMNS, "VALUES (1, 1.0)")


def two_rules(orders: str, gate: str, rule: str = "amount > 0") -> History:
    """One revision: a rule that all rows satisfy, and one that some may break."""

    def upgrade(op: Op) -> None:
        op.add_check(orders, "id_positive", "id > 0")
        op.add_check(orders, "amount_positive", rule, gate=gate)

    return chain(upgrade)


def altered(bench: Bench, table: str) -> list[str]:
    """What was done to the constraints of a table, oldest first."""
    commits = history(bench.session, TableName.parse(table))
    return [one.operation for one in reversed(commits) if "CONSTRAINT" in one.operation]


def no_count(*_: object) -> None:
    raise AssertionError("rows were counted")


def connection_lost() -> None:
    raise PySparkException("the connection is gone")


def cancelled() -> None:
    raise SparkConnectGrpcException("gone", errorClass="OPERATION_CANCELED", sql_state="HY008")


def test_a_clean_table_is_not_counted(
    bench: Bench, items: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ALTER's own scan is the count, and its rows are known from metadata."""
    monkeypatch.setattr(preflight, "count_violators", no_count)
    result = bench.upgrade(two_rules(items, "0%"))
    assert [step.state for step in result.steps] == ["enforced", "enforced"]
    assert [step.violators and step.violators.total for step in result.steps] == [0, 0]
    assert all(step.seconds > 0 for step in result.steps)
    (table,) = result.tables
    assert (table.before, table.moved, table.after) == (1, 0, 1)
    assert bench.constraints(items).keys() == {"id_positive", "amount_positive"}
    journal = bench.journal
    assert (list(journal.applied), journal.unsettled) == (["0001"], ())
    assert altered(bench, items) == ["ADD CONSTRAINT"] * 2


def test_what_a_table_refuses_is_counted_and_moved(bench: Bench, orders: str) -> None:
    """The rule that holds is added at once, the other after its violators were moved."""
    written = bench.rows(orders)
    result = bench.upgrade(two_rules(orders, "2/5"))
    assert [step.violators and step.violators.total for step in result.steps] == [0, 2]
    (table,) = result.tables
    assert (table.before, table.moved, table.after) == (5, 2, 3)
    assert bench.constraints(orders).keys() == {"id_positive", "amount_positive"}
    assert bench.rows(orders) + bench.held(orders) == written
    assert bench.labels(orders) == {("amount_positive",): 2}


def stops(bench: Bench, plan: History, kind: type[DeltacheckError]) -> str:
    """Upgrade until it is stopped; what the error says."""
    with pytest.raises(kind) as stopped:
        bench.upgrade(plan)
    assert bench.journal.runs[-1].state == "stopped"
    assert bench.journal.unsettled == ()
    assert list(bench.journal.applied) == []
    return stopped.value.message


def test_a_gate_that_stops_the_run_leaves_no_constraint(bench: Bench, orders: str) -> None:
    """What was tried is dropped again, and the error tells it."""
    written = bench.rows(orders)
    message = stops(bench, two_rules(orders, "1/5"), GateError)
    assert "2 of 5 rows" in message
    assert "had taken id_positive before; it was dropped again." in message
    assert "keeps the table feature checkConstraints" in message
    assert bench.constraints(orders) == {}
    assert altered(bench, orders) == ["ADD CONSTRAINT", "DROP CONSTRAINT"]
    assert bench.rows(orders) == written
    bench.upgrade(two_rules(orders, "2/5"))
    assert bench.constraints(orders).keys() == {"id_positive", "amount_positive"}


def test_a_gate_of_the_table_counts_all_rules_of_the_revision(bench: Bench, orders: str) -> None:
    """The union of violators is what it is whether or not a rule of it was taken already."""

    def upgrade(op: Op) -> None:
        op.add_check(orders, "id_positive", "id > 0")
        op.add_check(orders, "amount_positive", "amount > 0")

    with pytest.raises(GateError) as stopped:
        bench.upgrade(chain(upgrade))
    assert stopped.value.by == {"id_positive": 0, "amount_positive": 2}
    assert (stopped.value.violators, stopped.value.rows) == (2, 5)


def test_other_tables_get_their_constraints_dropped_too(
    bench: Bench, orders: str, items: str
) -> None:
    """One table's gate stops the run for all."""

    def upgrade(op: Op) -> None:
        op.add_check(items, "amount_positive", "amount > 0")
        op.add_check(orders, "amount_positive", "amount > 0", gate=1)

    message = stops(bench, chain(upgrade), GateError)
    assert f"{items} had taken amount_positive before; it was dropped again." in message
    assert bench.constraints(items) == bench.constraints(orders) == {}


def test_a_constraint_that_was_there_before_stays(bench: Bench, orders: str) -> None:
    """Only what the run itself has added is dropped again."""
    bench.session.sql(f"ALTER TABLE {orders} ADD CONSTRAINT id_positive CHECK (id > 0)")
    message = stops(bench, two_rules(orders, "1/5"), GateError)
    assert "dropped" not in message
    assert bench.constraints(orders).keys() == {"id_positive"}


@pytest.mark.parametrize(
    ("rule", "violators", "extra", "kind"),
    [
        ("amount > 0", "fail", "", FailRuleError),
        pytest.param("1 / (id - 1) > -1", "quarantine", "", ExpressionError, marks=slow),
        pytest.param("amount > 0", "quarantine", "delta.appendOnly", AppendOnlyError, marks=slow),
    ],
)
def test_whatever_else_stops_the_run(
    bench: Bench,
    orders: str,
    rule: str,
    violators: Literal["quarantine", "fail"],
    extra: str,
    kind: type[DeltacheckError],
) -> None:
    """A rule that fails, one that cannot be evaluated, a table whose rows cannot be moved."""
    if extra:
        bench.session.sql(f"ALTER TABLE {orders} SET TBLPROPERTIES ('{extra}' = 'true')")

    def upgrade(op: Op) -> None:
        op.add_check(orders, "id_positive", "id > 0")
        op.add_check(orders, "other", rule, violators=violators, gate="100%")

    assert "dropped again" in stops(bench, chain(upgrade), kind)
    assert bench.constraints(orders) == {}


def test_a_quarantine_that_cannot_be_made_takes_back_what_was_tried(
    bench: Bench, orders: str
) -> None:
    """Nothing is enforced of a revision whose rows cannot go anywhere."""
    bench.session.sql(f"CREATE VIEW {bench.quarantine(orders).sql} AS SELECT 1 AS one")
    with pytest.raises(DeltacheckError):
        bench.upgrade(two_rules(orders, "100%"))
    assert bench.constraints(orders) == {}


def test_nothing_is_tried_before_a_review(bench: Bench, orders: str) -> None:
    """Who is asked first sees what was counted, and a no leaves the table as it was."""

    def review(plan: RunResult) -> None:
        assert [table.moved for table in plan.tables] == [2]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.upgrade(two_rules(orders, "100%"), review=review)
    assert altered(bench, orders) == []


def test_several_revisions_are_counted_first(bench: Bench, orders: str, items: str) -> None:
    """A revision is not enforced ahead of the one before it."""
    plan = chain(
        lambda op: op.add_check(items, "amount_positive", "amount > 0"),
        lambda op: op.add_check(orders, "amount_positive", "amount > 0", gate=1),
    )
    with pytest.raises(GateError):
        bench.upgrade(plan)
    assert altered(bench, items) == altered(bench, orders) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", range(RUN))
def test_killed_at_any_commit_the_next_run_finishes(bench: Bench, orders: str, number: int) -> None:
    """Killed before or after any commit of a run whose second rule has violators."""
    written = bench.rows(orders)
    with moments(kill_at(number)), pytest.raises(Killed):
        bench.upgrade(two_rules(orders, "2/5"))
    bench.upgrade(two_rules(orders, "2/5"))
    assert bench.constraints(orders).keys() == {"id_positive", "amount_positive"}
    assert bench.rows(orders) == {"(1, 5.0)": 1, "(4, 1.0)": 2}
    assert bench.rows(orders) + bench.held(orders) == written
    assert bench.journal.unsettled == ()


def test_all_commits_of_a_run_are_killed(bench: Bench, orders: str) -> None:
    """The run has as many moments as the tests above try."""
    with moments() as recorded:
        bench.upgrade(two_rules(orders, "2/5"))
    assert len(recorded.seen) == RUN


@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=() if n in (5, 9) else slow) for n in range(4, 11)],
)
def test_killed_while_it_is_taken_back(bench: Bench, orders: str, number: int) -> None:
    """Killed between the first constraint and the end of a run that a gate stops: the next run is
    stopped as well, no row moved; once the gate allows, all is there."""
    written = bench.rows(orders)
    with moments(kill_at(number)), pytest.raises(Killed):
        bench.upgrade(two_rules(orders, "1/5"))
    with pytest.raises(GateError):
        bench.upgrade(two_rules(orders, "1/5"))
    assert bench.rows(orders) == written
    assert bench.constraints(orders).keys() <= {"id_positive"}
    bench.upgrade(two_rules(orders, "2/5"))
    assert bench.constraints(orders).keys() == {"id_positive", "amount_positive"}
    assert bench.rows(orders) + bench.held(orders) == written
    assert bench.journal.unsettled == ()


def test_a_run_that_lost_its_lock_drops_nothing(bench: Bench, orders: str) -> None:
    """The constraints may be another run's by now: the error tells what may still be there."""

    def lose() -> None:
        break_lock(bench.session, bench.environment)

    with (
        moments(once(("before", "orders amount_positive"), lose)),
        pytest.raises(GateError, match="may still enforce"),
    ):
        bench.upgrade(two_rules(orders, "1/5"))
    assert bench.constraints(orders).keys() == {"id_positive"}


def test_a_drop_that_loses_to_a_writer_looks_at_the_lock_again(bench: Bench, orders: str) -> None:
    """DROP meets a conflict, and meanwhile the lock is lost: it is not tried once more.

    Kind of bug: a statement that is tried again past another run's taking over.
    """

    def lose() -> None:
        break_lock(bench.session, bench.environment)
        raise ConcurrentWriteException("another writer was first")

    losing = once(("before", "orders id_positive"), lose, past=1)
    with moments(losing), pytest.raises(GateError, match="may still enforce"):
        bench.upgrade(two_rules(orders, "1/5"))
    assert altered(bench, orders) == ["ADD CONSTRAINT"]


def test_a_drop_that_loses_to_a_writer_is_tried_again(bench: Bench, orders: str) -> None:
    """A conflict alone does not leave behind what was tried."""

    def conflict() -> None:
        raise ConcurrentWriteException("another writer was first")

    losing = once(("before", "orders id_positive"), conflict, past=1)
    with moments(losing), pytest.raises(GateError, match="it was dropped again"):
        bench.upgrade(two_rules(orders, "1/5"))
    assert altered(bench, orders) == ["ADD CONSTRAINT", "DROP CONSTRAINT"]


def test_what_could_not_be_dropped_is_settled_by_the_next_run(bench: Bench, orders: str) -> None:
    """DROP fails: the run counts as failed, so the next one fences off what may be in flight."""
    losing = once(("before", "orders id_positive"), connection_lost, past=1)
    with moments(losing), pytest.raises(GateError, match="may still enforce"):
        bench.upgrade(two_rules(orders, "1/5"))
    assert bench.journal.runs[-1].state == "failed"
    assert bench.constraints(orders).keys() == {"id_positive"}
    bench.upgrade(two_rules(orders, "2/5"))
    assert bench.constraints(orders).keys() == {"id_positive", "amount_positive"}
    assert bench.journal.unsettled == ()


def test_a_stop_after_the_trial_drops_it_as_well(bench: Bench, orders: str) -> None:
    """Violators that come between the count and the first move break the gate: nothing has moved.

    Kind of bug: only what stopped the run during the trial dropped what was tried.
    """
    late = f"INSERT INTO {orders} VALUES (7, -7.0), (8, -8.0), (9, -9.0)"
    with (
        moments(once(("before", "orders_quarantine"), lambda: bench.session.sql(late))),
        pytest.raises(GateError, match="it was dropped again") as stopped,
    ):
        bench.upgrade(two_rules(orders, "2/5"))
    assert (stopped.value.violators, stopped.value.rows) == (5, 8)
    assert bench.constraints(orders) == {}
    assert bench.held(orders) == {}


def test_what_moved_rows_keeps_its_constraints_and_says_so(bench: Bench, orders: str) -> None:
    """Late violators break the gate after others were moved: the rules that hold stay."""
    late = f"INSERT INTO {orders} VALUES (7, -7.0), (8, -8.0), (9, -9.0)"
    adding = ("before", "orders amount_positive")
    with (
        moments(once(adding, lambda: bench.session.sql(late), past=1)),
        pytest.raises(GateError, match=r"2 rows were moved .* enforces id_positive already"),
    ):
        bench.upgrade(two_rules(orders, "2/5"))
    assert bench.constraints(orders).keys() == {"id_positive"}
    assert sum(bench.held(orders).values()) == 2


@pytest.mark.parametrize("lost", [connection_lost, cancelled])
def test_an_answer_that_is_lost_is_fenced_off(
    bench: Bench, orders: str, lost: Callable[[], None]
) -> None:
    """An ALTER that may still be running cannot land after the run has judged the table.

    Kind of bug: only errors without a condition of Spark's counted as lost answers.
    """
    with moments(once(("before", "orders amount_positive"), lost)) as recorded:
        bench.upgrade(two_rules(orders, "2/5"))
    assert recorded.seen.count(("before", "orders fence")) == 2
    assert bench.constraints(orders).keys() == {"id_positive", "amount_positive"}


def test_another_writers_commit_while_it_is_tried(bench: Bench, items: str) -> None:
    """A violator that comes just before ALTER is found by it, counted and moved."""
    late = f"INSERT INTO {items} VALUES (7, -7.0)"
    with moments(once(("before", "items amount_positive"), lambda: bench.session.sql(late))):
        result = bench.upgrade(two_rules(items, "1/2"))
    assert [step.violators and step.violators.total for step in result.steps] == [0, 1]
    (table,) = result.tables
    assert (table.before, table.moved, table.after) == (2, 1, 1)
    assert bench.held(items) == {"(7, -7.0)": 1}


def test_a_log_that_is_cleaned_up_while_a_table_is_tried(bench: Bench) -> None:
    """The version of the first look is gone when rows are counted at it: a figure, no more.

    Kind of bug: a run that had done all that it was asked for took it back.
    """
    each = "TBLPROPERTIES ('delta.checkpointInterval' = '1')"
    table = bench.table("busy", "id INT, amount DOUBLE", "VALUES (1, 1.0)", each)
    log = Path(bench.read(table).location.removeprefix("file:")) / "_delta_log"

    def writer() -> None:
        old = [file for file in log.iterdir() if file.is_file()]
        bench.session.sql(f"INSERT INTO {table} VALUES (2, 2.0)")
        for file in old:
            file.unlink(missing_ok=True)

    with moments(once(("after", "busy amount_positive"), writer)):
        result = bench.upgrade(two_rules(table, "0"))

    assert [step.state for step in result.steps] == ["enforced", "enforced"]
    assert bench.constraints(table).keys() == {"id_positive", "amount_positive"}
    assert bench.rows(table).total() == 2


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """The embedded session: an interrupted statement is the subject of other tests."""
    return spark
