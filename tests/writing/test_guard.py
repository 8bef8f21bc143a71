"""Any write of one's own is attempted first; its source rows are quarantined on a violation."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import deltacheck
from deltacheck.delta.failures import EngineFailure, Violation, violation_of
from deltacheck.ledger.quality_log import read_log
from deltacheck.ledger.recorded import recorded_text, set_statement
from deltacheck.names import TableName
from deltacheck.rules.given import checks_given, rules_given
from deltacheck.rules.model import TableRules
from tests.harness.marks import connect_is_slow
from tests.writing.batches import (
    BAD,
    OPS,
    RULES,
    batch,
    good,
    held,
    ids,
    make_table,
    mixed,
    record,
    versions,
)

Action = Callable[[DataFrame], object]


def merging(table: str, update: str = "*") -> Action:
    """A MERGE by id."""

    def merge(rows: DataFrame) -> None:
        rows.createOrReplaceTempView("updates")
        rows.sparkSession.sql(
            f"MERGE INTO {table} t USING updates u ON t.id = u.id "
            f"WHEN MATCHED THEN UPDATE SET {update} WHEN NOT MATCHED THEN INSERT *"
        ).collect()

    return merge


def inserting(table: str) -> Action:
    """A plain insert."""
    return lambda rows: rows.write.insertInto(table)


class TestMerge:
    """Delta judges the rows that result; the source is looked at only once it has refused."""

    @connect_is_slow
    def test_by_batch_the_source_is_quarantined_whole(
        self, any_spark: SparkSession, database: str
    ) -> None:
        """A clean batch is merged; of a bad one nothing is, and its rows carry their reasons."""
        table = make_table(any_spark, f"{database}.orders")
        clean = deltacheck.guard(good(any_spark), table, merging(table))
        before = versions(any_spark, table)

        result = deltacheck.guard(mixed(any_spark), table, merging(table), job="nightly")

        assert (clean.ok, clean.route, clean.written, clean.quarantined) == (True, "clean", None, 0)
        assert (result.ok, result.route, result.written) == (False, "batch", 0)
        assert (result.quarantined, result.quarantine) == (4, f"{table}_quarantine")
        assert result.broken == {"amount_positive": 2, "status_known": 1}
        assert result.rule in RULES
        assert (versions(any_spark, table), result.version) == (before, before - 1)
        assert held(any_spark, table) == {
            1: [],
            2: [],
            3: ["amount_positive"],
            4: ["amount_positive", "status_known"],
        }
        rows = any_spark.table(f"{table}_quarantine").collect()
        assert {row["_deltacheck_source"] for row in rows} == {"guard"}
        assert {row["_deltacheck_job"] for row in rows} == {"nightly"}
        assert {row["_deltacheck_rule"] for row in rows} == {result.rule}

    def test_by_rows_the_others_are_merged(self, any_spark: SparkSession, database: str) -> None:
        """Those that break a rule by themselves are quarantined."""
        table = make_table(any_spark, f"{database}.orders")
        deltacheck.write(batch(any_spark, "(1, 5, 'new')"), table)

        result = deltacheck.guard(mixed(any_spark), table, merging(table), "rows")

        assert (result.ok, result.route, result.quarantined) == (True, "rows", 2)
        assert sorted(any_spark.table(table).select("id", "amount").collect()) == [(1, 10), (2, 20)]
        assert sorted(held(any_spark, table)) == [3, 4]

    def test_a_result_that_no_source_row_breaks_by_itself_quarantines_the_batch(
        self, spark: SparkSession, table: str
    ) -> None:
        """On either route: ``broken`` is empty, since no single row could be blamed."""
        deltacheck.write(batch(spark, "(1, 5, 'new')"), table)
        subtract = merging(table, "t.amount = t.amount - u.amount")
        for number, route in enumerate(("batch", "rows")):
            rows = batch(spark, "(1, 7, 'new')", f"({number + 2}, 1, 'new')")

            result = deltacheck.guard(rows, table, subtract, route)  # type: ignore[arg-type]

            assert (result.route, result.rule, result.broken) == ("batch", "amount_positive", {})
            assert result.quarantined == 2
        assert [tuple(row) for row in spark.table(table).collect()] == [(1, 5, "new")]

    def test_a_good_source_row_is_not_judged_while_delta_accepts_its_result(
        self, spark: SparkSession, table: str
    ) -> None:
        """A negative difference is no negative amount."""
        deltacheck.write(batch(spark, "(1, 5, 'new')"), table)
        add = merging(table, "t.amount = t.amount + u.amount")
        result = deltacheck.guard(batch(spark, "(1, -2, 'new')"), table, add, "rows")
        assert (result.route, result.quarantine) == ("clean", None)
        assert [tuple(row) for row in spark.table(table).collect()] == [(1, 3, "new")]

    def test_where_the_others_are_refused_as_well_all_are_quarantined(
        self, spark: SparkSession, table: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Once each: what was sent before is taken back."""
        deltacheck.write(batch(spark, "(1, 5, 'new')"), table)
        subtract = merging(table, "t.amount = t.amount - u.amount")

        result = deltacheck.guard(mixed(spark), table, subtract, "rows")

        assert (result.ok, result.route, result.quarantined) == (False, "batch", 4)
        assert sorted(held(spark, table)) == [1, 2, 3, 4]
        assert ids(spark, table) == [1]
        assert "refused the other rows of a guarded batch as well" in caplog.text

    def test_a_source_with_other_columns_is_quarantined_as_it_came(
        self, spark: SparkSession, table: str
    ) -> None:
        """Rules on columns that it does not have, or in which it holds what they cannot read."""
        source = spark.sql("SELECT 1 AS id, -5 AS change, 'many' AS amount, 'x' AS status")

        def insert(rows: DataFrame) -> None:
            rows.selectExpr("id", "change AS amount", "'new' AS status").write.insertInto(table)

        result = deltacheck.guard(source, table, insert, "rows")
        without = deltacheck.guard(source.drop("amount", "status"), table, insert, "rows")

        assert (result.route, result.rule, result.broken) == ("batch", "amount_positive", {})
        assert (without.route, without.quarantined) == ("batch", 1)
        rows = spark.table(f"{table}_quarantine").select("id", "change", "amount").collect()
        assert sorted(map(tuple, rows), key=str) == [(1, -5, "many"), (1, -5, None)]


