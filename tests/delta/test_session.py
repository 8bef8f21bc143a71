"""Sessions: opening them, their settings, their silence."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession, functions


def test_a_table_of_the_database_lies_in_the_warehouse(
    any_spark: SparkSession, database: str, warehouse: Path
) -> None:
    """A Delta table takes rows on either kind of session."""
    any_spark.sql(f"CREATE TABLE {database}.t (a INT) USING DELTA")
    any_spark.sql(f"INSERT INTO {database}.t VALUES (1), (2)")
    assert (warehouse / database / "t" / "_delta_log").is_dir()
    assert any_spark.table(f"{database}.t").where(functions.col("a") > 1).count() == 1
