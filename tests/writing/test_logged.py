"""What became of a batch stands in the quality log, where there is something to tell."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import deltacheck
from deltacheck.delta import commit as door
from deltacheck.delta.commit import Tag
from deltacheck.delta.table import history
from deltacheck.ledger.quality_log import HARVEST, Line, append_lines, log_name, read_log
from deltacheck.ledger.recorded import recorded_text, set_statement
from deltacheck.names import TableName
from deltacheck.quality.passes import harvest
from deltacheck.rules.given import rules_given
from deltacheck.rules.model import TableRules
from tests.harness.marks import connect_is_slow
from tests.writing.batches import OPS, good, ids, make_table, mixed, record, versions
from tests.writing.kills import Killed

BIG = {"big": {"check": "amount > 15", "on_violation": "warn"}}


def guarded(session: SparkSession, name: str, rules: Mapping[str, object] | None = None) -> str:
    """A table with two constraints that an upgrade has recorded, and with them its ledger."""
    table = make_table(session, name)
    record(session, table, rules or {"Amount_Positive": "amount > 0"})
    return table


def logged(session: SparkSession, table: str) -> list[Line]:
    """The lines about a table."""
    return [line for line in read_log(session, OPS) if line.table == table]


def told(session: SparkSession, table: str) -> list[tuple[object, ...]]:
    """Kind, name, state, rows and bad rows of each line about a table."""
    return [
        (line.kind, line.rule, line.state, line.rows, line.failed)
        for line in logged(session, table)
    ]


@connect_is_slow
def test_a_batch_with_bad_rows_is_logged_in_one_commit(
    any_spark: SparkSession, database: str
) -> None:
    """A line for each constraint, and one for the batch with its distinct bad rows."""
    table = guarded(any_spark, f"{database}.orders")
    started = datetime.now(timezone.utc)

    deltacheck.write(mixed(any_spark), table, route="rows", job="load")

    assert told(any_spark, table) == [
        ("rule", "Amount_Positive", "failed", 4, 2),
        ("rule", "status_known", "failed", 4, 1),
        ("batch", None, "failed", 4, 2),
    ]
    first = logged(any_spark, table)[0]
    assert (first.environment, first.source, first.job) == ("local", "write", "load")
    assert (first.action, first.passed) == ("quarantine", 2)
    assert timedelta() <= first.at - started < timedelta(minutes=5)
    (last,) = history(any_spark, log_name(OPS), limit=1)
    assert last.tag == {"attempt": first.run, "job": "load", "step": "batch"}
    assert "gone" not in str(logged(any_spark, table))


def test_a_batch_that_is_quarantined_whole_leaves_its_trace_in_the_log(
    spark: SparkSession, database: str
) -> None:
    """Without an id no commit of the table tells of it."""
    table = guarded(spark, f"{database}.orders")

    deltacheck.write(mixed(spark), table)

    assert ids(spark, table) == []
    assert told(spark, table)[-1] == ("batch", None, "failed", 4, 2)


def test_a_batch_is_logged_once_however_often_it_is_written(
    spark: SparkSession, database: str
) -> None:
    """And nothing of it is taken from the table's history a second time."""
    table = guarded(spark, f"{database}.orders")
    first, _ = (
        deltacheck.write(mixed(spark), table, batch_id="monday", route="rows") for _ in range(2)
    )
    lines = logged(spark, table)

    name = TableName.parse(table)
    harvested = list(
        harvest(spark, OPS, [TableRules(name, ())], replace(lines[0], source="check")).lines
    )

    assert [(line.kind, line.batch) for line in lines] == [
        ("rule", "monday"),
        ("rule", "monday"),
        ("batch", "monday"),
    ]
    assert {line.version for line in lines} == {first.version}
    assert [line.kind for line in harvested] == ["harvest"]


CHECKS: dict[str, object] = {
    "some": {"row_count": {"min": 1}, "owner": "sales"},
    "many": {"row_count": {"min": 9}, "on_failure": "warn"},
}


