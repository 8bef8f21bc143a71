"""Ten simulated days of a shop: three of them are wrong, and the trends say which and why."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest

import deltacheck
from deltacheck.writing.survey import PROJECT_VARIABLE
from tests.quality.yard import Yard

FIRST = datetime(2026, 3, 2, 6, tzinfo=timezone.utc)

CHECKS = (
    "rows: {trend: {measure: row_count}}",
    "each: {trend: {measure: mean(amount)}, by: region, show_groups: true}",
    "states: {trend: {measure: shares(status)}, show_groups: true}",
    "ids: {unique: id}",
)


def add_day(yard: Yard, number: int, change: Callable[[str], str] = lambda rows: rows) -> None:
    """Put the orders of a day into the table: about a hundred, from three regions."""
    yard.session.sql(f"INSERT OVERWRITE {yard.orders} {change(day(number))}")


def day(number: int) -> str:
    """SQL for the orders of a day, as they should be."""
    return (
        f"SELECT id + {number * 1000} AS id, "
        "element_at(array('EU', 'US', 'CH'), CAST(id % 3 AS INT) + 1) AS region, "
        "CAST(60 + id % 7 AS DOUBLE) AS amount, IF(id % 5 = 0, 'paid', 'new') AS status "
        f"FROM range({100 + number * 7 % 5})"
    )


WRONG: dict[int, Callable[[str], str]] = {
    6: lambda rows: f"SELECT * FROM ({rows}) WHERE id % 2 = 0",
    7: lambda rows: (
        "SELECT id, region, IF(region = 'US', amount * 100, amount) AS amount, status "
        f"FROM ({rows})"
    ),
    8: lambda rows: f"{rows} UNION ALL {rows}",
}
"""Half a file, a region in cents, and a retry that doubled the orders."""


@pytest.mark.slow
def test_the_days_that_are_wrong_are_told_and_why(yard: Yard) -> None:
    """Each by the checks that are made for it, and no other day by any."""
    yard.table("id LONG, region STRING, amount DOUBLE, status STRING")
    yard.declare(*CHECKS)
    failed: dict[int, list[str]] = {}
    said: dict[int, str] = {}
    for number in range(10):
        add_day(yard, number, WRONG.get(number, lambda rows: rows))
        found = yard.results(FIRST + timedelta(days=number))
        failed[number] = [name for name, one in found.items() if one.state == "failed"]
        said[number] = " ".join(one.outcome.message for one in found.values())

    assert failed == {
        **{number: [] for number in range(10)},
        6: ["rows"],
        7: ["each"],
        8: ["rows", "ids"],
    }
    assert "4 earlier figures, at least 5 are needed to judge it" in said[4]
    assert "row_count is 51; the median of 6 earlier runs is 101.5" in said[6]
    assert "1 of 3 groups by region fail: region = US: mean(amount) is 6,3" in said[7]
    assert "share id with another" in said[8]


BATCH = """\
batch:
  a_whole_file: {row_count: {min: 90, max: 120}}
  in_whole_units: {broken_share: {rule: plausible, max: 1%}}
  orders_once: {unique_in_table: id}
"""


@pytest.mark.slow
def test_the_same_days_fed_through_the_wrapper_stop_at_the_wrong_ones(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of a wrong day is written; the next may go on once its file came as it should."""
    yard.table("id LONG, region STRING, amount DOUBLE, status STRING")
    yard.declare(rules="plausible: {check: amount < 1000, on_violation: warn}", head=BATCH)
    monkeypatch.setenv(PROJECT_VARIABLE, str(yard.folder))
    stopped: dict[int, str] = {}
    for number in range(10):
        right, change = day(number), WRONG.get(number)
        came = right if change is None else change(right)
        try:
            deltacheck.write(yard.session.sql(came), yard.orders, batch_id=f"day {number}")
        except deltacheck.CheckError as stop:
            stopped[number] = stop.message.split("(", 1)[1].split("); nothing was written")[0]
            deltacheck.write(yard.session.sql(right), yard.orders, batch_id=f"day {number}")

    assert stopped == {
        6: "a_whole_file: 51 rows, fewer than 90",
        7: "in_whole_units: 35 of 104 rows break plausible, more than 1%",
        8: "a_whole_file: 202 rows, more than 120; "
        "orders_once: 202 of 202 rows share id with another (101 values)",
    }
    written = yard.session.table(yard.orders)
    assert written.count() == written.select("id").distinct().count() == 1020
    told = [line for line in yard.log() if line.kind == "batch" and line.state == "failed"]
    assert [line.batch for line in told] == ["day 6", "day 7", "day 8"]
