"""The keys for which checks fail are written to a table where asked for, and nowhere else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from deltacheck.delta.table import history
from deltacheck.errors import LedgerError, NotDeltaError
from deltacheck.names import TableName
from tests.harness.marks import connect_is_slow
from tests.quality.yard import Yard

CHECKS = (
    "some: {row_count: {min: 100}}",
    "mails: {unique: [lower(mail)]}",
    "ids: {unique: id}",
    "known: {references: {columns: id, table: @people, keys: number}, by: region, where: id > 1}",
)


def filled(yard: Yard) -> TableName:
    """A table with a mail that is not unique and two ids that are unknown; where keys go."""
    yard.table(
        "id INT, mail STRING, region STRING",
        "(1, 'a@x', 'EU')",
        "(2, 'A@x', 'EU')",
        "(3, 'c@x', NULL)",
        "(NULL, NULL, 'EU')",
    )
    yard.table("number INT", "(NULL)", name="people")
    yard.declare(*CHECKS)
    return TableName.parse(f"{yard.database}.keys_at_fault")


def kept(yard: Yard, place: TableName) -> list[tuple[str, Any, int]]:
    """Check, key and rows of each row of a table of keys, in order."""
    rows = yard.session.table(place.sql).collect()
    return sorted((row["check"], str(json.loads(row["key"])), row["rows"]) for row in rows)


@connect_is_slow
def test_keys_at_fault_are_written_with_their_rows(any_spark: SparkSession, yard: Yard) -> None:
    """As JSON, by the names of the declaration; a check that passed has none."""
    place = filled(yard)

    found = yard.run(keys=place)

    assert found.keys == str(place)
    assert kept(yard, place) == [
        ("known", str({"id": 3}), 1),
        ("known", str({"region": "EU", "id": 2}), 1),
        ("mails", str({"lower(mail)": "a@x"}), 2),
    ]
    row = any_spark.table(place.sql).first()
    assert row is not None
    assert (row["run"], row["table"], row["version"]) == (found.run, yard.orders, 1)
    assert "a@x" not in str(found) + str(yard.log())


def test_each_run_appends_its_own_in_one_commit(yard: Yard) -> None:
    place = filled(yard)
    runs = {yard.run(keys=place).run for _ in range(2)}

    assert [one.operation for one in history(yard.session, place)] == [
        "WRITE",
        "WRITE",
        "CREATE TABLE",
    ]
    assert {row["run"] for row in yard.session.table(place.sql).collect()} == runs


def test_where_no_key_is_at_fault_none_is_written(yard: Yard) -> None:
    """A check that could not be evaluated has none either."""
    yard.table("id INT", "(1)")
    yard.declare("ids: {unique: id}", "none: {row_count: {max: 0}}", "x: {unique: nowhere}")
    place = TableName.parse(f"{yard.database}.keys")

    assert yard.run(keys=place).keys is None
    assert kept(yard, place) == []


def test_a_table_of_something_else_is_refused_before_anything_is_looked_at(yard: Yard) -> None:
    """Also one of deltacheck's own, a view, and the very table that is checked."""
    filled(yard)
    yard.run()
    logged = len(yard.log())
    yard.session.sql(f"CREATE VIEW {yard.database}.seen AS SELECT 1 AS id")
    for name in (yard.orders, f"{yard.environment.schema}.quality_log"):
        with pytest.raises(LedgerError, match="is not a table of failing keys"):
            yard.run(keys=TableName.parse(name))
    with pytest.raises(NotDeltaError):
        yard.run(keys=TableName.parse(f"{yard.database}.seen"))

    assert len(yard.log()) == logged


def test_columns_of_another_kind_are_found_before_anything_is_looked_at(yard: Yard) -> None:
    """A bug of lateness: that the table could not be appended to was seen after the checks."""
    place = filled(yard)
    yard.run(keys=place)
    logged = len(yard.log())
    other = TableName.parse(f"{place}_of_others")
    columns = "at TIMESTAMP, environment STRING, run STRING, `table` STRING, version LONG"
    properties = "TBLPROPERTIES ('deltacheck.format' = '1')"
    yard.session.sql(
        f"CREATE TABLE {other.sql} ({columns}, `check` STRING, `key` STRING, `rows` STRING) "
        f"USING delta {properties}"
    )

    with pytest.raises(LedgerError, match="is not a table of failing keys"):
        yard.run(keys=other)
    assert len(yard.log()) == logged


def test_keys_that_cannot_be_written_cost_no_result(yard: Yard) -> None:
    """A bug of all or nothing: it was an error of Spark's, after which nothing was shown."""
    place = filled(yard)
    yard.run(keys=place)
    yard.session.sql(f"ALTER TABLE {place.sql} ADD CONSTRAINT few CHECK (`rows` < 3)")
    yard.add("(4, 'a@x', 'EU')")
    logged = len(yard.log())

    found = yard.run(keys=place)

    (error,) = found.unwritten
    assert f"could not be written to {place}: Spark says DELTA_VIOLATE" in str(error)
    assert "a@x" not in str(error)
    assert (found.keys, found.failed, len(found.checks)) == (None, True, len(CHECKS))
    assert len(yard.log()) == 2 * logged
    assert len(kept(yard, place)) == 3
