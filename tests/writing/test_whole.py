"""A batch as a whole is looked at before it is written: it is stopped, quarantined, or let pass."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import deltacheck
from deltacheck.delta.failures import EngineFailure
from deltacheck.delta.log import quiet_query_loggers
from deltacheck.delta.table import latest_version
from deltacheck.ledger.recorded import recorded_text, set_statement
from deltacheck.names import TableName
from deltacheck.rules.given import checks_given, rules_given
from deltacheck.rules.model import TableRules
from deltacheck.writing.survey import PROJECT_VARIABLE
from tests.writing.batches import (
    GOOD,
    OPS,
    RULES,
    batch,
    good,
    held,
    ids,
    make_table,
    mixed,
    versions,
)

SOME = {"row_count": {"min": 3}}


@pytest.fixture
def table(spark: SparkSession, database: str) -> str:
    """A table with two constraints and no row."""
    return make_table(spark, f"{database}.orders")


def stopped(spark: SparkSession, table: str, check: Mapping[str, Any], **more: Any) -> str:
    """Write a good batch that fails a check; the message. Nothing is written anywhere."""
    version = latest_version(spark, TableName.parse(table))
    with pytest.raises(deltacheck.CheckError) as refused:
        deltacheck.write(good(spark), table, checks={"c": check}, **more)
    assert latest_version(spark, TableName.parse(table)) == version
    assert not spark.catalog.tableExists(f"{table}_quarantine")
    assert (refused.value.table, refused.value.rule, refused.value.exit_code) == (table, "c", 4)
    # Of the batch, whatever the check looked at.
    assert int(refused.value.rows) == 2
    return refused.value.message


def test_a_batch_that_fails_a_check_is_not_written(spark: SparkSession, table: str) -> None:
    """The message says the figures."""
    assert stopped(spark, table, SOME) == (
        f"A batch for {table} fails 1 check (c: 2 rows, fewer than 3); nothing was written or "
        "quarantined."
    )


def test_each_kind_of_check_sees_what_a_rule_cannot(spark: SparkSession, table: str) -> None:
    other = make_table(spark, f"{table}_other", rules={})
    cases: list[tuple[dict[str, Any], str]] = [
        ({"row_count": {"max": 1}}, "2 rows, more than 1"),
        ({"unique": "amount > 0"}, "2 of 2 rows share amount > 0 with another (1 value)"),
        (
            {"null_share": {"column": "nullif(id, 1)", "max": "1/3"}},
            "1 of 2 rows have no nullif(id, 1), more than 1/3",
        ),
        ({"columns": {"id": "bigint"}}, "id is int, not bigint"),
        ({"requires": {"table": other}}, f"{other} has no row"),
        (
            {"reconcile": {"measure": "sum(amount)", "against": {"table": other}}},
            f"sum(amount) is 30, sum(amount) of {other} is 0: 30 apart, more than 0",
        ),
    ]
    for check, message in cases:
        assert f"(c: {message})" in stopped(spark, table, check)


def test_shares_of_broken_rules_count_every_declared_rule(spark: SparkSession, table: str) -> None:
    """Those too that the table does not enforce and that only warn."""
    rules = {"big": {"check": "amount > 15", "on_violation": "warn"}}

    named = stopped(spark, table, {"broken_share": {"rule": "BIG", "max": "10%"}}, rules=rules)
    any_rule = stopped(spark, table, {"broken_share": {"max": 0}}, rules=rules)

    assert "1 of 2 rows break BIG, more than 10%" in named
    assert "1 of 2 rows break any rule, more than 0 rows" in any_rule


def test_the_share_of_broken_rules_is_that_of_the_rows_as_the_table_holds_them(
    spark: SparkSession, table: str
) -> None:
    """A check that always passes: nothing is declared, and the batch lacks a column."""
    rows = spark.sql("SELECT 1 AS id, 10 AS amount UNION ALL SELECT 2, -1")

    for check, message in (
        ({"max": "1/2"}, "2 of 2 rows break any rule, more than 1/2"),
        (
            {"rule": "Status_Known", "max": "1/2"},
            "2 of 2 rows break Status_Known, more than 1/2",
        ),
        ({"rule": "amount_positive", "max": 0}, "1 of 2 rows break amount_positive, more than 0"),
    ):
        with pytest.raises(deltacheck.CheckError) as refused:
            deltacheck.write(rows, table, checks={"c": {"broken_share": check}})
        assert message in refused.value.message


def test_a_batch_agrees_with_a_figure_that_the_job_gives(spark: SparkSession, table: str) -> None:
    """To the tolerance; a figure that is not given is an error of usage."""
    check = {"reconcile": {"measure": "sum(amount)", "figure": "total", "tolerance": 1}}

    message = stopped(spark, table, check, figures={"total": Decimal("31.01")})
    assert "sum(amount) is 30, the figure total is 31.01: 1.01 apart, more than 1" in message
    with pytest.raises(deltacheck.UsageError, match="needs the figure total") as refused:
        deltacheck.write(good(spark), table, checks={"c": check})
    assert "figures=" in refused.value.hint
    assert deltacheck.write(good(spark), table, checks={"c": check}, figures={"total": 31}).ok


def test_a_retry_that_sends_the_same_rows_again_is_stopped(spark: SparkSession, table: str) -> None:
    """Where the batch has no id; with one it is known again, and nothing is looked at."""
    checks = {"once": {"unique_in_table": "id"}}
    deltacheck.write(good(spark), table, checks=checks, batch_id="monday")

    again = deltacheck.write(good(spark), table, checks=checks, batch_id="monday")
    message = stopped(spark, table, {"unique_in_table": "id"})

    assert again.repeated
    assert f"id of 2 of 2 rows is in {table} already" in message
    assert ids(spark, table) == [1, 2]


def test_an_overwrite_is_unique_among_the_rows_that_it_leaves(
    spark: SparkSession, table: str
) -> None:
    """A write that is refused for ever: the rows that it replaces have the same keys."""
    once: dict[str, Any] = {"checks": {"once": {"unique_in_table": "id"}}}
    deltacheck.write(good(spark), table, **once)

    deltacheck.write(good(spark), table, mode="overwrite", **once)
    deltacheck.write(
        batch(spark, "(1, 11, 'new')"), table, mode="overwrite", replace_where="id = 1", **once
    )
    with pytest.raises(deltacheck.CheckError, match="id of 1 of 1 row is in"):
        deltacheck.write(
            batch(spark, "(1, 20, 'paid')"),
            table,
            mode="overwrite",
            replace_where="amount > 15",
            **once,
        )
    assert ids(spark, table) == [1, 2]
    deltacheck.write(good(spark), table, mode="replace", **once)

    assert ids(spark, table) == [1, 2]


def test_an_overwrite_of_partitions_is_unique_among_the_others(
    spark: SparkSession, database: str
) -> None:
    """A write that is refused for ever: those that the batch has are replaced."""
    table = make_table(spark, f"{database}.parts", rules={}, more="PARTITIONED BY (status)")
    once: dict[str, Any] = {
        "checks": {"once": {"unique_in_table": "id"}},
        "mode": "overwrite",
        "options": {"partitionOverwriteMode": "dynamic"},
    }
    for _ in range(2):
        deltacheck.write(good(spark), table, **once)
    with pytest.raises(deltacheck.CheckError, match="id of 1 of 1 row is in"):
        deltacheck.write(batch(spark, "(2, 1, 'new')"), table, **once)

    assert ids(spark, table) == [1, 2]


@pytest.mark.parametrize("known", [True, False], ids=["there", "not there yet"])
def test_a_batch_that_is_quarantined_for_a_check_spends_its_id(
    spark: SparkSession, database: str, known: bool
) -> None:
    """Doubled rows: a retry tells the same, and quarantines nothing again."""
    table = f"{database}.orders"
    if known:
        make_table(spark, table)
    check = {"few": {**SOME, "on_failure": "quarantine"}}

    first, again = (
        deltacheck.write(good(spark), table, checks=check, batch_id="monday") for _ in range(2)
    )

    assert (first.ok, first.repeated, first.rule) == (False, False, "few")
    assert (again.ok, again.repeated, again.rule) == (False, True, "few")
    assert again.checks == first.checks == {"few": "2 rows, fewer than 3"}
    assert (ids(spark, table), held(spark, table)) == ([], {1: [], 2: []})


def test_a_batch_can_be_quarantined_for_a_check(spark: SparkSession, table: str) -> None:
    """Whole, by the name of the check; its rows need break no rule."""
    check = {**SOME, "on_failure": "quarantine"}

    result = deltacheck.write(good(spark), table, route="rows", checks={"half_a_file": check})

    assert (result.ok, result.route, result.quarantined) == (False, "batch", 2)
    assert result.rule == "half_a_file"
    assert result.checks == {"half_a_file": "2 rows, fewer than 3"}
    assert held(spark, table) == {1: [], 2: []}
    named = spark.table(f"{table}_quarantine").select("_deltacheck_rule").distinct().collect()
    assert [row[0] for row in named] == ["half_a_file"]
    assert ids(spark, table) == []


def test_an_empty_batch_cannot_be_quarantined_and_stops(spark: SparkSession, table: str) -> None:
    """There is nothing to keep, and a green job would hide that nothing came."""
    check = {"not_empty": True, "on_failure": "quarantine"}

    with pytest.raises(deltacheck.CheckError, match="0 rows, fewer than 1"):
        deltacheck.write(good(spark).where("false"), table, checks={"c": check})


def test_a_check_that_only_warns_is_logged_and_told(
    spark: SparkSession, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "deltacheck"):
        result = deltacheck.write(good(spark), table, checks={"c": {**SOME, "on_failure": "warn"}})

    assert (result.ok, result.route, result.checks) == (
        True,
        "clean",
        {"c": "2 rows, fewer than 3"},
    )
    assert "c: 2 rows, fewer than 3" in caplog.text
    assert ids(spark, table) == [1, 2]


def test_a_batch_that_passes_its_checks_is_written_and_its_bad_rows_routed(
    spark: SparkSession, table: str
) -> None:
    result = deltacheck.write(mixed(spark), table, route="rows", checks={"c": SOME})

    assert (result.written, result.quarantined, result.checks) == (2, 2, {})
    assert ids(spark, table) == [1, 2]
    assert set(held(spark, table)) == {3, 4}


def test_checks_are_found_where_rules_are(
    spark: SparkSession, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded in the table, as on a cluster; in a project; and with the batch."""
    name = TableName.parse(table)
    rules = TableRules(
        name, rules_given(name, RULES).rules, batch=checks_given(name, {"Some": SOME})
    )
    text = recorded_text(rules, TableName.parse(f"{table}_quarantine"), OPS)
    spark.sql(set_statement(name, text))
    with pytest.raises(deltacheck.CheckError, match="fewer than 3"):
        deltacheck.write(good(spark), table)
    assert deltacheck.write(good(spark), table, checks={"some": {"row_count": {"min": 1}}}).ok

    (tmp_path / "deltacheck.toml").write_text('[env.l]\nspark = "local"\nwarehouse = "w"\n')
    (tmp_path / "constraints").mkdir()
    declared = f"table: {table}\nbatch: {{some: {{row_count: {{min: 4}}}}}}\n"
    (tmp_path / "constraints" / "orders.yml").write_text(declared)
    monkeypatch.setenv(PROJECT_VARIABLE, str(tmp_path))
    with pytest.raises(deltacheck.CheckError, match="fewer than 4"):
        deltacheck.write(good(spark), table)


