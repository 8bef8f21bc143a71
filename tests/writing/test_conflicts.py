"""A write that loses to another writer's commit is tried again, where that is safe, and not for
ever."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

import deltacheck
from deltacheck.delta.failures import EngineFailure, is_conflict
from deltacheck.delta.log import quiet_query_loggers
from tests.writing.batches import good, ids, versions

SECONDS = 60
"""How long a side waits for the other before the test fails."""


class Rival:
    """Another writer, whose commit wins whenever a batch is being computed."""

    def __init__(self, session: SparkSession, table: str, folder: Path, wins: int) -> None:
        self.commits = 0
        self._session, self._table, self._wins = session, table, wins
        self._asked, self._done = folder / "asked", folder / "done"
        self._stop = threading.Event()
        folder.mkdir()

    def wait(self) -> None:
        """Change the table's metadata each time that a batch asks, until it has won enough."""
        while not self._stop.wait(0.01):
            if not self._asked.exists():
                continue
            self._asked.unlink()
            if self.commits < self._wins:
                self.commits += 1
                self._session.sql(
                    f"ALTER TABLE {self._table} SET TBLPROPERTIES ('n' = '{self.commits}')"
                )
            self._done.touch()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """For as long as the context lasts."""
        worker = threading.Thread(target=self.wait)
        worker.start()
        try:
            yield
        finally:
            self._stop.set()
            worker.join()

    def meets(self, rows: DataFrame) -> DataFrame:
        """A batch that is computed with the other writer's commit in between."""
        asked, done, seconds = str(self._asked), str(self._done), SECONDS

        def pause(amount: int) -> int:
            import time
            from pathlib import Path

            Path(asked).touch()
            end = time.monotonic() + seconds
            while not Path(done).exists():
                assert time.monotonic() < end, "the other writer does not answer"
                time.sleep(0.01)
            Path(done).unlink()
            return amount

        first = rows.coalesce(1).limit(1)
        met = first.withColumn("amount", udf(pause, "int", useArrow=False)("amount"))
        return met.unionByName(rows.exceptAll(first))


def test_an_append_that_loses_is_tried_again(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    """An append means the same, whatever another writer did."""
    rival = Rival(spark, table, tmp_path / "rival", wins=2)
    with rival.at_work(), quiet_query_loggers():
        result = deltacheck.write(rival.meets(good(spark)), table)
    assert (rival.commits, result.ok, result.route) == (2, True, "clean")
    assert ids(spark, table) == [1, 2]


def test_an_append_that_always_loses_ends_with_the_conflict(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    """As it came; nothing is written anywhere, and nothing is quarantined."""
    rival = Rival(spark, table, tmp_path / "rival", wins=100)
    before = versions(spark, table)
    with rival.at_work(), quiet_query_loggers(), pytest.raises(EngineFailure) as raised:
        deltacheck.write(rival.meets(good(spark)), table, route="rows")
    assert is_conflict(raised.value)
    assert 1 < rival.commits < 10
    assert versions(spark, table) == before + rival.commits
    assert ids(spark, table) == []
    assert not spark.catalog.tableExists(f"{table}_quarantine")


def test_an_overwrite_that_loses_is_not_tried_again(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    """What the other writer committed would be gone unseen."""
    deltacheck.write(good(spark), table)
    rival = Rival(spark, table, tmp_path / "rival", wins=100)
    with rival.at_work(), quiet_query_loggers(), pytest.raises(EngineFailure) as raised:
        deltacheck.write(rival.meets(good(spark).where("id = 1")), table, mode="overwrite")
    assert is_conflict(raised.value)
    assert rival.commits == 1
    assert ids(spark, table) == [1, 2]