WAYS: dict[str, Callable[[str], Action]] = {
    "insertInto": inserting,
    "writeTo": lambda table: lambda rows: rows.writeTo(table).append(),
    "saveAsTable": lambda table: (
        lambda rows: rows.write.format("delta").mode("append").saveAsTable(table)
    ),
    "overwrite": lambda table: lambda rows: rows.write.insertInto(table, overwrite=True),
    "replaceWhere": lambda table: (
        lambda rows: (
            rows.write.format("delta")
            .mode("overwrite")
            .option("replaceWhere", "id > 0")
            .saveAsTable(table)
        )
    ),
}


@pytest.mark.parametrize(("way", "route"), [*zip(WAYS, ["rows", "batch"] * 3, strict=False)])
def test_every_way_of_writing_can_be_guarded(
    spark: SparkSession, table: str, way: str, route: str
) -> None:
    """Rows are where they belong, and a clean batch is just written."""
    action = WAYS[way](table)
    assert deltacheck.guard(good(spark), table, action).route == "clean"
    spark.sql(f"DELETE FROM {table}")

    result = deltacheck.guard(mixed(spark), table, action, route)  # type: ignore[arg-type]

    assert (result.ok, result.route) == (route == "rows", route)
    assert ids(spark, table) == ([1, 2] if route == "rows" else [])
    assert sorted(held(spark, table)) == ([3, 4] if route == "rows" else [1, 2, 3, 4])


def test_a_path_table_can_be_guarded(spark: SparkSession, tmp_path: Path) -> None:
    """Its quarantine is the folder beside it."""
    path = f"{tmp_path}/orders"
    table = make_table(spark, f"delta.`{path}`")

    def save(rows: DataFrame) -> None:
        rows.write.format("delta").mode("append").save(path)

    result = deltacheck.guard(mixed(spark), table, save, "rows")

    assert (result.ok, result.quarantined) == (True, 2)
    assert ids(spark, table) == [1, 2]
    assert result.quarantine == f"delta.`{path}_quarantine`"
    assert ids(spark, result.quarantine) == [3, 4]


