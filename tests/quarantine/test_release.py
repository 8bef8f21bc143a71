"""Quarantined rows go back to their table: those that pass today's rules, each exactly once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from deltacheck import quarantine
from deltacheck.config import Environment
from deltacheck.errors import ExpressionError, QuarantineError
from tests.cli.shop import Shop
from tests.harness.marks import connect_is_slow
from tests.quarantine.held import hold, make_table, rows, states, upgrade


@pytest.fixture
def table(session: SparkSession, database: str) -> str:
    """A table of orders under two rules, without rows."""
    name = f"{database}.orders"
    make_table(session, name)
    return name


def test_rows_that_pass_go_back_and_the_others_stay_with_a_fresh_reason(
    any_spark: SparkSession, table: str
) -> None:
    """A good row of a bad batch is released; a row that a rule dropped since no longer holds
    back is, too; a bad one keeps only the reasons that hold today."""
    hold(any_spark, table, "(1, 5, 'new'), (2, -5, 'new'), (3, 7, 'lost'), (4, -1, 'lost')")
    any_spark.sql(f"ALTER TABLE {table} DROP CONSTRAINT status_known")

    done = quarantine.release(table, session=any_spark)

    assert (done.rows, done.kept, done.broken) == (2, 2, {"amount_positive": 2})
    assert rows(any_spark, table, "id, amount, status") == {(1, 5, "new"): 1, (3, 7, "lost"): 1}
    assert states(any_spark, table) == {1: "released", 2: "held", 3: "released", 4: "held"}
    reasons = any_spark.sql(f"SELECT id, _deltacheck_rules FROM {table}_quarantine WHERE id > 3")
    assert [tuple(row) for row in reasons.collect()] == [(4, ["amount_positive"])]


def test_a_second_release_finds_nothing_more_to_do(session: SparkSession, table: str) -> None:
    """Released rows are not released again."""
    hold(session, table, "(1, 5, 'new'), (1, 5, 'new')")

    first = quarantine.release(table, session=session)
    second = quarantine.release(table, session=session)

    assert (first.rows, second.rows) == (2, 0)
    assert rows(session, table) == {(1,): 2}


@connect_is_slow
def test_a_repair_reaches_the_rows_that_then_pass_and_no_others(
    any_spark: SparkSession, table: str
) -> None:
    """``amount = abs(amount)`` lets a row back repaired; one that still breaks a rule stays as
    it was."""
    hold(any_spark, table, "(1, -5, 'new'), (2, -7, 'lost')")

    done = quarantine.release(table, repairs=["amount = abs(amount)"], session=any_spark)

    assert (done.rows, done.kept, done.broken) == (1, 1, {"status_known": 1})
    assert rows(any_spark, table, "id, amount") == {(1, 5): 1}
    assert rows(any_spark, f"{table}_quarantine", "id, amount") == {(1, 5): 1, (2, -7): 1}


def test_repairs_see_the_row_as_it_was(session: SparkSession, table: str) -> None:
    """Two repairs that name each other's column do not depend on their order."""
    hold(session, table, "(3, -5, 'new')")

    quarantine.release(table, repairs=["id = amount", "amount = CAST(id AS INT)"], session=session)

    assert rows(session, table, "id, amount") == {(-5, 3): 1}


IMPOSSIBLE_REPAIRS = [
    "amount",
    "= 5",
    "amount = ",
    "price = 5",
    "amount = price",
    "amount = (SELECT 1)",
    "amount = rand()",
    "amount = 1, status = 'new'",
    "amount = 1) OR (1 = 1",
    "amount = 1 WHERE true",
    "amount = array(1)",
    "status.x = 'new'",
]


def test_a_repair_that_cannot_be_is_refused_before_anything_is_written(
    session: SparkSession, table: str
) -> None:
    """A repair is one column of the table and one expression about one row."""
    hold(session, table, "(1, -5, 'new')")

    for repair in IMPOSSIBLE_REPAIRS:
        with pytest.raises(ExpressionError):
            quarantine.release(table, repairs=[repair], session=session)
    with pytest.raises(ExpressionError, match="twice"):
        quarantine.release(table, repairs=["amount = 1", "AMOUNT = 2"], session=session)

    assert rows(session, table) == Counter()
    assert states(session, table) == {1: "held"}


def test_only_the_rows_asked_for_are_released(session: SparkSession, table: str) -> None:
    """By a condition over the table's columns, by a rule, by the batch they came with."""
    session.sql(f"ALTER TABLE {table} DROP CONSTRAINT amount_positive")
    session.sql(f"ALTER TABLE {table} DROP CONSTRAINT status_known")
    hold(session, table, "(1, 5, 'new'), (2, 6, 'new')")
    second = hold(session, table, "(3, 5, 'new'), (4, 6, 'new')")

    quarantine.release(table, where="amount = 6", run=second, session=session)
    assert rows(session, table) == {(4,): 1}

    quarantine.release(table, where="ID < 2", session=session)
    assert rows(session, table) == {(1,): 1, (4,): 1}

    nothing = quarantine.release(table, rules=["amount_positive"], session=session)
    assert nothing.rows == 0


