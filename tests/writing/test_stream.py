"""Each row of a stream ends in the table or in its quarantine, once, whatever is killed."""

from __future__ import annotations

import random
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Literal

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import deltacheck
from deltacheck.delta import commit as door
from deltacheck.delta.table import history
from deltacheck.names import TableName
from tests.harness.connect_server import SHORT_LIVED
from tests.harness.processes import run_module
from tests.writing.batches import everywhere, good, held, ids, make_table, mixed
from tests.writing.streaming import Source, Trap

RESTARTS = 20
KILLED = (4, 11, 17)
"""The starts that end with a SIGKILL."""
MOMENTS = 7
ROUTES: tuple[Literal["rows", "batch"], ...] = ("rows", "batch")


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A folder of files, two of them there."""
    made = Source(tmp_path / "source")
    made.add(0, 1)
    return made


def test_each_batch_takes_its_route_and_a_restart_goes_on(
    spark: SparkSession, database: str, source: Source, tmp_path: Path
) -> None:
    """By rows and by batch; batches are numbered by the stream's name."""
    for route in ROUTES:
        table = make_table(spark, f"{database}.{route}")
        told: list[deltacheck.WriteResult] = []
        writer = deltacheck.foreach_batch(
            table, query="orders", route=route, on_quarantine=told.append
        )
        source.start(spark, writer, tmp_path / route).awaitTermination()
        source.add(2 if route == "rows" else 3)
        source.start(spark, writer, tmp_path / route).awaitTermination()

        assert everywhere(spark, table) == source.rows
        assert [result.batch_id for result in told] == [f"orders/{n}" for n in range(len(told))]
        good = [] if route == "batch" else [one for one in source.rows if one % 10 in (0, 2, 3, 4)]
        assert ids(spark, table) == sorted(good)
        rows = spark.table(f"{table}_quarantine").collect()
        assert {row["_deltacheck_batch"] for row in rows} == {r.batch_id for r in told}


@pytest.mark.connect
def test_a_stream_over_connect(connect: SparkSession, database: str, source: Source) -> None:
    """The server calls the writer in a process of its own, with a session of its own."""
    table = make_table(connect, f"{database}.orders")
    for route in ROUTES:
        writer = deltacheck.foreach_batch(table, query=route, route=route)
        checkpoint = source.folder.parent / route
        source.start(connect, writer, checkpoint).awaitTermination()
    twice = {one: 2 * count for one, count in source.rows.items()}
    assert everywhere(connect, table) == twice
    good = [one for one in source.rows if one % 10 in (0, 2, 3, 4)]
    assert ids(connect, table) == sorted(good)
    rows = connect.table(f"{table}_quarantine").collect()
    assert {row["_deltacheck_batch"].split("/")[0] for row in rows} == set(ROUTES)