def test_an_action_like_update_may_read_its_source_as_it_likes(
    spark: SparkSession, table: str
) -> None:
    """A list of ids to be updated; what the UPDATE makes of the rows breaks the rule."""
    deltacheck.write(good(spark), table)
    source = batch(spark, "(1, 'wrong')", columns="id, reason")

    def update(rows: DataFrame) -> None:
        wrong = ", ".join(str(row["id"]) for row in rows.collect())
        spark.sql(f"UPDATE {table} SET amount = -amount WHERE id IN ({wrong})")

    result = deltacheck.guard(source, table, update)

    assert (result.ok, result.rule, result.broken) == (False, "amount_positive", {})
    assert result.quarantined == 1
    assert sorted(row.amount for row in spark.table(table).collect()) == [10, 20]
    kept = spark.table(f"{table}_quarantine").select("id", "reason").collect()
    assert [tuple(row) for row in kept] == [(1, "wrong")]


class TestWithAnId:
    """A batch is quarantined once, however often it is retried."""

    @connect_is_slow
    def test_the_batch_is_quarantined_once(self, any_spark: SparkSession, database: str) -> None:
        """A retry does not even try, and its result is the first one's."""
        table = make_table(any_spark, f"{database}.orders")
        tried: list[int] = []

        def insert(rows: DataFrame) -> None:
            tried.append(1)
            rows.write.insertInto(table)

        first = deltacheck.guard(mixed(any_spark), table, insert, batch_id="a")
        again = deltacheck.guard(good(any_spark), table, insert, batch_id="a")
        other = deltacheck.guard(mixed(any_spark).where("id > 2"), table, insert, batch_id="b")

        assert (first.repeated, again.repeated, other.repeated) == (False, True, False)
        assert len(tried) == 2
        assert (again.ok, again.route, again.written) == (False, "batch", 0)
        assert (again.quarantined, again.broken) == (first.quarantined, first.broken)
        assert (again.rule, again.batch_id) == (first.rule, "a")
        rows = any_spark.table(f"{table}_quarantine").collect()
        assert sorted((row["_deltacheck_batch"], row["id"]) for row in rows) == [
            *(("a", number) for number in (1, 2, 3, 4)),
            *(("b", number) for number in (3, 4)),
        ]

    def test_whoever_comes_second_at_the_same_time_adds_nothing(
        self, spark: SparkSession, table: str
    ) -> None:
        """Both looked before either had quarantined."""
        nested: list[deltacheck.WriteResult] = []

        def insert(rows: DataFrame) -> None:
            if not nested:
                nested.append(
                    deltacheck.guard(rows, table, lambda d: d.write.insertInto(table), batch_id="a")
                )
            rows.write.insertInto(table)

        result = deltacheck.guard(mixed(spark), table, insert, batch_id="a")

        assert (nested[0].repeated, result.repeated, result.quarantined) == (False, True, 4)
        assert sorted(held(spark, table)) == [1, 2, 3, 4]

    def test_rows_that_were_purged_are_not_forgotten_in_silence(
        self, spark: SparkSession, table: str
    ) -> None:
        """The quarantine does not take the batch again, so nothing may say that it did."""
        deltacheck.guard(mixed(spark), table, inserting(table), batch_id="a")
        spark.sql(f"DELETE FROM {table}_quarantine")
        with pytest.raises(deltacheck.BatchError, match="have been purged since"):
            deltacheck.guard(mixed(spark), table, inserting(table), batch_id="a")
        assert ids(spark, table) == []

    def test_it_does_not_go_with_rows(self, spark: SparkSession, table: str) -> None:
        """Nobody could tell whether the action ran before."""
        with pytest.raises(deltacheck.UsageError, match="Nothing was done"):
            deltacheck.guard(mixed(spark), table, inserting(table), "rows", batch_id="a")
        assert ids(spark, table) == []


