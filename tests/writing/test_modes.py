"""Overwriting and replacing: after a violation nothing was replaced, and rules stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import deltacheck
from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.delta.table import read_table
from deltacheck.names import TableName
from tests.harness.marks import connect_is_slow
from tests.writing.batches import batch, held, ids, make_table, record, versions

COLUMNS = "id INT NOT NULL, amount INT, part STRING"
NAMES = "id, amount, part"


@pytest.fixture
def table(any_spark: SparkSession, database: str) -> str:
    """A partitioned table with a row in each of the partitions x and y."""
    name = make_table(
        any_spark,
        f"{database}.t",
        COLUMNS,
        {"amount_positive": "amount > 0"},
        "PARTITIONED BY (part) TBLPROPERTIES ('mine' = 'kept')",
    )
    deltacheck.write(batch(any_spark, "(1, 1, 'x')", "(2, 1, 'y')", columns=NAMES), name)
    return name


@connect_is_slow
@pytest.mark.parametrize(
    ("asked", "part", "left"),
    [
        ({}, "x", [5]),
        ({"replace_where": "part = 'x'"}, "x", [2, 5]),
        ({"replace_where": "id = 1"}, "z", None),
        ({"options": {"partitionOverwriteMode": "dynamic"}}, "y", [1, 5]),
    ],
    ids=["all", "a partition", "outside", "dynamic"],
)
def test_an_overwrite_replaces_what_it_says_and_nothing_when_it_is_refused(
    any_spark: SparkSession, table: str, asked: dict[str, Any], part: str, left: list[int] | None
) -> None:
    """Constraints, NOT NULL, properties and partitions stay as they were."""
    name = TableName.parse(table)
    before = read_table(any_spark, name)
    bad = batch(any_spark, f"(5, 5, '{part}')", f"(6, -1, '{part}')", columns=NAMES)
    good = bad.where("id = 5")

    if left is None:
        # Rows outside of what is replaced are a fault of the job: never quarantined.
        for rows in (good, bad):
            with pytest.raises(EngineFailure) as raised:
                deltacheck.write(rows, table, "overwrite", "rows", **asked)
            assert failure_of(raised.value).family == "DELTA_REPLACE_WHERE_MISMATCH"
        assert ids(any_spark, table) == [1, 2]
        assert not any_spark.catalog.tableExists(f"{table}_quarantine")
        return
    whole = deltacheck.write(bad, table, "overwrite", **asked)
    assert ids(any_spark, table) == [1, 2]
    assert (whole.ok, whole.quarantined, whole.broken) == (False, 2, {"amount_positive": 1})
    split = deltacheck.write(bad, table, "overwrite", "rows", **asked)
    assert ids(any_spark, table) == left
    assert (split.written, split.quarantined) == (1, 1)
    again = deltacheck.write(good, table, "overwrite", **asked)
    assert (again.route, ids(any_spark, table)) == ("clean", left)

    kept = any_spark.table(f"{table}_quarantine").collect()
    assert {row["_deltacheck_source"] for row in kept} == {"overwrite"}
    after = read_table(any_spark, name)
    assert (after.constraints, after.not_null) == (before.constraints, before.not_null)
    assert (after.properties, after.partition_columns) == (before.properties, ("part",))


def test_the_sessions_own_word_for_dynamic_overwrites_is_kept(
    spark: SparkSession, database: str
) -> None:
    """A batch must not empty partitions that it does not have."""
    table = make_table(spark, f"{database}.t", COLUMNS, {}, "PARTITIONED BY (part)")
    deltacheck.write(batch(spark, "(1, 1, 'x')", "(2, 1, 'y')", columns=NAMES), table)
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        deltacheck.write(batch(spark, "(3, 1, 'y')", columns=NAMES), table, "overwrite")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert ids(spark, table) == [1, 3]


def test_an_overwrite_cannot_partition_a_table_anew(spark: SparkSession, database: str) -> None:
    """That is a replacement."""
    table = make_table(spark, f"{database}.t", COLUMNS, {}, "PARTITIONED BY (part)")
    rows = batch(spark, "(1, 1, 'x')", columns=NAMES)
    with pytest.raises(deltacheck.UsageError, match="is partitioned by part, not by id"):
        deltacheck.write(rows, table, "overwrite", partition_by="id")
    assert deltacheck.write(rows, table, "overwrite", partition_by="part").ok


def test_an_overwrite_with_an_id_happens_once(spark: SparkSession, database: str) -> None:
    """Also when another batch came in between."""
    table = make_table(spark, f"{database}.t", COLUMNS, {"amount_positive": "amount > 0"})
    first = batch(spark, "(1, 1, 'x')", "(2, -1, 'x')", columns=NAMES)
    for number, expected in (("a", [1]), ("b", [3]), ("a", [3])):
        rows = first if number == "a" else batch(spark, "(3, 1, 'x')", columns=NAMES)
        result = deltacheck.write(rows, table, "overwrite", "rows", batch_id=number)
        assert ids(spark, table) == expected
    assert result.repeated
    assert held(spark, table) == {2: ["amount_positive"]}


def test_rows_that_an_overwrite_copies_are_not_counted_as_written(
    spark: SparkSession, database: str
) -> None:
    """Delta counts the whole of each file that it writes anew."""
    table = make_table(spark, f"{database}.t", COLUMNS, {})
    rows = batch(spark, "(1, 1, 'x')", "(2, 1, 'x')", "(3, 1, 'x')", columns=NAMES).coalesce(1)
    deltacheck.write(rows, table)
    result = deltacheck.write(rows.where("id = 1"), table, "overwrite", replace_where="id = 1")
    assert (result.written, ids(spark, table)) == (1, [1, 2, 3])


class TestReplace:
    """``mode="replace"``: for tables that are rebuilt each night."""

    def test_rules_and_properties_stay_in_the_same_commit(
        self, any_spark: SparkSession, table: str
    ) -> None:
        """NOT NULL goes on as a CHECK; columns are those of the batch; partitions stay."""
        name = TableName.parse(table)
        record(any_spark, table, {"id_there": {"not_null": "id"}})
        wide = batch(
            any_spark, "(7, 'x', 7, 'new')", "(8, 'y', 8, 'new')", columns="id, part, amount, more"
        )
        before = versions(any_spark, table)
        for _ in range(3):
            result = deltacheck.write(wide, table, "replace")
            assert (result.ok, result.route, result.written) == (True, "clean", 2)

        assert versions(any_spark, table) == before + 3
        after = read_table(any_spark, name)
        assert {n: "".join(e.split()) for n, e in after.constraints.items()} == {
            "amount_positive": "amount>0",
            "id_there": "`id`ISNOTNULL",
        }
        assert after.properties["mine"] == "kept"
        assert "deltacheck.rules" in after.properties
        assert (after.schema.names, after.partition_columns) == (wide.columns, ("part",))
        with pytest.raises(EngineFailure):
            any_spark.sql(f"INSERT INTO {table} VALUES (NULL, 'x', 1, 'new')").collect()

    def test_a_refused_replacement_replaces_nothing(
        self, any_spark: SparkSession, table: str
    ) -> None:
        """By batch it is quarantined, by rows the table is made of the good ones."""
        bad = batch(any_spark, "(5, 5, 'x')", "(6, -1, 'x')", columns=NAMES)

        whole = deltacheck.write(bad, table, "replace")
        assert (whole.ok, ids(any_spark, table)) == (False, [1, 2])
        split = deltacheck.write(bad, table, "replace", "rows")
        assert (split.written, ids(any_spark, table)) == (1, [5])

    def test_a_column_that_a_rule_reads_must_be_there(
        self, spark: SparkSession, database: str
    ) -> None:
        """Delta would take the rule and refuse every later row."""
        table = make_table(spark, f"{database}.t", COLUMNS, {"amount_positive": "amount > 0"})
        with pytest.raises(deltacheck.ConstraintError, match=r"amount_positive .* reads amount"):
            deltacheck.write(spark.sql("SELECT 1 AS id"), table, "replace")
        assert read_table(spark, TableName.parse(table)).schema.names == ["id", "amount", "part"]

    def test_with_an_id_it_happens_once(self, spark: SparkSession, database: str) -> None:
        """On a partitioned table, whose replacement Spark's catalog complains of."""
        table = make_table(spark, f"{database}.t", COLUMNS, {}, "PARTITIONED BY (part)")
        for number, expected in (("a", [1]), ("b", [2]), ("a", [2]), ("c", [3])):
            value = {"a": 1, "b": 2, "c": 3}[number]
            rows = batch(spark, f"({value}, 1, 'x')", columns=NAMES)
            result = deltacheck.write(rows, table, "replace", batch_id=number)
            assert ids(spark, table) == expected
        assert not result.repeated

    def test_a_new_table_can_be_made_this_way(self, spark: SparkSession, database: str) -> None:
        """With partitions, where asked for."""
        table = f"{database}.new"
        rows = batch(spark, "(1, 1, 'x')", columns=NAMES)
        assert deltacheck.write(rows, table, "replace", partition_by="part").ok
        assert read_table(spark, TableName.parse(table)).partition_columns == ("part",)


def test_a_table_named_by_its_path_is_written_in_every_mode(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its quarantine lies beside it."""
    table = f"delta.`{tmp_path}/orders`"
    made = deltacheck.write(batch(spark, "(1, 1, 'x')", columns=NAMES), table)
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT amount_positive CHECK (amount > 0)")
    bad = batch(spark, "(2, 2, 'x')", "(3, -1, 'x')", columns=NAMES)
    split = deltacheck.write(bad, table, route="rows", batch_id="a")
    over = deltacheck.write(bad.where("id = 2"), table, "overwrite")
    new = deltacheck.write(bad.where("id = 2"), table, "replace")

    assert all(result.ok for result in (made, split, over, new))
    assert split.quarantine == f"delta.`{tmp_path}/orders_quarantine`"
    assert ids(spark, table) == [2]
    assert ids(spark, f"delta.`{tmp_path}/orders_quarantine`") == [3]
    assert "amount_positive" in read_table(spark, TableName.parse(table)).constraints
