"""Where the rows of a batch go: by batch, by row, by what each rule says of its violators."""

from __future__ import annotations

import json
import logging
import traceback
from typing import Any

import pytest
from pyspark.sql import SparkSession

import deltacheck
from deltacheck.delta.commit import USER_METADATA
from deltacheck.delta.failures import EngineFailure
from deltacheck.delta.table import history, latest_version
from deltacheck.names import TableName
from deltacheck.writing.verdict import pin
from tests.writing.batches import (
    batch,
    good,
    held,
    ids,
    make_table,
    mixed,
    record,
    versions,
)


class TestCleanBatches:
    """A batch that breaks nothing is simply written."""

    def test_it_costs_one_commit_that_says_who_made_it(
        self, spark: SparkSession, table: str
    ) -> None:
        """The user's own metadata stays beside ours."""
        before = versions(spark, table)

        result = deltacheck.write(
            good(spark), table, job="nightly", options={"userMetadata": '{"mine": 1}'}
        )

        assert (result.ok, result.route, result.broken) == (True, "clean", {})
        assert (result.written, result.quarantined, result.dropped) == (2, 0, 0)
        assert (result.batch_id, result.repeated, result.quarantine) == (None, False, None)
        last = history(spark, TableName.parse(table), limit=1)[0]
        assert (versions(spark, table), result.version) == (before + 1, last.version)
        assert last.tag["job"] == "nightly"
        assert last.user_metadata is not None
        assert last.user_metadata.startswith('{"mine":1,"deltacheck":{')
        assert not spark.catalog.tableExists(f"{table}_quarantine")

    def test_what_the_session_says_of_commits_is_kept_beside_ours(
        self, spark: SparkSession, table: str
    ) -> None:
        """The writer's option, in which our tag is, would hide the session's."""
        spark.conf.set(USER_METADATA, "from the session")
        try:
            deltacheck.write(good(spark), table)
        finally:
            spark.conf.unset(USER_METADATA)
        last = history(spark, TableName.parse(table), limit=1)[0]
        assert json.loads(last.user_metadata or "")["user"] == "from the session"
        assert last.tag["attempt"]

    def test_an_empty_batch_is_clean(self, spark: SparkSession, table: str) -> None:
        """Also where the rules are looked at first."""
        empty = good(spark).where("false")

        plain = deltacheck.write(empty, table)
        looked = deltacheck.write(empty, table, route="rows", rules={"few": "id < 5"})

        assert (plain.ok, plain.route, plain.written) == (True, "clean", 0)
        assert (looked.ok, looked.route, looked.written) == (True, "clean", 0)

    def test_a_table_without_rules_takes_every_row(
        self, any_spark: SparkSession, database: str
    ) -> None:
        """By both routes, and judging finds nothing to say of a row."""
        table = make_table(any_spark, f"{database}.free", rules={})
        for route in ("batch", "rows"):
            result = deltacheck.write(mixed(any_spark), table, route=route)
            assert (result.ok, result.route, result.broken) == (True, "clean", {})
        assert ids(any_spark, table) == [1, 1, 2, 2, 3, 3, 4, 4]
        judged = deltacheck.judge(mixed(any_spark), table).collect()
        assert [row["_deltacheck_rules"] for row in judged] == [[]] * 4
        assert not any_spark.catalog.tableExists(f"{table}_quarantine")

    def test_a_table_that_is_not_there_is_made_and_the_log_says_so(
        self, spark: SparkSession, database: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """No rule guards it yet."""
        result = deltacheck.write(good(spark), f"{database}.new", partition_by="status")

        assert (result.ok, result.written) == (True, 2)
        (message,) = [r.getMessage() for r in caplog.records if r.name == "deltacheck"]
        assert message == f"{database}.new was not there and has been made; no rule guards it yet"

    def test_a_table_that_is_not_made_is_not_said_to_be(
        self, spark: SparkSession, database: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Its first batch was quarantined whole, so there is no version either."""
        table = f"{database}.new"
        result = deltacheck.write(mixed(spark), table, rules={"amount_positive": "amount > 0"})
        assert (result.ok, result.written, result.version) == (False, 0, None)
        assert not spark.catalog.tableExists(table)
        assert "has been made" not in caplog.text

    def test_a_table_that_is_not_there_can_be_refused(
        self, spark: SparkSession, database: str
    ) -> None:
        """With ``create=False``, before anything is made."""
        with pytest.raises(deltacheck.TableNotFoundError, match="nothing was written"):
            deltacheck.write(good(spark), f"{database}.new", create=False)
        assert not spark.catalog.tableExists(f"{database}.new")


class TestByBatch:
    """``route="batch"``: a batch with a bad row goes to quarantine whole."""

    def test_each_row_carries_the_rules_that_it_broke(
        self, spark: SparkSession, table: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """None for a good row; the batch's own labels are on all of them."""
        version = latest_version(spark, TableName.parse(table))

        result = deltacheck.write(mixed(spark), table, job="nightly")

        assert held(spark, table) == {
            1: [],
            2: [],
            3: ["amount_positive"],
            4: ["amount_positive", "status_known"],
        }
        rows = spark.table(f"{table}_quarantine").collect()
        assert {row["_deltacheck_rule"] for row in rows} == {result.rule}
        assert {row["_deltacheck_source"] for row in rows} == {"write"}
        assert {row["_deltacheck_job"] for row in rows} == {"nightly"}
        assert {row["_deltacheck_version"] for row in rows} == {version}
        assert {row["_deltacheck_state"] for row in rows} == {"held"}
        assert len({row["_deltacheck_attempt"] for row in rows}) == 1
        assert {row["id"]: row["amount"] for row in rows} == {1: 10, 2: 20, 3: -1, 4: None}
        (warning,) = [r for r in caplog.records if r.name == "deltacheck"]
        assert warning.levelno == logging.WARNING
        assert "nothing of a batch is written, 4 rows in" in warning.getMessage()

    def test_strict_raises_once_the_batch_is_safe(self, spark: SparkSession, table: str) -> None:
        """A green job that wrote nothing is a trap; the error carries the result."""
        with pytest.raises(deltacheck.BatchQuarantined) as raised:
            deltacheck.write(mixed(spark), table, strict=True)

        assert raised.value.result.quarantined == 4
        assert (raised.value.table, raised.value.exit_code) == (table, 4)
        assert sorted(held(spark, table)) == [1, 2, 3, 4]

    def test_who_wants_to_be_told_is_called_with_the_result(
        self, spark: SparkSession, table: str
    ) -> None:
        """Only for batches that have something in quarantine."""
        told: list[deltacheck.WriteResult] = []
        deltacheck.write(good(spark), table, on_quarantine=told.append)
        result = deltacheck.write(mixed(spark), table, on_quarantine=told.append)
        assert told == [result]

    def test_the_quarantine_can_be_elsewhere(self, spark: SparkSession, table: str) -> None:
        """Where the table's recorded rules say, or the write itself."""
        record(spark, table, {}, quarantine=f"{table}_bad")
        assert deltacheck.write(mixed(spark), table).quarantine == f"{table}_bad"
        named = deltacheck.write(mixed(spark), table, quarantine=f"{table}_worse")
        assert named.quarantine == f"{table}_worse"
        assert ids(spark, f"{table}_worse") == [1, 2, 3, 4]

    def test_a_quarantine_that_cannot_be_written_lets_the_refusal_through(
        self, spark: SparkSession, table: str
    ) -> None:
        """Delta's own error is raised, and the quarantine's trouble is its cause."""
        spark.sql(f"CREATE TABLE {table}_quarantine (id INT) USING delta")

        with pytest.raises(EngineFailure) as raised:
            deltacheck.write(mixed(spark), table, route="rows")

        assert isinstance(raised.value.__cause__, deltacheck.QuarantineError)
        assert ids(spark, table) == []
        assert ids(spark, f"{table}_quarantine") == []

    def test_a_column_with_a_name_of_the_quarantines_own_lets_the_refusal_through(
        self, spark: SparkSession, table: str
    ) -> None:
        """The names beginning with ``_deltacheck_`` are taken."""
        rows = mixed(spark).selectExpr("*", "1 AS _deltacheck_state")
        with pytest.raises(EngineFailure) as raised:
            deltacheck.write(rows, table, keep="_deltacheck_state")
        assert isinstance(raised.value.__cause__, deltacheck.QuarantineError)


class TestByRows:
    """``route="rows"``: good rows are written, bad rows quarantined."""

    def test_each_row_is_where_it_belongs(self, any_spark: SparkSession, database: str) -> None:
        """With its reasons; the result has the figures."""
        table = make_table(any_spark, f"{database}.orders")

        result = deltacheck.write(mixed(any_spark), table, route="rows")

        assert ids(any_spark, table) == [1, 2]
        assert held(any_spark, table) == {
            3: ["amount_positive"],
            4: ["amount_positive", "status_known"],
        }
        assert (result.ok, result.route) == (True, "rows")
        assert (result.written, result.quarantined, result.dropped) == (2, 2, 0)
        assert result.broken == {"amount_positive": 2, "status_known": 1}
        assert result.version == latest_version(any_spark, TableName.parse(table))

    @pytest.mark.parametrize("shuffled", [False, True])
    def test_a_batch_that_would_be_computed_otherwise_is_evaluated_once(
        self, any_spark: SparkSession, database: str, shuffled: bool
    ) -> None:
        """A row is in one place, and counted there, whatever a second evaluation would say."""
        table = make_table(any_spark, f"{database}.orders")
        ranged = any_spark.range(200)
        rows = (ranged.repartition(3, "id") if shuffled else ranged).selectExpr(
            "INT(id) AS id", "INT(rand() * 100 - 50) AS amount", "'new' AS status"
        )

        result = deltacheck.write(rows, table, route="rows")

        quarantined = held(any_spark, table)
        assert sorted([*ids(any_spark, table), *quarantined]) == list(range(200))
        assert result.written == 200 - len(quarantined)
        assert result.broken == {"amount_positive": len(quarantined)}

    @pytest.mark.parametrize("shuffled", [False, True])
    def test_a_pinned_batch_cannot_be_computed_anew(
        self, spark: SparkSession, shuffled: bool
    ) -> None:
        """Its first use cuts it off from what it was made of: if it is lost, that is an error."""
        rows = spark.range(200).selectExpr("id", "rand() AS r")
        pinned = pin(rows.repartition(3, "id") if shuffled else rows)

        total = pinned.selectExpr("sum(r)").collect()

        made_of = pinned.rdd.toDebugString()
        assert made_of is not None
        assert b"LocalCheckpointRDD" in made_of
        assert pinned.selectExpr("sum(r)").collect() == total

    def test_with_too_many_bad_rows_the_batch_is_quarantined_whole(
        self, spark: SparkSession, table: str
    ) -> None:
        """``max_bad``: half of the rows are bad, which is more than 49 % and not more than 2."""
        whole = deltacheck.write(mixed(spark), table, route="rows", max_bad="49%")
        assert (whole.ok, whole.route, whole.quarantined) == (False, "batch", 4)
        split = deltacheck.write(mixed(spark), table, route="rows", max_bad=2)
        assert (split.ok, split.route, split.quarantined) == (True, "rows", 2)

    def test_a_batch_without_any_good_row_is_not_ok(self, spark: SparkSession, table: str) -> None:
        """Nothing of it was written."""
        bad = mixed(spark).where("id > 2")
        result = deltacheck.write(bad, table, route="rows")
        assert (result.ok, result.written, result.quarantined) == (False, 0, 2)
        with pytest.raises(deltacheck.BatchQuarantined):
            deltacheck.write(bad, table, route="rows", strict=True)


class TestActions:
    """What each rule says of its violators; in one row the strongest has its way."""

    RULES = {  # noqa: RUF012
        "amount_positive": {"check": "amount > 0", "on_violation": "drop"},
        "status_known": {"check": "status IN ('new', 'paid')", "on_violation": "quarantine"},
        "id_small": {"check": "id < 100", "on_violation": "fail"},
        "id_odd": {"check": "id % 2 = 1", "on_violation": "warn"},
    }

    @pytest.fixture
    def table(self, spark: SparkSession, database: str) -> str:
        """A table with a rule of each action."""
        enforced = {"amount_positive": "amount > 0", "status_known": "status IN ('new', 'paid')"}
        name = make_table(spark, f"{database}.orders", rules={**enforced, "id_small": "id < 100"})
        record(spark, name, self.RULES)
        return name

    def test_a_row_that_a_rule_would_drop_and_another_quarantine_is_quarantined(
        self, spark: SparkSession, table: str
    ) -> None:
        """Row 3 breaks a drop rule, 4 that and a quarantine rule, 2 only a warning."""
        result = deltacheck.write(mixed(spark), table, route="rows")

        assert ids(spark, table) == [1, 2]
        assert held(spark, table) == {4: ["amount_positive", "id_odd", "status_known"]}
        assert (result.written, result.quarantined, result.dropped) == (2, 1, 1)
        assert result.broken == {"amount_positive": 2, "status_known": 1, "id_odd": 2}

    def test_a_batch_that_broke_only_drop_rules_is_written_without_those_rows(
        self, spark: SparkSession, table: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Whatever the route is."""
        rows = mixed(spark).where("id < 4")

        result = deltacheck.write(rows, table)

        assert (result.ok, result.route, result.quarantine) == (True, "rows", None)
        assert (result.written, result.quarantined, result.dropped) == (2, 0, 1)
        assert ids(spark, table) == [1, 2]
        assert "was written without 1 row" in caplog.text
        assert not spark.catalog.tableExists(f"{table}_quarantine")

    def test_a_batch_that_is_quarantined_whole_loses_no_row_to_a_drop_rule(
        self, spark: SparkSession, table: str
    ) -> None:
        """Nothing is dropped from it."""
        result = deltacheck.write(mixed(spark), table)
        assert (result.quarantined, result.dropped) == (4, 0)
        assert sorted(held(spark, table)) == [1, 2, 3, 4]

    def test_a_row_that_breaks_a_fail_rule_stops_the_write(
        self, spark: SparkSession, table: str
    ) -> None:
        """Nothing is written or quarantined; the rows are given on request, not in the text."""
        rows = batch(spark, "(100, -7654321, 'gone')", "(1, 1, 'new')", "(2, -1, 'new')")

        with pytest.raises(deltacheck.FailRuleError) as raised:
            deltacheck.write(rows, table, route="rows")

        error = raised.value
        assert (error.rule, error.violators, error.rows) == ("id_small", 1, 3)
        assert [(row["id"], row["amount"]) for row in error.rows(5)] == [(100, -7654321)]
        assert ids(spark, table) == []
        assert not spark.catalog.tableExists(f"{table}_quarantine")
        text = "".join(traceback.format_exception(error))
        assert "7654321" not in text
        assert "Delta" not in text

    def test_rules_given_with_the_batch_change_what_becomes_of_violators(
        self, spark: SparkSession, table: str
    ) -> None:
        """And may be of their own: Delta cannot refuse for them, so they are looked at first."""
        result = deltacheck.write(
            mixed(spark),
            table,
            rules={
                "status_known": {"check": "status IN ('new','paid')", "on_violation": "drop"},
                "not_two": "id != 2",
            },
            route="rows",
        )
        assert ids(spark, table) == [1]
        assert held(spark, table) == {2: ["id_odd", "not_two"]}
        assert (result.dropped, result.rule) == (2, None)

    def test_a_given_rule_that_contradicts_a_constraint_is_refused(
        self, spark: SparkSession, table: str
    ) -> None:
        """Delta enforces what the constraint says."""
        with pytest.raises(deltacheck.UsageError, match="says something else"):
            deltacheck.write(mixed(spark), table, rules={"amount_positive": "amount > 5"})
        assert ids(spark, table) == []


class TestGates:
    """A limit on bad rows that fails the write."""

    def test_with_more_bad_rows_than_a_gate_allows_nothing_is_written(
        self, spark: SparkSession, table: str
    ) -> None:
        """The error has the figures."""
        with pytest.raises(
            deltacheck.GateError, match=r"2 rows of 4 .* more than the gate 1/3"
        ) as stop:
            deltacheck.write(mixed(spark), table, route="rows", gate="1/3")

        assert (stop.value.violators, stop.value.rows, stop.value.exit_code) == (2, 4, 4)
        assert [row["id"] for row in stop.value.rows(1)] in ([3], [4])
        assert ids(spark, table) == []
        assert not spark.catalog.tableExists(f"{table}_quarantine")
        assert deltacheck.write(mixed(spark), table, route="rows", gate="1/2").ok

    def test_the_tables_own_gate_and_a_rules_own_hold_as_well(
        self, spark: SparkSession, table: str
    ) -> None:
        """As recorded in the table; an argument goes before the table's."""
        limited = {"status_known": {"check": "status IN ('new','paid')", "gate": 0}}
        record(spark, table, limited)
        with pytest.raises(deltacheck.GateError) as stop:
            deltacheck.write(mixed(spark), table)
        assert (stop.value.rule, stop.value.violators) == ("status_known", 1)

        record(spark, table, {}, gate="10%")
        with pytest.raises(deltacheck.GateError, match="more than the gate 10%"):
            deltacheck.write(mixed(spark), table)
        assert deltacheck.write(mixed(spark), table, gate="50%").quarantined == 4

    def test_a_gate_on_a_warning_is_looked_at_before_the_write(
        self, spark: SparkSession, table: str
    ) -> None:
        """Delta would write the rows."""
        rule = {"id_small": {"check": "id < 2", "on_violation": "warn", "gate": "25%"}}
        with pytest.raises(deltacheck.GateError) as stop:
            deltacheck.write(good(spark), table, rules=rule)
        assert (stop.value.rule, stop.value.violators, stop.value.rows) == ("id_small", 1, 2)
        assert ids(spark, table) == []


class TestKeptColumns:
    """The batch may carry more columns than the table."""

    def test_they_go_to_quarantine_and_not_to_the_table(
        self, spark: SparkSession, table: str
    ) -> None:
        """Rules given for the batch may read them."""
        rows = mixed(spark).selectExpr(
            "*", "concat('file', id) AS source_file", "CASE WHEN id = 2 THEN 'x' END AS _bad"
        )

        result = deltacheck.write(
            rows,
            table,
            route="rows",
            keep=["source_file", "_bad"],
            rules={"parsed": "_bad IS NULL"},
        )

        assert ids(spark, table) == [1]
        assert held(spark, table)[2] == ["parsed"]
        kept = spark.table(f"{table}_quarantine").select("id", "source_file", "_bad").collect()
        assert {tuple(row) for row in kept} == {
            (2, "file2", "x"),
            (3, "file3", None),
            (4, "file4", None),
        }
        assert result.written == 1

    def test_a_column_that_is_not_there_or_is_the_tables_cannot_be_kept(
        self, spark: SparkSession, table: str
    ) -> None:
        """Both are mistakes of the job."""
        with pytest.raises(deltacheck.UsageError, match="has no column source_file"):
            deltacheck.write(good(spark), table, keep="source_file")
        with pytest.raises(deltacheck.UsageError, match="has a column STATUS"):
            deltacheck.write(good(spark), table, keep="STATUS")
        assert ids(spark, table) == []


class TestSilence:
    """No message has a value of a row."""

    def test_values_are_in_no_log_and_no_result(
        self,
        spark: SparkSession,
        table: str,
        caplog: pytest.LogCaptureFixture,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        """Not in deltacheck's, and not in PySpark's log of failed queries."""
        rows = batch(spark, "(1, -7654321, 'Mrs Example')", "(2, 1, 'new')")

        result = deltacheck.write(rows, table, route="rows")

        seen = caplog.text + repr(result) + "".join(capfd.readouterr())
        assert "7654321" not in seen
        assert "Mrs Example" not in seen

    @pytest.mark.parametrize("asked", [{"gate": 0}, {"strict": True}])
    def test_values_are_in_no_error(
        self, spark: SparkSession, table: str, asked: dict[str, Any]
    ) -> None:
        """Nor anywhere in its traceback, though it came of an error of Delta that tells them."""
        rows = batch(spark, "(1, -7654321, 'Mrs Example')", "(2, 1, 'new')")

        with pytest.raises(deltacheck.ViolationError) as raised:
            deltacheck.write(rows, table, **asked)

        seen = "".join(traceback.format_exception(raised.value))
        assert "7654321" not in seen
        assert "Mrs Example" not in seen


def test_judging_marks_rows_and_writes_nothing(any_spark: SparkSession, database: str) -> None:
    """For those who route rows themselves; rules of their own may join in."""
    table = make_table(any_spark, f"{database}.orders")
    before = versions(any_spark, table)

    marked = deltacheck.judge(mixed(any_spark), table, rules={"id_small": "id < 4"})

    assert marked.columns == ["id", "amount", "status", "_deltacheck_rules"]
    assert {row["id"]: sorted(row["_deltacheck_rules"]) for row in marked.collect()} == {
        1: [],
        2: [],
        3: ["amount_positive"],
        4: ["amount_positive", "id_small", "status_known"],
    }
    assert versions(any_spark, table) == before
    with pytest.raises(deltacheck.UsageError, match="_deltacheck_rules already"):
        deltacheck.judge(marked, table)
    with pytest.raises(deltacheck.TableNotFoundError):
        deltacheck.judge(mixed(any_spark), f"{database}.nowhere")