class TestErrors:
    """What is no violation of the table's rules passes through as it came."""

    def test_an_error_of_the_action_is_raised_as_it_is(
        self, spark: SparkSession, table: str
    ) -> None:
        """The same object, and nothing is quarantined."""
        mistake = ValueError("a mistake of the job")

        def fail(_: DataFrame) -> None:
            raise mistake

        with pytest.raises(ValueError) as raised:
            deltacheck.guard(mixed(spark), table, fail)
        assert raised.value is mistake
        assert raised.value.__cause__ is None
        assert not spark.catalog.tableExists(f"{table}_quarantine")

    def test_another_error_of_delta_is_raised_as_it_came(
        self, any_spark: SparkSession, database: str
    ) -> None:
        """A column too many."""
        table = make_table(any_spark, f"{database}.orders")
        wide = mixed(any_spark).selectExpr("*", "1 AS more")
        append = WAYS["saveAsTable"](table)
        with pytest.raises(EngineFailure, match="DELTA_METADATA_MISMATCH"):
            deltacheck.guard(wide, table, append, "rows")
        assert not any_spark.catalog.tableExists(f"{table}_quarantine")

    def test_a_violation_in_another_table_is_raised_as_it_came(
        self, spark: SparkSession, table: str, database: str
    ) -> None:
        """An action may write to several; only the guarded one's rules count."""
        other = make_table(spark, f"{database}.other", rules={"id_small": "id < 3"})
        with pytest.raises(EngineFailure) as raised:
            deltacheck.guard(batch(spark, BAD), table, inserting(other))
        assert violation_of(raised.value) == Violation("id_small")
        assert not spark.catalog.tableExists(f"{table}_quarantine")

    def test_without_any_source_row_there_is_nothing_to_quarantine(
        self, spark: SparkSession, table: str
    ) -> None:
        """So the action is what is wrong."""
        deltacheck.write(good(spark), table)
        update = f"UPDATE {table} SET amount = -1"
        with pytest.raises(EngineFailure) as raised:
            deltacheck.guard(good(spark).where("false"), table, lambda _: spark.sql(update))
        assert violation_of(raised.value) == Violation("amount_positive")

    def test_rows_outside_of_what_an_overwrite_replaces_are_a_fault_of_the_job(
        self, spark: SparkSession, table: str
    ) -> None:
        """Also where the source does not have the columns of the predicate."""

        def replace(rows: DataFrame) -> None:
            shaped = rows.selectExpr(f"{rows.columns[0]} AS id", "amount", "status")
            writer = shaped.write.format("delta").mode("overwrite")
            writer.option("replaceWhere", "id < 2").saveAsTable(table)

        for rows in (good(spark), good(spark).withColumnRenamed("id", "number")):
            with pytest.raises(EngineFailure) as raised:
                deltacheck.guard(rows, table, replace)
            violation = violation_of(raised.value)
            assert violation is not None
            assert violation.replaces is not None
        assert not spark.catalog.tableExists(f"{table}_quarantine")

    def test_a_quarantine_that_cannot_be_written_lets_the_refusal_through(
        self, any_spark: SparkSession, database: str
    ) -> None:
        """Delta's own error is raised, and the quarantine's trouble is its cause."""
        table = make_table(any_spark, f"{database}.orders")
        any_spark.sql(f"CREATE TABLE {table}_quarantine (id INT) USING delta")

        with pytest.raises(EngineFailure) as raised:
            deltacheck.guard(mixed(any_spark), table, inserting(table), "rows")

        assert violation_of(raised.value) is not None
        assert isinstance(raised.value.__cause__, deltacheck.QuarantineError)
        assert ids(any_spark, table) == ids(any_spark, f"{table}_quarantine") == []

    def test_an_error_of_the_second_attempt_takes_the_rows_back(
        self, spark: SparkSession, table: str
    ) -> None:
        """Then nothing was written anywhere."""
        tries: list[int] = []

        def flaky(rows: DataFrame) -> None:
            tries.append(1)
            if len(tries) == 2:
                raise OSError("the network is gone")
            rows.write.insertInto(table)

        with pytest.raises(OSError, match="network"):
            deltacheck.guard(mixed(spark), table, flaky, "rows")
        assert ids(spark, table) == ids(spark, f"{table}_quarantine") == []

    def test_the_table_must_be_there(self, spark: SparkSession, database: str) -> None:
        """The action is not tried."""
        with pytest.raises(deltacheck.TableNotFoundError):
            deltacheck.guard(
                good(spark), f"{database}.nowhere", lambda _: pytest.fail("it was tried")
            )


