"""A fence stops what an earlier holder of the lock still has in flight."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

import pytest
from pyspark.sql import Row, SparkSession

from deltacheck.delta.commit import TXN_APP, TXN_VERSION, Fence, Statement, Tag, commit
from deltacheck.delta.failures import EngineFailure, failure_of, is_conflict
from deltacheck.delta.session import is_connect, settings, sibling
from deltacheck.names import TableName
from deltacheck.quarantine.move import fence_off

pytestmark = pytest.mark.slow

APP = "deltacheck-test"
SLOW = "length(sha2(repeat(CAST(id AS STRING), 4000), 512)) > 0"
ROWS = 300_000
"""Rows enough for a scan that outlasts a fence."""


@pytest.fixture
def orders(session: SparkSession, database: str) -> TableName:
    name = TableName.parse(f"{database}.orders")
    session.sql(f"CREATE TABLE {name.sql} (id BIGINT) USING delta")
    session.range(ROWS).coalesce(1).write.format("delta").mode("append").saveAsTable(name.sql)
    # The first fence of a Java takes seconds of its own; and the table's state is known now, so
    # that the job under way is the statement's scan.
    fence_off(session, name, Tag(run="first"), Fence(APP, 0), alters=True)
    return name


@contextmanager
def in_flight(session: SparkSession, sql: str, fence: Fence | None) -> Iterator[Future[list[Row]]]:
    """A statement under way in another session, as far as the engine tells."""
    other = sibling(session)
    order = {} if fence is None else {TXN_APP: fence.app, TXN_VERSION: str(fence.version)}

    def run() -> list[Row]:
        # Not through the one door: on a local warehouse it lets one statement in at a time.
        with settings(other, order):
            return other.sql(sql).collect()

    with ThreadPoolExecutor(1) as pool:
        statement = pool.submit(run)
        if not is_connect(session):
            tracker = session.sparkContext.statusTracker()
            while not tracker.getActiveJobsIds() and not statement.done():
                wait([statement], timeout=0.05)
        yield statement


@pytest.mark.slow
def test_a_delete_in_flight_fails(
    any_spark: SparkSession, session: SparkSession, orders: TableName
) -> None:
    """The DELETE of an earlier token, still running when the fence is set, deletes nothing."""
    delete = f"DELETE FROM {orders.sql} WHERE id % 10 = 0 AND {SLOW}"
    with in_flight(session, delete, Fence(APP, 1)) as statement:
        fence_off(session, orders, Tag(run="next"), Fence(APP, 2))
        error = statement.exception()
    if error is None:
        # It had not read the table before the fence, and was skipped.
        assert statement.result() == []
    else:
        assert is_conflict(error), failure_of(error)
    assert session.table(orders.sql).count() == ROWS


def test_a_delete_that_comes_late_is_skipped(
    any_spark: SparkSession, session: SparkSession, orders: TableName
) -> None:
    """The DELETE of an earlier token that begins after the fence does nothing, and says so."""
    fence_off(session, orders, Tag(run="next"), Fence(APP, 2))
    delete = Statement(f"DELETE FROM {orders.sql} WHERE id < 10")
    assert commit(session, orders, delete, tag=Tag(run="dead"), fence=Fence(APP, 1)) == []
    assert session.table(orders.sql).count() == ROWS
    deleted = commit(session, orders, delete, tag=Tag(run="next"), fence=Fence(APP, 3))
    assert deleted == [Row(num_affected_rows=10)]


@pytest.mark.slow
def test_an_alter_in_flight_fails(session: SparkSession, orders: TableName) -> None:
    """ADD CONSTRAINT knows no order of ours; a change of the table's metadata stops it."""
    add = f"ALTER TABLE {orders.sql} ADD CONSTRAINT slow CHECK (id % 40 != 0 OR {SLOW})"
    with in_flight(session, add, None) as statement:
        fence_off(session, orders, Tag(run="next"), Fence(APP, 2), alters=True)
        error = statement.exception()
        assert isinstance(error, EngineFailure)
        assert is_conflict(error), failure_of(error)