@pytest.mark.parametrize("failing", [False, True], ids=["written", "quarantined"])
def test_what_a_dead_process_did_not_log_is_restored_from_the_commit_that_decided(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch, failing: bool
) -> None:
    """Lost lines of checks: it died behind that commit and before its own to the log."""
    action = {"on_failure": "quarantine"} if failing else {}
    checks = {**CHECKS, "more": {"row_count": {"max": 3 if failing else 5}, **action}}
    asked: dict[str, Any] = {"checks": checks, "route": "rows", "batch_id": "monday"}
    lived, died = (guarded(spark, f"{database}.{name}") for name in ("lived", "died"))
    deltacheck.write(mixed(spark), lived, **asked)
    with monkeypatch.context() as patch:
        patch.setattr(door, "moment", before_the_log)
        with pytest.raises(Killed):
            deltacheck.write(mixed(spark), died, **asked)
    assert deltacheck.write(mixed(spark), died, **asked).repeated

    assert logged(spark, died) == []
    declared = rules_given(died, {"Amount_Positive": "amount > 0"})
    base = Line(datetime.now(timezone.utc), OPS.name, died, "", "")
    restored = list(harvest(spark, OPS, [declared], base).lines)
    append_lines(spark, OPS, restored, Tag())

    assert [line.kind for line in restored].count("check") == len(checks)
    assert Counter(bare(line) for line in logged(spark, died) if line.kind != HARVEST) == Counter(
        bare(line) for line in logged(spark, lived)
    )
    assert list(harvest(spark, OPS, [declared], base).lines) == []


def before_the_log(when: str, table: TableName | None, tag: Tag) -> None:
    """Die before a commit to the quality log."""
    if when == "before" and table == log_name(OPS):
        raise Killed


def bare(line: Line) -> Line:
    """A line without what tells who logged it, and when."""
    return replace(line, at=datetime.min, table="", table_id=None, run=None, version=None)


def test_warnings_are_logged_and_the_batch_passes(spark: SparkSession, database: str) -> None:
    """Counted while the batch is written, its rows as well."""
    table = guarded(spark, f"{database}.orders", BIG)

    result = deltacheck.write(good(spark), table)

    assert told(spark, table) == [
        ("rule", "amount_positive", "passed", 2, 0),
        ("rule", "status_known", "passed", 2, 0),
        ("rule", "big", "failed", 2, 1),
        ("batch", None, "passed", 2, 0),
    ]
    assert (result.route, result.bad) == ("clean", 0)
    assert logged(spark, table)[2].action == "warn"


KNOWN = "status IN ('new', 'paid')"
BROKEN: list[tuple[object, ...]] = [
    ("rule", "Amount_Positive", "failed", 4, 2),
    ("rule", "status_known", "failed", 4, 1),
    ("batch", None, "failed", 4, 2),
]
"""What each rule has, and the batch, however it was stopped."""

STOPS: list[tuple[dict[str, Any], list[tuple[object, ...]]]] = [
    ({"gate": "1/3"}, BROKEN),
    ({"rules": {"status_known": {"check": KNOWN, "gate": 0}}}, BROKEN),
    (
        {
            "rules": {
                "Amount_Positive": {"check": "amount > 0", "on_violation": "fail"},
                "status_known": {"check": KNOWN, "on_violation": "fail"},
            }
        },
        BROKEN,
    ),
    (
        {"checks": {"Few": {"row_count": {"max": 3}}, "ids": {"unique": "id"}}},
        [
            *BROKEN[:-1],
            ("check", "Few", "failed", 4, 0),
            ("check", "ids", "passed", 4, 0),
            BROKEN[-1],
        ],
    ),
]


@connect_is_slow
@pytest.mark.parametrize(
    ("asked", "expected"), STOPS, ids=["a gate", "a rule's gate", "a fail rule", "a check"]
)
def test_what_stops_a_batch_is_logged_with_the_figures(
    any_spark: SparkSession,
    database: str,
    asked: dict[str, Any],
    expected: list[tuple[object, ...]],
) -> None:
    table = guarded(any_spark, f"{database}.orders")
    before = versions(any_spark, table)

    with pytest.raises(deltacheck.ViolationError) as stop:
        deltacheck.write(mixed(any_spark), table, **asked)

    assert told(any_spark, table) == expected
    assert logged(any_spark, table)[-1].message == stop.value.message
    assert versions(any_spark, table) == before