class TestArguments:
    """They mean what they mean for ``write``."""

    def test_strict_raises_once_the_batch_is_safe(self, spark: SparkSession, table: str) -> None:
        """And who wants to be told is called before."""
        told: list[deltacheck.WriteResult] = []
        with pytest.raises(deltacheck.BatchQuarantined) as raised:
            deltacheck.guard(
                mixed(spark), table, inserting(table), strict=True, on_quarantine=told.append
            )
        assert told == [raised.value.result]
        assert sorted(held(spark, table)) == [1, 2, 3, 4]

    def test_kept_columns_go_to_quarantine_and_not_to_the_action(
        self, spark: SparkSession, table: str
    ) -> None:
        """They tell where a row comes from."""
        rows = mixed(spark).selectExpr("*", "concat('file', id) AS source_file")
        seen: list[list[str]] = []

        def insert(given: DataFrame) -> None:
            seen.append(given.columns)
            given.write.insertInto(table)

        deltacheck.guard(rows, table, insert, "rows", keep="source_file")

        assert seen == [["id", "amount", "status"]] * 2
        kept = spark.table(f"{table}_quarantine").select("id", "source_file").collect()
        assert sorted(map(tuple, kept)) == [(3, "file3"), (4, "file4")]

    def test_the_quarantine_can_be_elsewhere_and_too_many_bad_rows_take_all_there(
        self, spark: SparkSession, table: str
    ) -> None:
        """``quarantine`` and ``max_bad``."""
        result = deltacheck.guard(
            mixed(spark), table, inserting(table), "rows", max_bad=1, quarantine=f"{table}_bad"
        )
        assert (result.route, result.quarantine) == ("batch", f"{table}_bad")
        assert ids(spark, f"{table}_bad") == [1, 2, 3, 4]

    @pytest.mark.parametrize("source", ["argument", "table"])
    def test_a_gate_fails_the_write(self, spark: SparkSession, table: str, source: str) -> None:
        """Nothing is written or quarantined."""
        record(spark, table, {}, gate="1/3" if source == "table" else None)
        with pytest.raises(deltacheck.GateError) as stop:
            deltacheck.guard(
                mixed(spark),
                table,
                inserting(table),
                "rows",
                gate=1 if source == "argument" else None,
            )
        assert (stop.value.violators, stop.value.rows) == (2, 4)
        assert ids(spark, table) == []
        assert not spark.catalog.tableExists(f"{table}_quarantine")

    def test_a_fail_rule_stops_the_write(self, spark: SparkSession, table: str) -> None:
        """Whether a source row breaks it or Delta names it for what the action made of the rows."""
        fails = {"amount_positive": {"check": "amount > 0", "on_violation": "fail"}}
        actions: dict[str, tuple[DataFrame, Action]] = {
            "a source row": (mixed(spark), inserting(table)),
            "the result": (
                good(spark),
                lambda rows: rows.selectExpr("id", "-amount", "status").write.insertInto(table),
            ),
        }
        violators = {}
        for what, (rows, action) in actions.items():
            with pytest.raises(deltacheck.FailRuleError) as stop:
                deltacheck.guard(rows, table, action, rules=fails)
            assert stop.value.rule == "amount_positive"
            violators[what] = stop.value.violators
        assert violators == {"a source row": 2, "the result": 0}
        assert not spark.catalog.tableExists(f"{table}_quarantine")

    def test_a_drop_rule_leaves_rows_out_by_rows_only(
        self, spark: SparkSession, table: str
    ) -> None:
        """What breaks it by itself need not be what Delta refused: by batch nothing is dropped."""
        drops: dict[str, Any] = {
            "amount_positive": {"check": "amount > 0", "on_violation": "drop"},
            "id_small": {"check": "id < 2", "on_violation": "warn"},
        }
        rows = mixed(spark).where("id < 4")

        whole = deltacheck.guard(rows, table, inserting(table), rules=drops)
        split = deltacheck.guard(rows, table, inserting(table), "rows", rules=drops)

        assert (whole.ok, whole.quarantined, whole.dropped) == (False, 3, 0)
        assert (split.ok, split.quarantined, split.dropped) == (True, 0, 1)
        assert split.broken == {"amount_positive": 1, "id_small": 2}
        assert ids(spark, table) == [1, 2]

    def test_a_rule_for_which_delta_refuses_nothing_is_no_rule_of_a_guarded_write(
        self, spark: SparkSession, table: str
    ) -> None:
        """The message says what to do instead."""
        with pytest.raises(deltacheck.UsageError, match="does not enforce the rule few") as refused:
            deltacheck.guard(mixed(spark), table, inserting(table), rules={"few": "id < 3"})
        assert "deltacheck.judge" in (refused.value.hint or "")

    def test_no_value_of_a_row_is_logged(
        self,
        spark: SparkSession,
        table: str,
        caplog: pytest.LogCaptureFixture,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        """The warning has rules and numbers."""
        rows = batch(spark, "(1, -7654321, 'Mrs Example')", "(2, 1, 'new')")
        result = deltacheck.guard(rows, table, inserting(table))
        seen = caplog.text + repr(result) + "".join(capfd.readouterr())
        assert "7654321" not in seen
        assert "Mrs Example" not in seen
        (warning,) = [r for r in caplog.records if r.name == "deltacheck"]
        assert warning.levelno == logging.WARNING
        assert "nothing of a batch is written, 2 rows in" in warning.getMessage()


class TestChecks:
    """The source as a whole is looked at before the action, where there are checks."""

    def test_an_action_is_not_tried_where_a_check_says_stop(
        self, any_spark: SparkSession, database: str
    ) -> None:
        """Half a file that is merged; the message has the figures, and nothing is quarantined."""
        table = make_table(any_spark, f"{database}.orders")
        half: dict[str, Any] = {"half": {"row_count": {"min": 3}}}
        total = {"total": {"reconcile": {"measure": "sum(amount)", "figure": "sum"}}}

        with pytest.raises(deltacheck.CheckError, match="half: 2 rows, fewer than 3"):
            deltacheck.guard(good(any_spark), table, untried, checks=half)
        with pytest.raises(deltacheck.CheckError, match="the figure sum is 31"):
            deltacheck.guard(good(any_spark), table, untried, checks=total, figures={"sum": 31})
        with pytest.raises(deltacheck.UsageError, match="needs the figure sum"):
            deltacheck.guard(good(any_spark), table, untried, checks=total)

        assert ids(any_spark, table) == []
        assert not any_spark.catalog.tableExists(f"{table}_quarantine")

    @connect_is_slow
    def test_the_source_is_quarantined_whole_for_a_check(
        self, any_spark: SparkSession, database: str
    ) -> None:
        """Untried, once for an id, by the name of the check; each row with what it breaks."""
        table = make_table(any_spark, f"{database}.orders")
        checks = {"few": {"row_count": {"max": 3}, "on_failure": "quarantine"}}
        asked: dict[str, Any] = {"checks": checks, "batch_id": "a"}

        first, again = (
            deltacheck.guard(mixed(any_spark), table, untried, **asked) for _ in range(2)
        )

        assert (first.ok, first.route, first.quarantined, first.rule) == (False, "batch", 4, "few")
        assert first.checks == {"few": "4 rows, more than 3"}
        assert (again.repeated, again.quarantined, again.rule) == (True, 4, "few")
        assert ids(any_spark, table) == []
        assert held(any_spark, table) == {
            1: [],
            2: [],
            3: ["amount_positive"],
            4: ["amount_positive", "status_known"],
        }

    def test_a_source_that_no_rule_can_read_is_quarantined_for_a_check_as_it_came(
        self, spark: SparkSession, table: str
    ) -> None:
        """A lost batch: the action would have made amounts of these words."""
        rows = spark.sql("SELECT 1 AS id, 'many' AS amount, 'new' AS status")
        checks = {"more": {"row_count": {"min": 2}, "on_failure": "quarantine"}}

        result = deltacheck.guard(rows, table, untried, checks=checks)

        assert (result.quarantined, result.broken) == (1, {})
        assert held(spark, table) == {1: []}

    def test_the_action_is_given_the_rows_that_were_looked_at(
        self, spark: SparkSession, table: str
    ) -> None:
        """They are pinned: a source that is computed anew each time would have others."""
        rows = spark.sql(
            "SELECT INT(id) AS id, INT(rand() * 1e6) + 1 AS amount, 'new' AS status FROM range(50)"
        )
        total = {"reconcile": {"measure": "sum(amount)", "figure": "total"}, "on_failure": "warn"}

        result = deltacheck.guard(
            rows, table, inserting(table), checks={"total": total}, figures={"total": 1}
        )

        (written,) = spark.table(table).selectExpr("sum(amount)").collect()[0]
        assert f"sum(amount) is {written:,}, the figure total is 1" in result.checks["total"]

    def test_a_check_that_only_warns_lets_the_action_go_on(
        self, spark: SparkSession, table: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """What Delta then refuses is routed as ever."""
        checks = {"few": {"row_count": {"max": 1}, "on_failure": "warn"}}

        clean = deltacheck.guard(good(spark), table, inserting(table), checks=checks)
        split = deltacheck.guard(mixed(spark), table, inserting(table), "rows", checks=checks)

        assert (clean.ok, clean.route, clean.checks) == (
            True,
            "clean",
            {"few": "2 rows, more than 1"},
        )
        assert "few: 2 rows, more than 1" in caplog.text
        assert (split.ok, split.quarantined) == (True, 2)
        assert split.checks == {"few": "4 rows, more than 1"}
        assert ids(spark, table) == [1, 1, 2, 2]

    def test_a_gate_on_a_rule_that_only_warns_is_told_not_to_hold(
        self, spark: SparkSession, table: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A stop that stops nothing: what an action writes is not seen."""
        rules = {"big": {"check": "amount > 15", "on_violation": "warn", "gate": 0}}

        result = deltacheck.guard(good(spark), table, inserting(table), rules=rules)

        assert result.ok
        assert "the gate of the rule big is not held" in caplog.text

    def test_declared_checks_are_held_against_the_source(
        self, spark: SparkSession, table: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A false stop, and a false pass: some ask what only the result can tell.

        Rows that the table has already are those that a MERGE updates; a rule on a column that
        the source lacks is one on what the action makes.
        """
        name = TableName.parse(table)
        declared = {
            "once": {"unique_in_table": "id"},
            "rules": {"broken_share": {"max": 0}},
            "amounts": {"broken_share": {"rule": "AMOUNT_positive", "max": 0}},
        }
        checks = checks_given(name, declared)
        rules = TableRules(name, rules_given(name, RULES).rules, batch=checks)
        place = TableName.parse(f"{table}_quarantine")
        deltacheck.write(good(spark), table)
        spark.sql(set_statement(name, recorded_text(rules, place, OPS)))
        source = spark.sql("SELECT 1 AS id, 11 AS amount UNION ALL SELECT 2, -1")

        def merge(updates: DataFrame) -> None:
            merging(table)(updates.selectExpr("id", "amount", "'paid' AS status"))

        with pytest.raises(deltacheck.CheckError, match=r"\(amounts: 1 of 2 rows break"):
            deltacheck.guard(source, table, untried)
        result = deltacheck.guard(source.where("amount > 0"), table, merge)

        assert (result.ok, result.route, result.checks) == (True, "clean", {})
        assert "the check once was not judged, a guarded write may change rows" in caplog.text
        unjudged = "the check rules was not judged, its rows cannot be held against status_known"
        assert unjudged in caplog.text
        said = {line.rule: line.state for line in read_log(spark, OPS) if line.table == table}
        assert (said["amounts"], said["once"], said["rules"]) == ("passed", "unjudged", "unjudged")

    def test_no_guarded_write_can_be_asked_whether_the_table_has_its_rows(
        self, spark: SparkSession, table: str
    ) -> None:
        """Nobody can judge that before the action."""
        once = {"once": {"unique_in_table": "id"}}
        with pytest.raises(deltacheck.UsageError, match="the table has already") as refused:
            deltacheck.guard(good(spark), table, untried, checks=once)
        assert refused.value.rule == "once"


def untried(_: DataFrame) -> None:
    """An action that must not be done."""
    pytest.fail("it was tried")


def test_a_warn_rule_that_cannot_be_evaluated_leaves_the_others_to_judge(
    spark: SparkSession, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Kind of bug: for a rule that only warns nobody judged the rows, and all were quarantined."""
    table = make_table(spark, f"{database}.t", "id INT, code STRING", {"id_up": "id > 0"})
    rows = spark.createDataFrame([(1, "none"), (-2, "4"), (3, "7")], "id INT, code STRING")

    result = deltacheck.guard(
        rows,
        table,
        inserting(table),
        route="rows",
        rules={"code": {"check": "int(code) > 5", "on_violation": "warn"}},
    )

    assert (result.route, result.broken, result.quarantined) == ("rows", {"id_up": 1}, 1)
    assert ids(spark, table) == [1, 3]
    assert "the warn rules code were not looked at" in caplog.text
