"""What became of a batch is told to those who want to know of events."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

import deltacheck
from deltacheck.events import Event
from deltacheck.ledger.recorded import recorded_text, set_statement
from deltacheck.names import TableName
from deltacheck.rules.given import checks_given, rules_given
from tests.writing.batches import OPS, RULES, good, make_table, mixed, record


@pytest.fixture
def table(spark: SparkSession, database: str) -> str:
    """A table with two constraints and no row."""
    return make_table(spark, f"{database}.orders")


FAILING = {name: {"check": sql, "on_violation": "fail"} for name, sql in RULES.items()}
OWNED = {"amount_positive": {"check": "amount > 0", "owner": "finance"}}


def test_a_clean_batch_is_not_told(spark: SparkSession, table: str, seen: list[Event]) -> None:
    deltacheck.write(good(spark), table)

    assert seen == []


def test_quarantined_rows_are_told_with_the_owners_of_the_rules(
    spark: SparkSession, table: str, seen: list[Event]
) -> None:
    deltacheck.write(mixed(spark), table, route="rows", job="load", batch_id="b1", rules=OWNED)

    (event,) = seen
    assert (event.kind, event.table, event.batch, event.job) == ("quarantined", table, "b1", "load")
    assert event.rules == {"amount_positive": 2, "status_known": 1}
    assert event.owners == ("finance",)
    assert "gone" not in event.text()


def test_owners_are_those_that_an_upgrade_recorded(
    spark: SparkSession, table: str, seen: list[Event]
) -> None:
    """Nobody to call: a job on a cluster has no project. Also of checks, else the table's."""
    name = TableName.parse(table)
    few = {"few": {"row_count": {"max": 2}, "on_failure": "warn", "owner": "ops"}}
    declared = replace(
        rules_given(name, {**OWNED, "status_known": RULES["status_known"]}), owner="sales"
    )
    declared = replace(declared, batch=checks_given(name, few))
    place = TableName.parse(f"{table}_quarantine")
    spark.sql(set_statement(name, recorded_text(declared, place, OPS)))

    deltacheck.write(mixed(spark), table, route="rows")

    (event,) = seen
    assert set(event.rules) == {"amount_positive", "status_known", "few"}
    assert sorted(event.owners) == ["finance", "ops", "sales"]


def test_warnings_are_told(spark: SparkSession, table: str, seen: list[Event]) -> None:
    """Of rules, and of checks of the batch as a whole."""
    rules = {"big": {"check": "amount > 15", "on_violation": "warn", "owner": "sales"}}
    checks = {"c": {"row_count": {"min": 5}, "on_failure": "warn", "owner": "ops"}}

    deltacheck.write(good(spark), table, rules=rules, checks=checks)

    (event,) = seen
    assert (event.kind, set(event.rules), event.owners) == (
        "warned",
        {"big", "c"},
        ("sales", "ops"),
    )


@pytest.mark.parametrize(
    ("arguments", "by"),
    [
        ({"gate": 0}, {"amount_positive": 2, "status_known": 1}),
        (
            {"rules": FAILING},
            {"amount_positive": 2, "status_known": 1},
        ),
        ({"checks": {"c": {"row_count": {"min": 5}}, "d": {"unique": "id > 0"}}}, {"c": 0, "d": 4}),
    ],
    ids=["a gate", "fail rules", "checks"],
)
def test_what_stops_a_batch_is_told_and_raised(
    spark: SparkSession, table: str, seen: list[Event], arguments: dict[str, object], by: object
) -> None:
    """Each rule and each check that says stop, with its own rows."""
    with pytest.raises(deltacheck.ViolationError) as stop:
        deltacheck.write(mixed(spark), table, **arguments)  # type: ignore[arg-type]

    (event,) = seen
    assert (event.kind, event.message) == ("stopped", stop.value.message)
    assert event.rules == by


def test_a_guarded_write_is_told_as_well(
    spark: SparkSession, table: str, seen: list[Event]
) -> None:
    record(spark, table, {"amount_positive": "amount > 0"})

    deltacheck.guard(
        mixed(spark),
        table,
        lambda rows: rows.write.format("delta").mode("append").saveAsTable(table),
    )

    assert [event.kind for event in seen] == ["quarantined"]
