"""``deltacheck report`` on ten simulated days, three of which are wrong."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltacheck
from deltacheck.config import Environment
from deltacheck.delta.table import latest_version
from deltacheck.names import TableName
from tests.cli.projects import command
from tests.quality.test_days import CHECKS, FIRST, WRONG, add_day
from tests.quality.yard import Yard
from tests.report.test_page import read


@pytest.fixture
def yard(session: SparkSession, environment: Environment, folder: Path, database: str) -> Yard:
    """A project in the current folder."""
    return Yard(session, environment, folder, database)


def ten_days(yard: Yard) -> None:
    """The days, and the checks of each in the morning after; a bad batch on the last."""
    full = yard.table("id LONG, region STRING, amount DOUBLE, status STRING")
    yard.session.sql(f"ALTER TABLE {full} ADD CONSTRAINT amount_positive CHECK (amount > 0)")
    yard.declare(*CHECKS, rules="amount_positive: {check: amount > 0}")
    for number in range(10):
        add_day(yard, number, WRONG.get(number, lambda rows: rows))
        yard.run(FIRST + timedelta(days=number))
    rows = "(1L, 'EU', -5.0D, 'new'), (2L, 'EU', 5.0D, 'new')"
    batch = yard.session.sql(f"SELECT * FROM VALUES {rows} AS t(id, region, amount, status)")
    deltacheck.write(batch, full, route="rows")


@pytest.mark.slow
def test_the_report_says_which_days_were_wrong_and_why(yard: Yard) -> None:
    """On its page, as JSON and at the terminal; and writes to no table."""
    ten_days(yard)
    version = latest_version(yard.session, TableName.parse(yard.orders))

    found = command("report", "--json").json
    (table,) = found["tables"]
    wrong = {day["day"]: set(day["wrong"]) for day in table["days"] if day["verdict"] == "wrong"}
    assert wrong == {
        "2026-03-08": {"rows"},
        "2026-03-09": {"each"},
        "2026-03-10": {"rows", "ids"},
    }
    assert (table["held"], table["broken"]) == (1, {"amount_positive": 1})
    assert table["rules"]["amount_positive"] in ("unmanaged", "pending", "enforced")
    last = table["days"][-1]
    assert (last["batches"], last["rows"], last["bad"]) == (1, 2, 1)
    assert last["failed"] == {"amount_positive": 1}

    ran = command("report", "--out", "report.html", "--prometheus", "figures.prom")
    said = read(Path("report.html").read_text(encoding="utf-8")).text
    assert "On 3 days a check failed." in said
    assert "region = US: mean(amount) is 6,3" in said
    assert "row_count is 51; the median of 6 earlier runs is 101.5" in said
    assert "deltacheck_quarantined_rows" in Path("figures.prom").read_text(encoding="utf-8")
    assert "wrote report.html" in ran.words
    assert "share id with another" in ran.words
    assert latest_version(yard.session, TableName.parse(yard.orders)) == version


def test_a_report_that_cannot_be_written_is_an_error_of_usage(yard: Yard) -> None:
    yard.declare()

    ran = command("report", "--out", "no/such/folder/report.html")

    assert ran.code == 2
    assert "cannot be written" in ran.words


def test_a_project_without_a_table_has_an_empty_report(yard: Yard) -> None:
    yard.declare()

    assert command("report", "--json").json["tables"] == []
    assert "no check failed" in command("report").words
