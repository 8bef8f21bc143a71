"""The quality log: the passes of wrapped writes are taken into it, each once."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltacheck
from deltacheck.delta.commit import Tag
from deltacheck.delta.table import latest_version
from deltacheck.ledger.quality_log import (
    BATCH,
    HARVEST,
    RULE,
    append_lines,
    log_name,
    once,
    read_log,
)
from deltacheck.names import TableName
from deltacheck.rules.selection import Selection
from deltacheck.writing.survey import PROJECT_VARIABLE
from tests.harness.marks import connect_is_slow
from tests.quality.yard import Yard


def guarded(yard: Yard) -> str:
    """A table with two constraints, written to by a job: once clean, once with a bad row."""
    full = yard.table("id INT, amount INT")
    yard.session.sql(f"ALTER TABLE {full} ADD CONSTRAINT amount_ok CHECK (amount > 0)")
    yard.session.sql(f"ALTER TABLE {full} ADD CONSTRAINT id_ok CHECK (id IS NOT NULL)")
    yard.declare(rules="Amount_OK: {check: amount > 0}, id_ok: {not_null: id}")
    write(yard, "(1, 1), (2, 2), (3, 3)", batch_id="monday", job="load")
    write(yard, "(4, 4), (5, -5)", route="rows")
    return full


def write(yard: Yard, rows: str, **options: object) -> None:
    """Write a batch through deltacheck."""
    batch = yard.session.sql(f"SELECT * FROM VALUES {rows} AS t(id, amount)")
    deltacheck.write(batch, yard.orders, **options)  # type: ignore[arg-type]


EXPECTED = {
    ("rule", "Amount_OK", "passed", 3, 0): 1,
    ("rule", "id_ok", "passed", 3, 0): 1,
    ("batch", None, "passed", 3, 0): 1,
    ("rule", "Amount_OK", "failed", 2, 1): 1,
    ("rule", "id_ok", "passed", 2, 0): 1,
    ("batch", None, "failed", 2, 1): 1,
}


def shown(yard: Yard) -> Counter[tuple[object, ...]]:
    """What ``quality_log`` shows of writes."""
    rows = deltacheck.quality_log(project=yard.folder, session=yard.session)
    columns = ("kind", "rule", "state", "rows", "failed")
    return Counter(
        tuple(row[column] for column in columns)
        for row in rows.where("source = 'write'").select(*columns).collect()
    )


@connect_is_slow
def test_passes_and_failures_of_writes_show_before_and_after_they_are_in_the_log(
    any_spark: SparkSession, yard: Yard
) -> None:
    """The log is written by check alone, and each version once."""
    guarded(yard)
    assert shown(yard) == EXPECTED
    assert yard.log() == ()

    yard.run()
    assert shown(yard) == EXPECTED
    yard.run()
    assert shown(yard) == EXPECTED
    logged = Counter(
        (one.kind, one.rule, one.state, one.rows, one.failed)
        for one in yard.log()
        if one.source == "write"
    )
    assert logged == EXPECTED
    first = next(one for one in yard.log() if one.batch == "monday")
    assert (first.job, first.table, first.version) == ("load", yard.orders, 3)

    write(yard, "(6, 6)")
    assert sum(shown(yard).values()) == 9


def test_what_the_schema_holds_rows_to_passed_too(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the names under which a batch breaks it: a rule's, else the column's."""
    monkeypatch.setenv(PROJECT_VARIABLE, str(yard.folder))
    yard.table("id INT NOT NULL, amount INT NOT NULL, code VARCHAR(2)")
    yard.declare(rules="Amount_There: {not_null: amount}")
    rows = "SELECT * FROM VALUES {} AS t(id, amount, code)"
    for values in ("(1, 1, 'a')", "(2, 2, 'b'), (3, NULL, 'c'), (4, 4, 'abc')"):
        deltacheck.write(yard.session.sql(rows.format(values)), yard.orders, route="rows")

    yard.run()

    found = {(x.rule, x.rows): (x.state, x.failed) for x in yard.log() if x.kind == RULE}
    assert found == {
        ("Amount_There", 1): ("passed", 0),
        ("id_not_null", 1): ("passed", 0),
        ("char_varchar_length", 1): ("passed", 0),
        ("Amount_There", 3): ("failed", 1),
        ("id_not_null", 3): ("passed", 0),
        ("char_varchar_length", 3): ("failed", 1),
    }