def test_a_batch_that_is_computed_anew_each_time_is_written_as_it_was_looked_at(
    spark: SparkSession, table: str
) -> None:
    """It is pinned before its checks."""
    rows = spark.sql(
        "SELECT CAST(id AS INT) AS id, CAST(rand() * 1000000 AS INT) + 1 AS amount, "
        "'new' AS status FROM range(50)"
    )
    total = {"reconcile": {"measure": "sum(amount)", "figure": "total", "tolerance": "1000%"}}

    result = deltacheck.write(
        rows, table, checks={"c": {**total, "on_failure": "warn"}}, figures={"total": 1}
    )

    (written,) = spark.table(table).selectExpr("sum(amount)").collect()[0]
    assert f"sum(amount) is {written:,}, the figure total is 1" in result.checks["c"]


def test_a_table_that_is_not_there_yet_has_no_rows_to_be_unique_among(
    spark: SparkSession, database: str
) -> None:
    checks = {"once": {"unique_in_table": "id"}}

    result = deltacheck.write(batch(spark, GOOD), f"{database}.fresh", checks=checks)

    assert result.ok
    assert ids(spark, f"{database}.fresh") == [1, 2]


def test_no_view_is_left_behind(spark: SparkSession, table: str) -> None:
    def views() -> set[str]:
        return {row["viewName"] for row in spark.sql("SHOW VIEWS").collect()}

    before = views()
    stopped(spark, table, SOME)
    deltacheck.write(good(spark), table, checks={"c": {"row_count": {"min": 1}}})

    assert views() == before


