"""The quarantine table itself: made on first need, widened, and kept out of harm's way."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltacheck.delta.commit import Tag
from deltacheck.delta.session import settings
from deltacheck.delta.table import latest_version, read_table
from deltacheck.errors import NotDeltaError, QuarantineError
from deltacheck.names import TableName
from deltacheck.quarantine.layout import OWN, quarantine_name
from deltacheck.quarantine.place import check_place, prepare
from tests.quarantine.held import make_table

DEFAULTS = "spark.databricks.delta.properties.defaults"


@pytest.fixture
def source(database: str) -> TableName:
    """The name of a table that the test makes."""
    return TableName.parse(f"{database}.orders")


def ready(session: SparkSession, source: TableName, name: TableName | None = None) -> TableName:
    """Prepare the quarantine for what the source is now."""
    quarantine = name or quarantine_name(source)
    prepare(session, source, read_table(session, source).schema, quarantine, Tag(run="r"))
    return quarantine


def test_it_is_made_on_first_need_with_nullable_plain_columns(
    any_spark: SparkSession, source: TableName
) -> None:
    """No NOT NULL, no CHECK, no default, no generation, no CHAR of the source reaches it."""
    make_table(
        any_spark,
        source.sql,
        "id BIGINT NOT NULL, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), "
        "n INT DEFAULT 5, code CHAR(3), s STRUCT<x: INT NOT NULL, `y z`: STRING>, "
        "`größe, in m` DECIMAL(38, 18), m MAP<STRING, ARRAY<INT>>, ntz TIMESTAMP_NTZ, v VARIANT",
        {"positive": "id > 0"},
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.feature.allowColumnDefaults' = 'supported')",
    )

    name = ready(any_spark, source)

    made = read_table(any_spark, name)
    assert made.schema.names == [*OWN.names, *read_table(any_spark, source).schema.names]
    assert (made.constraints, made.not_null) == ({}, frozenset())
    assert all(not one.metadata for one in made.schema.fields[len(OWN) :])
    assert made.properties["delta.columnMapping.mode"] == "name"
    assert made.properties["deltacheck.source"] == str(source)
    version = latest_version(any_spark, name)
    ready(any_spark, source)
    assert latest_version(any_spark, name) == version


def test_defaults_of_the_session_do_not_reach_it(spark: SparkSession, source: TableName) -> None:
    """Else it could be a table that nothing can leave, or that refuses rows."""
    make_table(spark, source.sql, rules={})
    defaults = {
        f"{DEFAULTS}.appendOnly": "true",
        f"{DEFAULTS}.enableChangeDataFeed": "true",
        f"{DEFAULTS}.constraints.no": "id < 0",
        f"{DEFAULTS}.columnMapping.mode": "id",
        f"{DEFAULTS}.enableDeletionVectors": "true",
    }

    with settings(spark, defaults):
        name = ready(spark, source)

    made = read_table(spark, name)
    assert not made.append_only
    assert made.constraints == {}
    assert made.properties.get("delta.columnMapping.mode", "none") == "none"
    assert made.properties["delta.enableChangeDataFeed"] == "false"
    assert "delta.enableDeletionVectors" not in made.properties


def test_it_is_widened_as_its_source_gains_columns(
    any_spark: SparkSession, source: TableName
) -> None:
    """Also by types that are a feature of their own, and by names that need column mapping."""
    make_table(any_spark, source.sql, rules={})
    name = ready(any_spark, source)
    any_spark.sql(
        f"CREATE OR REPLACE TABLE {source.sql} (ID STRING, Amount INT, ntz TIMESTAMP_NTZ, "
        "v VARIANT, `new one` STRUCT<`a b`: INT>) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.feature.timestampNtz' = 'supported', 'delta.feature.variantType' = 'supported')"
    )

    ready(any_spark, source)

    columns = {
        one.name: one.dataType.simpleString() for one in read_table(any_spark, name).schema.fields
    }
    assert {key: value for key, value in columns.items() if key not in OWN.names} == {
        "id": "bigint",
        "amount": "int",
        "status": "string",
        "ID_string": "string",
        "ntz": "timestamp_ntz",
        "v": "variant",
        "new one": "struct<a b:int>",
    }


def test_another_name_of_the_same_table_is_the_same_source(
    spark: SparkSession, source: TableName
) -> None:
    """A job may name the table in full, in other letters, without its schema, or by its path;
    and it may have been renamed."""
    make_table(spark, source.sql, rules={})
    name = ready(spark, source)
    location = read_table(spark, source).location.removeprefix("file:")
    current = spark.catalog.currentDatabase()
    spark.catalog.setCurrentDatabase(str(source.schema))
    try:
        for other in (
            f"spark_catalog.{source.schema}.orders",
            f"{source.schema}.ORDERS",
            "orders",
            f"delta.`{location}`",
        ):
            assert ready(spark, TableName.parse(other), name) == name
    finally:
        spark.catalog.setCurrentDatabase(current)
    spark.sql(f"ALTER TABLE {source.sql} RENAME TO {source.schema}.sales")
    assert ready(spark, TableName((str(source.schema), "sales")), name) == name


def test_it_can_be_in_another_schema_that_is_not_there_yet(
    spark: SparkSession, source: TableName, warehouse: Path
) -> None:
    """The schema is made, in a local warehouse with its folder."""
    make_table(spark, source.sql, rules={})
    schema = f"{source.schema}_deltacheck"

    name = ready(spark, source, quarantine_name(source, "{schema}_deltacheck.{table}"))

    assert name == TableName((schema, "orders"))
    assert (warehouse / schema / "orders" / "_delta_log").is_dir()


def test_it_can_be_a_folder(spark: SparkSession, source: TableName, warehouse: Path) -> None:
    """Also of a table that is a folder itself."""
    folder = warehouse / str(source.schema)
    path = TableName.parse(f"delta.`{folder}/some path`")
    make_table(spark, path.sql, rules={})

    beside = ready(spark, path)
    elsewhere = ready(spark, path, quarantine_name(path, "delta.`{path}-bad`"))

    assert beside.path == f"{folder}/some path_quarantine"
    assert (folder / "some path-bad" / "_delta_log").is_dir()
    assert elsewhere.path == f"{folder}/some path-bad"


def test_a_place_that_is_taken_is_refused(spark: SparkSession, source: TableName) -> None:
    """By a table of the user's, by another table's quarantine, by the source itself, by what is
    not Delta; and a quarantine that was given a constraint could refuse rows."""
    make_table(spark, source.sql, rules={})
    other = TableName((str(source.schema), "customers"))
    make_table(spark, other.sql, rules={})
    spark.sql(f"CREATE VIEW {source.schema}.seen AS SELECT 1 AS id")
    schema = read_table(spark, source).schema
    theirs = ready(spark, other)
    location = read_table(spark, source).location.removeprefix("file:")

    def refused(name: str | TableName) -> QuarantineError:
        place = TableName.parse(name) if isinstance(name, str) else name
        with pytest.raises(QuarantineError) as refusal:
            check_place(spark, source, schema, place)
        return refusal.value

    assert "is not a quarantine table" in refused(other).message
    assert "is not a quarantine table" in refused(f"delta.`{location}`").message
    assert f"the quarantine of {other}" in refused(theirs).message
    with pytest.raises(NotDeltaError, match="view"):
        check_place(spark, source, schema, TableName((str(source.schema), "seen")))
    mine = ready(spark, source)
    spark.sql(f"ALTER TABLE {mine.sql} ADD CONSTRAINT none CHECK (id < 0)")
    assert "constraints of its own" in refused(mine).message


def test_a_place_that_cannot_be_written_is_an_error_that_says_so(
    spark: SparkSession, source: TableName, warehouse: Path
) -> None:
    """No row was moved then."""
    make_table(spark, source.sql, rules={})
    (warehouse / str(source.schema) / "file").write_text("in the way", encoding="utf-8")
    name = TableName.parse(f"delta.`{warehouse}/{source.schema}/file/bad`")

    with pytest.raises(QuarantineError, match="was not taken from the table"):
        ready(spark, source, name)