def test_a_write_that_two_runs_took_in_at_once_shows_once(yard: Yard) -> None:
    guarded(yard)
    yard.run()
    log = log_name(yard.environment).sql
    yard.session.sql(f"INSERT INTO {log} SELECT * FROM {log} WHERE source = 'write'")

    assert shown(yard) == EXPECTED


def test_what_a_writer_told_itself_is_not_told_again(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by the log nor by what is read of the table's history."""
    monkeypatch.setenv(PROJECT_VARIABLE, str(yard.folder))
    yard.declare(rules="Amount_OK: {check: amount > 0}, id_ok: {not_null: id}")
    guarded(yard)
    (batch,) = (line for line in yard.log() if line.kind == BATCH)
    assert (batch.rows, batch.failed, batch.table_id) == (2, 1, None)
    assert shown(yard) == EXPECTED

    yard.run()

    assert shown(yard) == EXPECTED
    assert sum(line.source == "write" for line in yard.log()) == 6


def test_what_a_writer_tells_is_believed_where_the_history_was_read_before_it_told(
    yard: Yard,
) -> None:
    """A warning is known to the writer alone."""
    guarded(yard)
    yard.run()
    clean = next(line for line in yard.log() if line.batch == "monday" and line.kind == BATCH)
    told = replace(clean, table_id=None, version=None, failed=2, passed=1)
    append_lines(yard.session, yard.environment, [told], Tag())

    changed = {("batch", None, "passed", 3, 2): 1, ("batch", None, "passed", 3, 0): 0}
    assert shown(yard) == Counter(EXPECTED | changed)
    assert len(once(yard.log())) == 6
    assert told in once(yard.log())


def test_a_history_that_was_cleaned_up_before_it_was_read_is_told(
    yard: Yard, warehouse: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A false calm: the log has nothing of writes that nobody can read any more."""
    full = guarded(yard)
    checkpoints = "SET TBLPROPERTIES ('delta.checkpointInterval' = '1')"
    yard.session.sql(f"ALTER TABLE {full} {checkpoints}")
    assert yard.run().gaps == ()
    last = latest_version(yard.session, TableName.parse(full))
    for number in range(4):
        write(yard, f"({number}, 6)")
    # As Delta does once their retention is over: the rest is in the checkpoint.
    for file in (warehouse / full.replace(".", "/") / "_delta_log").glob("*.json"):
        if int(file.stem) < last + 4:
            file.unlink()

    with caplog.at_level(logging.WARNING, "deltacheck"):
        found = yard.run()

    (gap,) = found.gaps
    assert gap == (
        f"{full}: versions {last + 1} to {last + 3} have left its history unread; what wrapped "
        "writes passed there is not in the quality log."
    )
    assert gap in caplog.text
    marks = [line for line in read_log(yard.session, yard.environment) if line.kind == HARVEST]
    assert [line.message for line in marks] == [None, gap]
    assert sum(line.kind == BATCH for line in yard.log()) == 3
    assert yard.run().gaps == ()


def test_environments_that_share_a_ledger_lose_no_write_of_each_other(yard: Yard) -> None:
    """A bug of mixed keys: of one attempt that two had taken in, one of them lost its line."""
    guarded(yard)
    yard.run()
    own = [line for line in yard.log() if line.source == "write"]
    others = [replace(line, environment="other", table_id=None) for line in own]
    append_lines(yard.session, yard.environment, others, Tag())

    assert shown(yard) == EXPECTED
    assert Counter(line.environment for line in once([*own, *others])) == {
        yard.environment.name: 6,
        "other": 6,
    }
    rows = deltacheck.quality_log(project=yard.folder, session=yard.session)
    found = {row["environment"] for row in rows.select("environment").collect()}
    assert found == {yard.environment.name}


def test_lines_can_be_read_from_a_time_on(yard: Yard) -> None:
    yard.table("id INT", "(1)")
    yard.declare("some: {row_count: {min: 1}}")
    first = datetime(2026, 3, 1, tzinfo=timezone.utc)
    yard.run(first)
    yard.run(first + timedelta(days=1))

    found = read_log(yard.session, yard.environment, first + timedelta(days=1))

    assert {line.at for line in found} == {first + timedelta(days=1)}


@pytest.mark.slow
def test_a_table_made_anew_has_a_history_of_its_own(yard: Yard) -> None:
    """Its versions begin again, and are not those that the log has."""
    full = guarded(yard)
    yard.run()
    yard.session.sql(f"DROP TABLE {full}")
    yard.session.sql(f"DROP TABLE {full}_quarantine")
    guarded(yard)
    yard.run()

    assert shown(yard) == dict.fromkeys(EXPECTED, 2)


def test_the_log_is_a_view_for_sql_where_asked_for(yard: Yard) -> None:
    """And can be narrowed to tables; looking at it writes nothing."""
    full = guarded(yard)
    yard.run()
    version = latest_version(yard.session, log_name(yard.environment))

    deltacheck.quality_log(project=yard.folder, session=yard.session, view="quality")
    found = yard.session.sql(
        "SELECT rule, sum(failed) AS failed FROM quality WHERE kind = 'rule' "
        "AND source = 'write' GROUP BY rule"
    ).collect()
    nothing = deltacheck.quality_log("nowhere", project=yard.folder, session=yard.session)

    assert {row["rule"]: row["failed"] for row in found} == {"Amount_OK": 1, "id_ok": 0}
    assert nothing.count() == 0
    assert (
        deltacheck.quality_log(full.upper(), project=yard.folder, session=yard.session).count() > 0
    )
    assert latest_version(yard.session, log_name(yard.environment)) == version


def test_a_log_that_cannot_be_written_costs_no_result(yard: Yard) -> None:
    """A bug of all or nothing: an error of Spark's, after which nothing was shown or told."""
    yard.table("id INT", "(1)")
    yard.declare("some: {row_count: {min: 5}}")
    yard.run(datetime(2026, 3, 1, tzinfo=timezone.utc))
    name = log_name(yard.environment)
    early = "at < TIMESTAMP'2026-04-01 00:00:00Z'"
    yard.session.sql(f"ALTER TABLE {name.sql} ADD CONSTRAINT early CHECK ({early})")

    found = yard.run(datetime(2026, 5, 1, tzinfo=timezone.utc))

    (error,) = found.unwritten
    assert f"It was not logged what the checks found, for {name} could not be" in str(error)
    assert (found.failed, [one.check.name for one in found.checks]) == (True, ["some"])


def test_only_lines_of_the_tables_asked_for_are_trimmed(yard: Yard) -> None:
    """A bug of reach: the lines of every table, and of other environments, were deleted."""
    yard.table("id INT", "(1)")
    yard.table("id INT", "(1)", name="other")
    yard.declare("some: {row_count: {min: 1}}")
    yard.declare("some: {row_count: {min: 1}}", name="other")
    first = datetime(2026, 3, 1, tzinfo=timezone.utc)
    yard.run(first)
    (line,) = (one for one in yard.log() if one.table == yard.orders)
    gone = replace(line, table=f"{yard.database}.gone")
    append_lines(yard.session, yard.environment, [gone, replace(gone, environment="prod")], Tag())

    def left() -> list[tuple[str, str]]:
        old = [one for one in yard.log() if one.at == first]
        return sorted((one.environment, one.table.split(".")[1]) for one in old)

    later, month = first + timedelta(days=100), timedelta(days=30)
    yard.run(later, Selection(tables=("*.ORDERS",)), keep=month)
    assert left() == [("local", "gone"), ("local", "other"), ("prod", "gone")]
    yard.run(later, Selection(tags=("nowhere",)), keep=month)
    assert left() == [("local", "gone"), ("local", "other"), ("prod", "gone")]
    yard.run(later, keep=month)
    assert left() == [("prod", "gone")]


def test_old_lines_are_trimmed_where_asked_for(yard: Yard) -> None:
    """How far the table's history was read stays known, so no write comes back."""
    guarded(yard)
    yard.declare("some: {row_count: {min: 1}}")
    first = datetime(2026, 3, 1, tzinfo=timezone.utc)
    yard.run(first)
    yard.run(first + timedelta(days=100))

    yard.run(first + timedelta(days=101), keep=timedelta(days=30))

    times = {line.at for line in yard.log() if line.source == "check"}
    assert times == {first + timedelta(days=100), first + timedelta(days=101)}
    before = len(yard.log())
    yard.run(first + timedelta(days=102))
    assert len(yard.log()) == before + 1
    files = yard.session.sql(f"DESCRIBE DETAIL {log_name(yard.environment).sql}").collect()[0]
    assert files["numFiles"] == 2
