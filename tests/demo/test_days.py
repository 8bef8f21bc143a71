"""The worked example over ten simulated days: its checks say which days are wrong, and why."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

import deltacheck
from tests.demo.days import A_DAY_PASSES, DOUBLED, came, put_right, right, rows_of
from tests.quality.yard import Yard

pytestmark = pytest.mark.slow

FIRST = datetime(2026, 3, 2, 6, tzinfo=timezone.utc)


def test_the_days_that_are_wrong_are_told_and_why(example: Yard) -> None:
    """Each by the checks that are made for it, and no other day by any."""
    failed: dict[int, list[str]] = {}
    said: dict[int, str] = {}
    for number in range(10):
        example.session.sql(A_DAY_PASSES)
        example.session.sql(f"INSERT INTO {example.orders} {came(number)}")
        found = example.results(FIRST + timedelta(days=number))
        failed[number] = [name for name, one in found.items() if one.state == "failed"]
        said[number] = " ".join(one.outcome.message for one in found.values())
        if number == DOUBLED:
            example.session.sql(put_right(number))

    assert failed == {
        **{number: [] for number in range(10)},
        6: ["usual_day"],
        7: ["usual_amounts"],
        8: ["orders_once", "usual_day"],
    }
    assert "4 earlier figures, at least 5 are needed to judge it" in said[4]
    assert "row_count is 51; the median of 6 earlier runs is 101.5" in said[6]
    assert "groups by country fail: country = FR: mean(amount) is 6,300" in said[7]
    assert "share order_id with another (101 values)" in said[8]


CONTROL = {
    "a_whole_file": {"reconcile": {"measure": "row_count", "figure": "orders"}},
    "in_whole_units": {
        "reconcile": {"measure": "sum(amount)", "figure": "total", "tolerance": "10%"}
    },
    "orders_once": {"unique_in_table": "order_id"},
}
"""What a job knows of its file that a declaration cannot: its control figures."""


def test_the_same_days_fed_through_the_wrapper_stop_at_the_wrong_ones(example: Yard) -> None:
    """Nothing of a wrong day is written; the next may go on once its file came as it should."""
    stopped: dict[int, dict[str, str]] = {}
    for number in range(10):
        orders = rows_of(number)
        for rows in (came(number), right(number)):
            try:
                deltacheck.write(
                    example.session.sql(rows),
                    example.orders,
                    batch_id=f"day {number}",
                    checks=CONTROL,
                    figures={"orders": orders, "total": 63 * orders},
                )
                break
            except deltacheck.CheckError as stop:
                bad = [one for one in stop.results if one.outcome.state == "failed"]
                stopped[number] = {one.check.name: one.outcome.message for one in bad}

    assert {number: list(checks) for number, checks in stopped.items()} == {
        6: ["a_whole_file", "in_whole_units"],
        7: ["in_whole_units"],
        8: ["a_whole_file", "in_whole_units", "orders_once"],
    }
    assert "row_count is 51, the figure orders is 102" in stopped[6]["a_whole_file"]
    assert "share order_id with another (101 values)" in stopped[8]["orders_once"]
    written = example.session.table(example.orders).where("order_id >= 10000")
    assert written.count() == written.select("order_id").distinct().count() == 1020
    told = [line for line in example.log() if line.kind == "batch" and line.state == "failed"]
    assert [line.batch for line in told] == ["day 6", "day 7", "day 8"]
