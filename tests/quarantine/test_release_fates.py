"""Rows that a run moved and that are, or may be, in the table all the same are not doubled."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltacheck import quarantine
from deltacheck.config import Environment
from deltacheck.delta import commit as door
from deltacheck.delta.commit import Tag
from deltacheck.delta.table import history, latest_version
from deltacheck.errors import QuarantineError
from deltacheck.names import TableName
from deltacheck.quarantine.fates import restored_attempts
from tests.cli.shop import Shop
from tests.quarantine.held import hold, make_table, rows, upgrade

pytestmark = pytest.mark.slow

POSITIVE = {"amount_positive": "amount > 0"}


class Killed(BaseException):
    """What nothing catches."""


@pytest.fixture
def table(session: SparkSession, database: str) -> str:
    """A table with one good row and two bad ones, without rules."""
    name = f"{database}.orders"
    make_table(session, name, rules={})
    session.sql(f"INSERT INTO {name} VALUES (1, 5, 'new'), (2, -5, 'new'), (2, -5, 'new')")
    return name


@pytest.fixture
def project(tmp_path: Path, environment: Environment) -> Path:
    """A project that says where the journal is."""
    return Shop.make(tmp_path, environment).folder


def notes(session: SparkSession, table: str, project: Path) -> dict[str, int]:
    """What `list` notes, to rows."""
    found = quarantine.list(table, session=session, project=project)
    return {entry.note: entry.rows for entry in found}


def test_a_restore_that_undid_the_move_is_noticed(
    any_spark: SparkSession, table: str, environment: Environment, project: Path
) -> None:
    """While the rows are back in the table they are not released; when they are out again, they
    are."""
    before = latest_version(any_spark, TableName.parse(table))
    upgrade(any_spark, environment, table, POSITIVE)
    after = latest_version(any_spark, TableName.parse(table))

    any_spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {before}")
    assert notes(any_spark, table, project) == {"restored": 2}
    with pytest.raises(QuarantineError, match="RESTORE"):
        quarantine.release(table, append=True, session=any_spark, project=project)
    assert rows(any_spark, table) == {(1,): 1, (2,): 2}

    any_spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {after}")
    assert notes(any_spark, table, project) == {"": 2}
    done = quarantine.release(table, repairs=["amount = 1"], session=any_spark, project=project)
    assert (done.rows, done.restored) == (2, 0)
    assert rows(any_spark, table) == {(1,): 1, (2,): 2}


@pytest.mark.parametrize("rule", ["amount_positive", "append"])
def test_a_restore_that_undid_a_release_leaves_the_only_copy_where_it_is(
    spark: SparkSession, table: str, environment: Environment, project: Path, rule: str
) -> None:
    """Released rows that the table has lost again are not purged with the others.

    A bug of words that others write: a rule's name was taken for the step of a release.
    """
    name = TableName.parse(table)
    upgrade(spark, environment, table, {rule: "amount > 0"})
    before = latest_version(spark, name)
    quarantine.release(table, repairs=["amount = 1"], session=spark, project=project)
    assert (
        quarantine.purge(table, older_than="0d", dry_run=True, session=spark, project=project).rows
        == 2
    )
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {before}")

    with pytest.raises(QuarantineError, match="2 of these rows had been released"):
        quarantine.purge(table, older_than="0d", session=spark, project=project)

    assert rows(spark, f"{table}_quarantine") == {(2,): 2}
    done = quarantine.purge(table, older_than="0d", held=True, session=spark, project=project)
    assert done.rows == 2


def test_a_restore_to_a_timestamp_is_noticed_by_what_it_brought_back(
    spark: SparkSession, table: str, environment: Environment
) -> None:
    """The history does not say which version that was."""
    name = TableName.parse(table)
    before = latest_version(spark, name)
    upgrade(spark, environment, table, POSITIVE)
    after = latest_version(spark, name)
    delete = next(one for one in history(spark, name) if one.operation == "DELETE")
    attempts = {delete.tag["attempt"]: before}
    times = {
        row["version"]: row["at"]
        for row in spark.sql(f"DESCRIBE HISTORY {table}")
        .selectExpr("version", "CAST(timestamp AS STRING) AS at")
        .collect()
    }

    spark.sql(f"RESTORE TABLE {table} TO TIMESTAMP AS OF '{times[before]}'")
    assert restored_attempts(spark, name, attempts) == set(attempts)

    spark.sql(f"RESTORE TABLE {table} TO TIMESTAMP AS OF '{times[after]}'")
    assert restored_attempts(spark, name, attempts) == frozenset()


def test_rows_of_a_run_that_died_wait_until_it_is_settled(
    spark: SparkSession,
    table: str,
    environment: Environment,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its copy may be of rows that are still in the table, as it is here."""

    def moment(when: str, at: TableName | None, tag: Tag) -> None:
        if when == "after" and at is not None and at.name == "orders_quarantine" and tag.attempt:
            raise Killed

    monkeypatch.setattr(door, "moment", moment)
    with pytest.raises(Killed):
        upgrade(spark, environment, table, POSITIVE)
    monkeypatch.undo()
    assert notes(spark, table, project) == {"unsettled": 2}
    with pytest.raises(QuarantineError, match="has not ended"):
        quarantine.release(
            table, repairs=["amount = 1"], append=True, session=spark, project=project
        )
    # What settles the run may write them again: an erased row would come back.
    for give_up in (
        lambda: quarantine.discard(table, "test", session=spark, project=project),
        lambda: quarantine.purge(table, older_than="0d", held=True, session=spark, project=project),
    ):
        with pytest.raises(QuarantineError, match="has not ended"):
            give_up()
    assert rows(spark, table) == {(1,): 1, (2,): 2}

    upgrade(spark, environment, table, POSITIVE)
    assert rows(spark, table) == {(1,): 1}
    done = quarantine.release(table, repairs=["amount = 1"], session=spark, project=project)

    assert (done.rows, done.unsettled) == (2, 0)
    assert rows(spark, table) == {(1,): 1, (2,): 2}


def test_rows_of_a_run_that_the_journal_does_not_know_are_released_on_request_only(
    spark: SparkSession, table: str
) -> None:
    """The journal can be lost; somebody may know that the rows are not in the table."""
    hold(spark, table, "(3, 7, 'new')", source="upgrade", attempt="lost/1")

    with pytest.raises(QuarantineError, match="journal"):
        quarantine.release(table, session=spark)
    done = quarantine.release(table, append=True, session=spark)

    assert done.rows == 1
    assert rows(spark, table)[(3,)] == 1