LACKING = {"amount_there": {"not_null": "amount"}}
"""A rule on a column that the batches below lack."""


@pytest.fixture
def strict_table(spark: SparkSession, database: str) -> str:
    """A table whose amounts may not be NULL, which is a CHECK."""
    return make_table(
        spark, f"{database}.strict", "id INT, amount INT", {"amount_there": "amount IS NOT NULL"}
    )


def test_an_empty_batch_that_lacks_a_column_leaves_its_id_to_the_retry(
    spark: SparkSession, strict_table: str
) -> None:
    """Lost rows: Delta takes no rows as they come, and the id would be spent before the checks."""
    asked: dict[str, Any] = {
        "rules": LACKING,
        "checks": {"some": {"not_empty": True}},
        "batch_id": "monday",
    }
    empty = spark.sql("SELECT 1 AS id WHERE false")

    with pytest.raises(deltacheck.CheckError, match="0 rows, fewer than 1"):
        deltacheck.write(empty, strict_table, **asked)
    retried = deltacheck.write(spark.sql("SELECT 1 AS id, 2 AS amount"), strict_table, **asked)

    assert (retried.repeated, retried.written) == (False, 1)
    assert ids(spark, strict_table) == [1]


def test_a_batch_that_lacks_a_column_and_passes_its_checks_gets_deltas_own_words(
    spark: SparkSession, strict_table: str
) -> None:
    """Misrouting: a fault of the job is neither for quarantine nor for a gate."""
    asked: dict[str, Any] = {"rules": LACKING, "checks": {"c": {"row_count": {"max": 1}}}}
    before = versions(spark, strict_table)

    with pytest.raises(EngineFailure, match="amount_there"), quiet_query_loggers():
        deltacheck.write(spark.sql("SELECT 1 AS id"), strict_table, gate=0, **asked)
    assert versions(spark, strict_table) == before
    assert not spark.catalog.tableExists(f"{strict_table}_quarantine")

    empty = deltacheck.write(spark.sql("SELECT 1 AS id WHERE false"), strict_table, **asked)

    assert (empty.route, empty.written) == ("clean", 0)


def test_an_empty_batch_that_lacks_a_column_of_the_schema_gets_deltas_own_words(
    spark: SparkSession, database: str
) -> None:
    """Misrouting: there is no row to quarantine, though Delta refuses even none."""
    table = make_table(spark, f"{database}.plain", "id INT, amount INT NOT NULL", {})
    empty = spark.sql("SELECT 1 AS id WHERE false")

    with pytest.raises(EngineFailure, match="amount"), quiet_query_loggers():
        deltacheck.write(empty, table, checks={"c": {"row_count": {"max": 1}}}, batch_id="monday")

    assert not spark.catalog.tableExists(f"{table}_quarantine")