def test_a_condition_that_cannot_be_is_refused(session: SparkSession, table: str) -> None:
    """A condition is one boolean expression about one row."""
    hold(session, table, "(1, 5, 'new')")

    for where in ("price > 1", "amount +", "amount", "(SELECT true)", "rand() > 1"):
        with pytest.raises(ExpressionError):
            quarantine.release(table, where=where, session=session)

    assert states(session, table) == {1: "held"}


def test_a_dry_run_counts_and_writes_nothing(session: SparkSession, table: str) -> None:
    """What would go back, and what would stay and why."""
    hold(session, table, "(1, 5, 'new'), (2, -5, 'lost')")
    before = session.sql(f"DESCRIBE HISTORY {table}_quarantine").count()

    done = quarantine.release(table, dry_run=True, session=session)

    assert (done.rows, done.kept) == (1, 1)
    assert done.broken == {"amount_positive": 1, "status_known": 1}
    assert done.release is None
    assert rows(session, table) == Counter()
    assert session.sql(f"DESCRIBE HISTORY {table}_quarantine").count() == before


def test_nothing_was_ever_quarantined(session: SparkSession, table: str) -> None:
    """A table without a quarantine has nothing to release."""
    assert quarantine.release(table, session=session).rows == 0


def test_source_rows_are_not_appended_blindly(session: SparkSession, table: str) -> None:
    """Rows of a guarded MERGE or of an overwrite wait for somebody to say what they are."""
    hold(session, table, "(1, 5, 'new')", source="guard")
    hold(session, table, "(2, 5, 'new')", source="overwrite")

    with pytest.raises(QuarantineError, match="append") as refusal:
        quarantine.release(table, session=session)
    assert "guarded write" in refusal.value.message
    assert rows(session, table) == Counter()

    assert quarantine.release(table, append=True, session=session).rows == 2
    assert rows(session, table) == {(1,): 1, (2,): 1}


def test_other_rows_do_not_wait_for_source_rows(session: SparkSession, table: str) -> None:
    """What can be released is; the rest is counted."""
    hold(session, table, "(1, 5, 'new')", source="guard")
    hold(session, table, "(2, 5, 'new')")

    done = quarantine.release(table, session=session)

    assert (done.rows, done.undecided) == (1, 1)
    assert rows(session, table) == {(2,): 1}


@connect_is_slow
def test_an_action_is_given_the_rows_that_pass(any_spark: SparkSession, table: str) -> None:
    """A MERGE of the user's own takes the place of the append."""
    any_spark.sql(f"INSERT INTO {table} VALUES (1, 1, 'new')")
    hold(any_spark, table, "(1, 9, 'paid'), (2, -9, 'paid')", source="guard")

    def merge(updates: DataFrame) -> None:
        updates.createOrReplaceTempView("updates")
        updates.sparkSession.sql(
            f"MERGE INTO {table} t USING updates u ON t.id = u.id WHEN MATCHED THEN UPDATE SET *"
        )

    done = quarantine.release(table, action=merge, session=any_spark)

    assert (done.rows, done.kept) == (1, 1)
    assert rows(any_spark, table, "id, amount, status") == {(1, 9, "paid"): 1}
    assert states(any_spark, table) == {1: "released", 2: "held"}


def test_an_action_that_raises_leaves_the_rows_held(session: SparkSession, table: str) -> None:
    """Its error passes through, and the rows can be released by another call."""
    hold(session, table, "(1, 5, 'new')", source="guard")

    def fail(_: DataFrame) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        quarantine.release(table, action=fail, session=session)

    assert states(session, table) == {1: "held"}
    assert quarantine.release(table, append=True, session=session).rows == 1


@connect_is_slow
def test_rows_that_a_run_moved_go_back_once_they_pass(
    any_spark: SparkSession, database: str, environment: Environment, tmp_path: Path
) -> None:
    """Every row is in exactly one place, before and after."""
    table = f"{database}.orders"
    project = Shop.make(tmp_path, environment).folder
    make_table(any_spark, table, rules={})
    any_spark.sql(f"INSERT INTO {table} VALUES (1, 5, 'new'), (2, -5, 'new'), (2, -5, 'new')")
    upgrade(any_spark, environment, table, {"amount_positive": "amount > 0"})
    assert rows(any_spark, table) == {(1,): 1}

    done = quarantine.release(
        table, repairs=["amount = -amount"], session=any_spark, project=project
    )

    assert (done.rows, done.unsettled) == (2, 0)
    assert rows(any_spark, table, "id, amount") == {(1, 5): 1, (2, 5): 2}