def test_a_batch_that_is_tried_again_with_other_rows_is_written_once(
    spark: SparkSession, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It died after its bad rows were quarantined, then after its good rows were written."""
    source = Source(tmp_path / "source", restless=True)
    writer = deltacheck.foreach_batch(table, query="orders", route="rows")
    # Once the quarantine is there: before the plain write, then before and after the begin, the
    # quarantine, the decision.
    for at, number in ((None, 0), (4, 1), (6, 2)):
        source.add(number)
        if at is not None:
            monkeypatch.setattr(door, "moment", Trap(at, "crash"))
            with pytest.raises(StreamingQueryException):
                source.start(spark, writer, tmp_path / "checkpoint").awaitTermination()
            monkeypatch.undo()
        source.start(spark, writer, tmp_path / "checkpoint").awaitTermination()
        assert everywhere(spark, table) == source.rows


def test_a_stream_started_anew_from_another_checkpoint_is_an_error(
    spark: SparkSession, table: str, source: Source, tmp_path: Path
) -> None:
    """Delta would skip its batches in silence; under a new name they are written."""
    writer = deltacheck.foreach_batch(table, query="orders", route="rows")
    source.start(spark, writer, tmp_path / "old").awaitTermination()
    before = everywhere(spark, table)

    with pytest.raises(StreamingQueryException) as raised:
        source.start(spark, writer, tmp_path / "new").awaitTermination()

    assert "BatchError" in str(raised.value)
    assert "already has batch 1 of the stream 'orders'" in str(raised.value)
    assert everywhere(spark, table) == before
    other = deltacheck.foreach_batch(table, query="orders-2", route="rows")
    source.start(spark, other, tmp_path / "newer").awaitTermination()
    assert everywhere(spark, table) == before + source.rows


def test_a_new_checkpoint_is_told_by_its_first_batch_already(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    """The old stream had one batch, so the number alone would not tell."""
    source = Source(tmp_path / "source")
    source.add(0)
    writer = deltacheck.foreach_batch(table, query="orders", route="rows")
    source.start(spark, writer, tmp_path / "old").awaitTermination()
    with pytest.raises(StreamingQueryException, match="the stream was started anew"):
        source.start(spark, writer, tmp_path / "new").awaitTermination()
    assert everywhere(spark, table) == source.rows


def test_strict_stops_the_stream_and_a_restart_goes_on_with_the_next_batch(
    spark: SparkSession, table: str, source: Source, tmp_path: Path
) -> None:
    """A batch that would be tried for ever helps nobody."""
    writer = deltacheck.foreach_batch(table, query="orders", strict=True)
    for _ in range(2):
        with pytest.raises(StreamingQueryException, match="BatchQuarantined"):
            source.start(spark, writer, tmp_path / "checkpoint").awaitTermination()
    source.start(spark, writer, tmp_path / "checkpoint").awaitTermination()
    assert ids(spark, table) == []
    assert everywhere(spark, table) == source.rows


def test_a_batch_of_a_stream_can_be_written_by_hand(
    spark: SparkSession, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What ``foreachBatch`` calls is a function of a batch and its number."""
    writer = deltacheck.foreach_batch(table, query="orders", route="rows", job="nightly")
    with caplog.at_level("INFO", "deltacheck"):
        for rows in (mixed(spark), good(spark)):
            writer(rows, 7)
    assert (
        "batch orders/7 took the route rows; 2 rows written, 2 quarantined, 0 dropped; rules "
        "broken: {'amount_positive': 2, 'status_known': 1}; Delta named " in caplog.text
    )
    assert "batch orders/7 had been written before; 2 rows written" in caplog.text
    assert ids(spark, table) == [1, 2]
    assert sorted(held(spark, table)) == [3, 4]
    assert history(spark, TableName.parse(table), limit=1)[0].tag["batch"] == "orders/7"
    with pytest.raises(deltacheck.BatchError, match="already has batch 7"):
        writer(good(spark), 6)


def test_each_batch_of_a_stream_is_held_against_its_own_figures(
    spark: SparkSession, table: str
) -> None:
    """Unusable checks: a stream's batches have no figure in common but by chance."""
    asked: list[tuple[int, int]] = []

    def figures(rows: DataFrame, number: int) -> dict[str, int]:
        asked.append((rows.count(), number))
        return {"lines": 2}

    checks = {"all_came": {"reconcile": {"measure": "row_count", "figure": "lines"}}}
    writer = deltacheck.foreach_batch(table, query="orders", checks=checks, figures=figures)
    fixed = deltacheck.foreach_batch(table, query="fixed", checks=checks, figures={"lines": 2})

    writer(good(spark), 0)
    with pytest.raises(deltacheck.CheckError, match="row_count is 4, the figure lines is 2"):
        writer(mixed(spark), 1)
    fixed(good(spark), 0)

    assert asked == [(2, 0), (4, 1)]
    assert ids(spark, table) == [1, 1, 2, 2]


def test_each_batch_of_a_stream_that_overwrites_is_checked_before_it_does(
    spark: SparkSession, table: str
) -> None:
    """Rows that are gone: the table is left as it was, and a retry writes nothing again."""
    checks = {
        "once": {"unique_in_table": "id"},
        "some": {"row_count": {"min": 1}},
        "few": {"row_count": {"max": 2}, "on_failure": "quarantine"},
    }
    writer = deltacheck.foreach_batch(table, query="orders", mode="overwrite", checks=checks)

    for number in (0, 1, 1):
        writer(good(spark), number)
    assert ids(spark, table) == [1, 2]
    with pytest.raises(deltacheck.CheckError, match="0 rows, fewer than 1"):
        writer(good(spark).where("false"), 2)
    writer(mixed(spark).selectExpr("id", "abs(amount) + 1 AS amount", "'new' AS status"), 3)

    assert ids(spark, table) == [1, 2]
    assert held(spark, table) == {1: [], 2: [], 3: [], 4: ["amount_positive"]}
    commits = [one for one in history(spark, TableName.parse(table)) if one.tag.get("batch")]
    assert Counter(one.tag["batch"] for one in commits if "step" not in one.tag) == {
        "orders/0": 1,
        "orders/1": 1,
        "orders/3": 1,
    }


@pytest.mark.parametrize("query", ["", " ", "a/b"])
def test_a_stream_has_a_name_of_its_own(query: str) -> None:
    """A slash parts it from the number."""
    with pytest.raises(deltacheck.UsageError, match="nothing was written"):
        deltacheck.foreach_batch("shop.orders", query=query)


def test_a_stream_is_no_batch(spark: SparkSession, table: str, source: Source) -> None:
    """The error says what to use instead."""
    reader = spark.readStream.schema("id INT, amount INT, status STRING")
    stream: DataFrame = reader.json(str(source.folder))
    with pytest.raises(deltacheck.UsageError) as refused:
        deltacheck.write(stream, table)
    assert "foreach_batch" in (refused.value.hint or "")


@pytest.mark.slow
def test_a_stream_stopped_and_restarted_twenty_times_loses_and_doubles_nothing(
    spark: SparkSession,
    table: str,
    local_warehouse: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stopped while a batch is written, failed in the middle of one, three times killed.

    Which rows are bad differs each time that a batch is computed, and so does the route.
    """
    chance = random.Random(20)
    source, checkpoint = Source(tmp_path / "source", restless=True), tmp_path / "checkpoint"
    for restart in range(RESTARTS):
        source.add(restart)
        route = chance.choice(ROUTES)
        writer = deltacheck.foreach_batch(table, query="orders", route=route)
        moment = chance.randrange(MOMENTS)
        if restart in KILLED:
            task = {
                "warehouse": str(local_warehouse),
                "java": SHORT_LIVED,
                "database": table.partition(".")[0],
                "folder": str(source.folder),
                "checkpoint": str(checkpoint),
                "table": table,
                "route": route,
                "moment": str(moment),
            }
            killed = run_module("tests.writing.streaming", task)
            assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
            continue
        trap = Trap(moment, chance.choice(["crash", "stop"]))
        monkeypatch.setattr(door, "moment", trap)
        query = source.start(spark, writer, checkpoint)
        if trap.way == "stop":
            while query.isActive and not trap.sprung.wait(0.05):
                pass
            query.stop()
        else:
            with suppress(StreamingQueryException):
                query.awaitTermination()
            assert query.exception() is None or "Crash" in str(query.exception())
        monkeypatch.undo()

    last = deltacheck.foreach_batch(table, query="orders", route="rows")
    source.start(spark, last, checkpoint).awaitTermination()

    assert everywhere(spark, table) == source.rows
    assert sum(source.rows.values()) == RESTARTS * 6
