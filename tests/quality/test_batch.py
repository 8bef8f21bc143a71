"""What checks say of a batch as a whole."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from fractions import Fraction

import pytest

from deltacheck.names import TableName
from deltacheck.quality.batch import judge_batch, judge_columns
from deltacheck.quality.figures import Figures
from deltacheck.rules.checks import (
    BatchCheck,
    BatchTest,
    BrokenShare,
    Columns,
    Freshness,
    NullShare,
    Reconcile,
    Requires,
    RowCount,
    Unique,
)
from deltacheck.rules.model import Gate
from deltacheck.rules.quantities import Age, Measure, Tolerance

NOW = datetime(2026, 3, 2, 6, tzinfo=timezone.utc)
ORDERS = TableName.parse("shop.orders")
CUSTOMERS = TableName.parse("shop.customers")
TOTAL = Reconcile(Measure.parse("sum(amount)"), Tolerance.parse("0.01"), figure="total")
LINES = Reconcile(Measure.parse("row_count"), Tolerance.parse("0"), figure="total")

SENTENCES: list[tuple[BatchTest, Figures, str, str]] = [
    (RowCount(least=1), Figures(rows=0), "failed", "0 rows, fewer than 1"),
    (
        NullShare("customer_id", Gate.parse("1/3")),
        Figures(rows=11, failed=4),
        "failed",
        "4 of 11 rows have no customer_id, more than 1/3",
    ),
    (
        NullShare("customer_id", Gate.parse(4)),
        Figures(rows=11, failed=4),
        "passed",
        "4 of 11 rows have no customer_id, at most 4 rows",
    ),
    (
        BrokenShare(Gate.parse("5%"), "amount_positive"),
        Figures(rows=100, failed=6),
        "failed",
        "6 of 100 rows break amount_positive, more than 5%",
    ),
    (
        BrokenShare(Gate.parse("5%")),
        Figures(rows=0, failed=0),
        "passed",
        "0 of 0 rows break any rule, at most 5%",
    ),
    (Requires(CUSTOMERS), Figures(rows=2), "passed", "shop.customers has 2 rows"),
    (Requires(CUSTOMERS), Figures(), "failed", "shop.customers has no row"),
    (
        Requires(CUSTOMERS, Freshness("ts", Age.parse("1d"))),
        Figures(rows=2, latest=NOW - timedelta(days=2)),
        "failed",
        "of shop.customers, the newest ts of 2 rows is 2 d old, more than 1d",
    ),
    (
        TOTAL,
        Figures(rows=3, value=Fraction(99)),
        "failed",
        "sum(amount) is 99, the figure total is 100: 1 apart, more than 0.01",
    ),
    (LINES, Figures(rows=100), "passed", "row_count is 100, the figure total is 100"),
    (
        Unique(("id",), in_table=True),
        Figures(rows=5, taken=2),
        "failed",
        "id of 2 of 5 rows is in shop.orders already",
    ),
    (
        Unique(("id",), in_table=True),
        Figures(rows=5, failed=2, values=1, taken=4),
        "failed",
        "2 of 5 rows share id with another (1 value); id of 4 of 5 rows is in shop.orders already",
    ),
    (Unique(("id",), in_table=True), Figures(rows=5), "passed", "id unique in 5 rows"),
]


@pytest.mark.parametrize(("test", "found", "state", "message"), SENTENCES)
def test_an_outcome_says_the_figures_and_what_they_are_held_against(
    test: BatchTest, found: Figures, state: str, message: str
) -> None:
    given = {"total": Fraction(100)}

    outcome = judge_batch(BatchCheck("c", "kind", test), found, NOW, table=ORDERS, given=given)

    assert (outcome.state, outcome.message) == (state, message)


THERE = {
    "id": "bigint",
    "amount": "decimal(10,2)",
    "tags": "array<string>",
    "address": "struct<zip:int,city:string>",
}


def test_columns_are_those_expected_however_their_types_are_spelled() -> None:
    """There may be others besides."""
    wanted = Columns(
        {"ID": "LONG", "amount": "Decimal(10, 2)", "address": "struct<zip: INTEGER, city: string>"}
    )

    outcome = judge_columns(wanted, THERE)

    assert (outcome.state, outcome.message) == ("passed", "all 3 columns are as expected")


def test_columns_that_are_missing_or_of_another_type_are_named() -> None:
    outcome = judge_columns(
        Columns({"id": "int", "amount": "decimal", "placed_at": "timestamp"}), THERE
    )

    assert outcome.state == "failed"
    assert outcome.message == (
        "id is bigint, not int; amount is decimal(10,2), not decimal; placed_at is missing"
    )
