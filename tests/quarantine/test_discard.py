"""`quarantine discard` and `quarantine purge`: rows that are given up, and at last deleted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pyspark.sql import SparkSession

from deltacheck import quarantine
from deltacheck.errors import UsageError
from tests.harness.marks import connect_is_slow
from tests.quarantine.held import hold, make_table, rows, states


@pytest.fixture
def table(session: SparkSession, database: str) -> str:
    """A table with three rows in quarantine, of which one would pass."""
    name = f"{database}.orders"
    make_table(session, name)
    hold(session, name, "(1, -5, 'new'), (2, -6, 'new'), (3, 7, 'new')")
    return name


@connect_is_slow
def test_discarded_rows_stay_with_the_reason_and_are_not_released(
    any_spark: SparkSession, table: str
) -> None:
    """Until they are purged."""
    preview = quarantine.discard(
        table, "it's a test", where="id <> 2", dry_run=True, session=any_spark
    )
    assert (preview.rows, states(any_spark, table)) == (2, dict.fromkeys((1, 2, 3), "held"))

    done = quarantine.discard(table, "it's a test", where="id <> 2", session=any_spark)

    assert done.rows == 2
    assert rows(any_spark, f"{table}_quarantine", "id, _deltacheck_state, _deltacheck_reason") == {
        (1, "discarded", "it's a test"): 1,
        (2, "held", None): 1,
        (3, "discarded", "it's a test"): 1,
    }
    assert quarantine.release(table, session=any_spark).rows == 0
    assert quarantine.discard(table, "again", where="id = 1", session=any_spark).rows == 0
    with pytest.raises(UsageError, match="reason"):
        quarantine.discard(table, " ", session=any_spark)


@connect_is_slow
def test_purge_deletes_released_and_discarded_rows_and_no_held_ones(
    any_spark: SparkSession, table: str
) -> None:
    """A held row is nowhere else."""
    quarantine.release(table, session=any_spark)
    quarantine.discard(table, "test", where="id = 1", session=any_spark)

    preview = quarantine.purge(table, older_than="0d", dry_run=True, session=any_spark)
    assert (preview.rows, len(states(any_spark, table))) == (2, 3)
    assert quarantine.purge(table, older_than=timedelta(days=1), session=any_spark).rows == 0

    done = quarantine.purge(table, older_than="0d", session=any_spark)

    assert (done.rows, done.held) == (2, 0)
    assert states(any_spark, table) == {2: "held"}
    assert f"VACUUM {table}_quarantine" in done.left_behind
    assert "deletion vectors" in done.left_behind
    assert rows(any_spark, table) == {(3,): 1}


def test_a_persons_rows_are_erased_whatever_their_state(session: SparkSession, table: str) -> None:
    """Held ones only on request; the result says that the condition itself stays behind."""
    assert quarantine.purge(table, where="id = 1", session=session).rows == 0

    done = quarantine.purge(table, where="id = 1", held=True, session=session)

    assert (done.rows, done.held) == (1, 1)
    assert "condition" in done.left_behind
    assert set(states(session, table)) == {2, 3}


def test_purge_wants_to_know_which_rows(session: SparkSession, table: str) -> None:
    """Neither an age nor a selection would mean all of them."""
    with pytest.raises(UsageError, match="which rows"):
        quarantine.purge(table, rules=[], session=session)
    for age in ("90", "d", "-1d", "90 years", ""):
        with pytest.raises(UsageError, match="age"):
            quarantine.purge(table, older_than=age, session=session)
    assert len(states(session, table)) == 3
