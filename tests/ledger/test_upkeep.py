"""The files of deltacheck's own tables are put together, by request or where they are many."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.commit import Tag, commit
from deltacheck.delta.table import history, latest_version
from deltacheck.ledger import lock as locks
from deltacheck.ledger.journal import (
    DONE,
    END,
    START,
    Entry,
    create_journal,
    entries_frame,
    journal_name,
    read_journal,
)
from deltacheck.ledger.quality_log import Line, append_lines, log_exists, log_name, read_log
from deltacheck.ledger.upkeep import MANY_FILES, TRIM, compact, compact_where_many
from tests.harness.marks import connect_is_slow
from tests.ledger.test_journal import end, start
from tests.quality.yard import Yard

NIGHT = datetime(2025, 3, 1, 3, tzinfo=timezone.utc)


def files(session: SparkSession, environment: Environment) -> int:
    """How many files a reader of the log has to open."""
    return len(session.table(log_name(environment).sql).inputFiles())


def line(number: int) -> Line:
    """A line of some run."""
    return Line(NIGHT + timedelta(days=number), "local", "shop.orders", "check", "passed")


@connect_is_slow
def test_small_files_are_put_together_and_every_entry_stays(
    any_spark: SparkSession, environment: Environment
) -> None:
    """Where there are no tables there is nothing to do, and none is made."""
    compact(any_spark, environment, Tag())
    assert read_journal(any_spark, environment).id is None
    assert not log_exists(any_spark, environment)

    create_journal(any_spark, environment)
    name = journal_name(environment)
    for entry in (start(1), end(1, DONE), start(2)):
        commit(any_spark, name, entries_frame(any_spark, [entry]), tag=Tag())
        append_lines(any_spark, environment, [line(entry.token)], Tag())
    before = read_journal(any_spark, environment), read_log(any_spark, environment)
    compact(any_spark, environment, Tag(step=TRIM))
    version = latest_version(any_spark, name)
    compact(any_spark, environment, Tag(step=TRIM))

    assert (read_journal(any_spark, environment), read_log(any_spark, environment)) == before
    assert (len(any_spark.table(name.sql).inputFiles()), files(any_spark, environment)) == (1, 1)
    assert latest_version(any_spark, name) == version


def test_few_files_are_left_alone_until_they_are_many(
    spark: SparkSession, environment: Environment
) -> None:
    """Nothing is committed before."""
    for number in range(3):
        append_lines(spark, environment, [line(number)], Tag())
    compact(spark, environment, Tag(step=TRIM), above=3)
    assert files(spark, environment) == 3

    append_lines(spark, environment, [line(3)], Tag())
    compact(spark, environment, Tag(step=TRIM), above=3)

    assert files(spark, environment) == 1
    assert len(read_log(spark, environment)) == 4
    (last,) = history(spark, log_name(environment), limit=1)
    assert (last.operation, last.tag) == ("OPTIMIZE", {"step": TRIM})


def test_runs_keep_the_journal_small_themselves(
    spark: SparkSession, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nobody ever runs ``check``; every entry stays, and the lock is kept."""
    monkeypatch.setattr(locks, "MANY_FILES", 3)
    seen: list[Entry] = []
    for _ in range(3):
        with locks.locked(
            spark, environment, command="upgrade", revisions=[], tables=[], engine=""
        ) as lock:
            seen += read_journal(spark, environment).entries[len(seen) :]
        lock.end([], DONE)
        seen += read_journal(spark, environment).entries[len(seen) :]

    name = journal_name(environment)
    assert [(one.token, one.kind) for one in seen] == [
        (token, kind) for token in (1, 2, 3) for kind in (START, END)
    ]
    # The third run found five.
    assert len(spark.table(name.sql).inputFiles()) == 2
    commits = [(one.operation, one.tag.get("step")) for one in history(spark, name)[::-1]]
    assert commits[1:] == [
        ("WRITE", "1/0"),
        ("WRITE", "1/1999999"),
        ("WRITE", "2/0"),
        ("WRITE", "2/1999999"),
        ("WRITE", "3/0"),
        ("OPTIMIZE", TRIM),
        ("WRITE", "3/1999999"),
    ]


def test_no_line_is_lost_that_others_append_meanwhile(
    spark: SparkSession, environment: Environment
) -> None:
    """Several runs put the same files together, and jobs log, all at once."""
    append_lines(spark, environment, [line(0)], Tag())

    def append(number: int) -> None:
        append_lines(spark, environment, [line(number)], Tag())

    with ThreadPoolExecutor(4) as pool:
        work = [pool.submit(append, number) for number in range(1, 13)]
        work += [pool.submit(compact, spark, environment, Tag()) for _ in range(3)]
        for one in work:
            one.result()

    assert [one.at for one in read_log(spark, environment)] == [line(n).at for n in range(13)]


def test_a_run_that_cannot_put_them_together_is_warned_and_goes_on(
    spark: SparkSession, environment: Environment, caplog: pytest.LogCaptureFixture
) -> None:
    """Its work is done by then."""
    spark.sql(f"CREATE DATABASE {environment.schema}")
    spark.sql(f"CREATE TABLE {journal_name(environment).sql} (a INT) USING delta")

    with caplog.at_level(logging.WARNING, "deltacheck"):
        compact_where_many(spark, environment, Tag())

    assert "could not be put together (ledger)" in caplog.text


@pytest.mark.slow
def test_after_a_year_of_nightly_runs_reading_costs_what_it_did_at_first(
    spark: SparkSession, yard: Yard
) -> None:
    """In files of the log and in Spark jobs, of `check` as of what it reads for a report."""
    yard.table("id LONG, region STRING", "(1, 'EU')", "(2, 'US')")
    yard.declare(
        "ids: {unique: id}",
        "usual: {trend: {measure: row_count}}",
        "each: {trend: {measure: row_count}, by: region}",
        rules="small: {check: id < 9, on_violation: warn}",
    )

    def jobs(work: Callable[[], object]) -> int:
        group = uuid4().hex
        spark.sparkContext.setJobGroup(group, "")
        work()
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))

    def cost(at: datetime) -> tuple[int, int]:
        """The fewest jobs of three runs: now and then Delta writes a checkpoint besides."""
        checks = min(jobs(lambda: yard.run(at)) for _ in range(3))
        return checks, min(jobs(yard.log) for _ in range(3))

    yard.run(NIGHT)
    night = [one for one in read_log(spark, yard.environment) if one.kind != "harvest"]
    at_first = cost(NIGHT + timedelta(hours=1))
    most = 0
    for number in range(1, 366):
        told = [replace(one, at=NIGHT + timedelta(days=number), run=str(number)) for one in night]
        append_lines(spark, yard.environment, told, Tag(run=str(number), step="check"))
        most = max(most, files(spark, yard.environment))
        compact_where_many(spark, yard.environment, Tag(run=str(number), step=TRIM))
    found = yard.results(NIGHT + timedelta(days=366))

    assert most == MANY_FILES + 1
    assert len(yard.log()) > 365 * len(night)
    assert {name: one.state for name, one in found.items()} == dict.fromkeys(found, "passed")
    assert "earlier runs is 2" in found["usual"].outcome.message
    assert cost(NIGHT + timedelta(days=367)) == at_first
    assert len(history(spark, log_name(yard.environment))) > 365