def test_checks_of_a_batch_are_logged_whether_they_pass_or_fail(
    spark: SparkSession, database: str
) -> None:
    table = guarded(spark, f"{database}.orders")
    checks = {
        "some": {"row_count": {"min": 1}, "owner": "sales"},
        "many": {"row_count": {"min": 5}, "on_failure": "warn"},
    }

    deltacheck.write(good(spark), table, checks=checks)

    assert told(spark, table) == [
        ("rule", "Amount_Positive", "passed", 2, 0),
        ("rule", "status_known", "passed", 2, 0),
        ("check", "some", "passed", 2, 0),
        ("check", "many", "failed", 2, 0),
        ("batch", None, "passed", 2, 0),
    ]
    some, many = (line for line in logged(spark, table) if line.kind == "check")
    assert (some.action, some.owner, some.figure) == ("fail", "sales", 2.0)
    assert (many.action, many.message) == ("warn", "2 rows, fewer than 5")


def test_a_guarded_write_is_logged_where_delta_refused_it(
    spark: SparkSession, database: str
) -> None:
    """One that succeeds is the job's own, of which deltacheck sees nothing."""
    table = guarded(spark, f"{database}.orders")

    deltacheck.guard(good(spark), table, lambda rows: rows.writeTo(table).append())
    assert logged(spark, table) == []
    deltacheck.guard(mixed(spark), table, lambda rows: rows.writeTo(table).append(), route="rows")

    assert told(spark, table)[-1] == ("batch", None, "failed", 4, 2)
    assert {line.source for line in logged(spark, table)} == {"guard"}


def test_checks_of_a_guarded_write_are_logged_and_no_rule_is_said_to_have_passed(
    spark: SparkSession, database: str
) -> None:
    """A false pass: the rows that were looked at are not those that the action wrote."""
    table = guarded(spark, f"{database}.orders")

    deltacheck.guard(mixed(spark), table, lambda rows: None, checks=CHECKS)

    assert told(spark, table) == [
        ("check", "some", "passed", 4, 0),
        ("check", "many", "failed", 4, 0),
        ("batch", None, "passed", 4, 0),
    ]
    assert {line.source for line in logged(spark, table)} == {"guard"}


def test_a_rule_that_only_delta_can_judge_is_logged_as_failed_for_nobody_knows_how_many(
    spark: SparkSession, database: str
) -> None:
    """A false pass: the rule for which Delta refused the batch, and those it did not come to."""
    table = guarded(spark, f"{database}.orders")
    rows = spark.sql("SELECT 1 AS id, 5 AS change")
    fail = {"Amount_Positive": {"check": "amount > 0", "on_violation": "fail"}}

    def insert(changes: DataFrame) -> None:
        changes.selectExpr("id", "-change AS amount", "'new' AS status").writeTo(table).append()

    deltacheck.guard(rows, table, insert)
    quarantined = told(spark, table)
    with pytest.raises(deltacheck.FailRuleError):
        deltacheck.guard(rows, table, insert, rules=fail)

    expected = [
        ("rule", "Amount_Positive", "failed", 1, None),
        ("batch", None, "failed", 1, 0),
    ]
    assert quarantined == expected
    assert told(spark, table) == expected * 2


def test_a_table_has_one_name_in_the_log_however_a_job_spells_it(
    spark: SparkSession, database: str
) -> None:
    """A second table in the log, and half of its batches there."""
    table = guarded(spark, f"{database}.orders")

    deltacheck.write(mixed(spark), f"{database}.ORDERS", route="rows")

    assert told(spark, table)[-1] == ("batch", None, "failed", 4, 2)


def test_without_a_ledger_nothing_is_logged(spark: SparkSession, database: str) -> None:
    """Neither a project nor an upgrade has said where deltacheck's own tables are."""
    table = make_table(spark, f"{database}.orders")

    assert deltacheck.write(mixed(spark), table).quarantined == 4

    assert logged(spark, table) == []


def test_a_log_that_cannot_be_written_stops_no_job(
    spark: SparkSession, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The batch is where it belongs by then."""
    table = make_table(spark, f"{database}.orders")
    make_table(spark, f"{database}.quality_log", rules={})
    name = TableName.parse(table)
    ledger = replace(OPS, schema=database)
    place = TableName.parse(f"{table}_quarantine")
    spark.sql(set_statement(name, recorded_text(TableRules(name, ()), place, ledger)))

    with caplog.at_level(logging.WARNING, "deltacheck"):
        result = deltacheck.write(mixed(spark), table, route="rows")

    assert (result.written, result.quarantined) == (2, 2)
    assert f"could not be logged in {database}.quality_log (ledger)" in caplog.text
