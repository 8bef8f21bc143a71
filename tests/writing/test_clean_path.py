"""A clean batch pays for nothing but its own write."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession

import deltacheck
from deltacheck.delta.table import history
from deltacheck.ledger.quality_log import log_name
from deltacheck.names import TableName
from tests.writing.batches import (
    OPS,
    batch,
    good,
    make_table,
    mixed,
    plain_append,
    record,
    versions,
)

WARNINGS = {
    "id_small": {"check": "id < 2", "on_violation": "warn"},
    "amount_plausible": {"check": "amount < 50000", "on_violation": "warn"},
}
HELD = {"amount_plausible": WARNINGS["amount_plausible"]}
"""Warn rules that no row breaks; one that is broken is logged."""


LOG = str(log_name(OPS))


def keep_a_log(session: SparkSession, table: str) -> None:
    """Have a log of the environment that recorded rules name: a batch was quarantined before."""
    make_table(session, table)
    record(session, table, {})
    deltacheck.write(mixed(session), table)


def jobs_of(session: SparkSession, work: Callable[[], object]) -> int:
    """How many Spark jobs some work costs."""
    context, group = session.sparkContext, uuid4().hex
    context.setJobGroup(group, "counted")
    try:
        work()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    return len(context.statusTracker().getJobIdsForGroup(group))


@pytest.mark.parametrize(
    "recorded",
    [None, {"amount_positive": {"check": "amount > 0", "on_violation": "fail"}}, HELD],
    ids=["nothing recorded", "recorded rules", "warn rules"],
)
def test_a_clean_write_runs_no_job_and_makes_no_commit_of_its_own(
    spark: SparkSession, database: str, recorded: dict[str, object] | None
) -> None:
    """Counted beside the same append without deltacheck, both tables alike; nor is it logged."""
    keep_a_log(spark, f"{database}.other")
    logged = versions(spark, LOG)
    ours, plain = (make_table(spark, f"{database}.{name}") for name in ("ours", "plain"))
    for table in (ours, plain):
        if recorded is not None:
            record(spark, table, recorded)
        plain_append(good(spark), table)
    before = versions(spark, ours), versions(spark, plain)

    expected = jobs_of(spark, lambda: plain_append(good(spark), plain))
    results: list[deltacheck.WriteResult] = []
    found = jobs_of(spark, lambda: results.append(deltacheck.write(good(spark), ours)))

    assert found == expected > 0
    assert (versions(spark, ours), versions(spark, plain)) == (before[0] + 1, before[1] + 1)
    assert versions(spark, LOG) == logged
    assert (results[0].route, results[0].broken) == ("clean", {})
    assert not spark.catalog.tableExists(f"{ours}_quarantine")


@pytest.mark.parametrize("way", ["a path table", "by rows", "a guarded write", "another mode"])
def test_no_way_of_writing_a_clean_batch_costs_a_job_more(
    spark: SparkSession, database: str, way: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As many jobs as without deltacheck."""
    folder = tmp_path_factory.mktemp("tables")
    tables = [f"{database}.ours", f"{database}.plain"]
    if way == "a path table":
        tables = [f"delta.`{folder}/ours`", f"delta.`{folder}/plain`"]
    ours, plain = (make_table(spark, table) for table in tables)

    def save(df: DataFrame) -> None:
        df.write.format("delta").mode("append").save(f"{folder}/plain")

    ways: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "a path table": (lambda: deltacheck.write(good(spark), ours), lambda: save(good(spark))),
        "by rows": (
            lambda: deltacheck.write(good(spark), ours, "append", "rows", max_bad="5%", gate=9),
            lambda: plain_append(good(spark), plain),
        ),
        "a guarded write": (
            lambda: deltacheck.guard(good(spark), ours, lambda d: d.writeTo(ours).append()),
            lambda: good(spark).writeTo(plain).append(),
        ),
        "another mode": (
            lambda: deltacheck.write(good(spark), ours, "overwrite"),
            lambda: good(spark).write.insertInto(plain, overwrite=True),
        ),
    }
    guarded, bare = ways[way]
    for _ in range(2):
        expected, found = jobs_of(spark, bare), jobs_of(spark, guarded)
    assert found == expected > 0


def test_the_result_looks_at_the_table_when_it_is_asked(spark: SparkSession, database: str) -> None:
    """``written`` and ``version`` cost one look at the history, together and once."""
    table = make_table(spark, f"{database}.orders")
    result = deltacheck.write(good(spark), table)
    looks = [jobs_of(spark, lambda: (result.written, result.version)) for _ in range(2)]
    assert looks[1] == 0 < looks[0]
    assert (result.written, result.version) == (
        2,
        history(spark, TableName.parse(table))[0].version,
    )


def test_counts_of_warn_rules_ride_along(any_spark: SparkSession, database: str) -> None:
    """As observed metrics of the write; rows that only a warning is for are written."""
    table = make_table(any_spark, f"{database}.orders", rules={})
    record(
        any_spark, table, {**WARNINGS, "known": {"check": "nothing > 1", "on_violation": "warn"}}
    )
    for rows, broken in (
        (mixed(any_spark), {"id_small": 3, "amount_plausible": 1}),
        (good(any_spark), {"id_small": 1}),
    ):
        result = deltacheck.write(rows, table)
        assert (result.ok, result.route, result.broken) == (True, "clean", broken)
    assert versions(any_spark, table) == 4


def test_warnings_look_at_rows_as_the_table_will_hold_them(
    spark: SparkSession, database: str
) -> None:
    """A text is read as the column's type, '' in a partition is NULL, a lacking field is NULL:
    nothing that plain Delta accepts fails for a warning."""
    columns = "amount DOUBLE, part STRING, place STRUCT<zip: INT, town: STRING>"
    table = make_table(spark, f"{database}.t", columns, {}, "PARTITIONED BY (part)")
    rules = {
        "small": "amount < 5",
        "part_there": "part IS NOT NULL",
        "town_there": "place.town IS NOT NULL",
    }
    record(spark, table, {n: {"check": r, "on_violation": "warn"} for n, r in rules.items()})
    rows = batch(
        spark,
        "('5.5', '', named_struct('zip', 1))",
        "('1e0', 'x', named_struct('zip', 2))",
        columns="amount, part, place",
    )
    result = deltacheck.write(rows, table)
    assert (result.route, result.written) == ("clean", 2)
    assert result.broken == {"small": 1, "part_there": 1, "town_there": 2}


def test_warnings_are_counted_in_every_mode(spark: SparkSession, database: str) -> None:
    """Also where an overwrite replaces everything, some rows or the batch's partitions."""
    table = make_table(spark, f"{database}.orders", rules={}, more="PARTITIONED BY (status)")
    record(spark, table, WARNINGS)
    dynamic = {"partitionOverwriteMode": "dynamic"}
    for asked in ({}, {"replace_where": "id > 0"}, {"options": dynamic}):
        result = deltacheck.write(good(spark), table, "overwrite", **asked)
        assert (result.route, result.broken) == ("clean", {"id_small": 1})


def test_an_empty_batch_breaks_no_warning(spark: SparkSession, database: str) -> None:
    """Observed metrics of no rows are no metrics that were never observed."""
    table = make_table(spark, f"{database}.orders")
    record(spark, table, WARNINGS)
    result = deltacheck.write(good(spark).where("false"), table)
    assert (result.ok, result.route, result.broken, result.written) == (True, "clean", {}, 0)
