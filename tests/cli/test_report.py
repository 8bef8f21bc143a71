"""``deltacheck report`` on ten days of the worked example; and on odd projects."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from importlib import import_module
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltacheck
from deltacheck.config import Environment
from deltacheck.delta.table import latest_version
from deltacheck.names import TableName
from tests.cli.projects import command, make_project
from tests.demo.conftest import example
from tests.demo.days import A_DAY_PASSES, DOUBLED, came, put_right, right, rows_of
from tests.quality.yard import Yard
from tests.report.browser import DESK, PHONE, browser, look
from tests.report.test_page import read

__all__ = ["example"]

FIRST = datetime.now(timezone.utc).replace(hour=5, minute=0, second=0, microsecond=0) - timedelta(
    days=10
)


@pytest.fixture
def yard(session: SparkSession, environment: Environment, folder: Path, database: str) -> Yard:
    """A project in the current folder."""
    return Yard(session, environment, folder, database)


def ten_days(example: Yard, patch: pytest.MonkeyPatch) -> None:
    """Each day a batch of orders in the morning, two of them worth nothing, and the checks an
    hour later."""
    done = happened(example, FIRST - timedelta(days=1), -1)
    for number in range(10):
        example.session.sql(A_DAY_PASSES)
        at = FIRST + timedelta(days=number)
        free = (
            f"SELECT order_id - 500, customer_id, 0.00, status, ordered_on, country "
            f"FROM ({right(number)}) LIMIT 2"
        )
        batch = example.session.sql(f"{came(number)} UNION ALL ({free})")
        patch.setattr(import_module("deltacheck.writing.write"), "now", lambda at=at: at)
        deltacheck.write(batch, example.orders, route="rows")
        done = happened(example, at, done)
        example.run(at + timedelta(hours=1))
        if number == DOUBLED:
            example.session.sql(put_right(number))


def happened(yard: Yard, at: datetime, after: int) -> int:
    """Have the commits of the table after a version been made at some time; the last of them.

    Delta takes the time of a commit from its file (``DeltaHistoryManager.getCommits``).
    """
    assert yard.environment.warehouse is not None
    log = yard.environment.warehouse / yard.database / "orders" / "_delta_log"
    last = latest_version(yard.session, TableName.parse(yard.orders))
    for version in range(after + 1, last + 1):
        os.utime(log / f"{version:020}.json", (at.timestamp(), at.timestamp()))
    return last


def told(number: int) -> str:
    """A day as the page names it."""
    day = (FIRST + timedelta(days=number)).date()
    return f"{day:%a} {day.day} {day:%b %Y}"


@pytest.mark.slow
@pytest.mark.browser
def test_the_report_says_what_came_in_what_was_rejected_and_which_days_were_wrong(
    example: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As JSON, at the terminal, and on its page in a browser; and leaves the table alone."""
    ten_days(example, monkeypatch)
    version = latest_version(example.session, TableName.parse(example.orders))

    found = command("report", "--json").json
    (table,) = (one for one in found["tables"] if one["table"] == example.orders)
    # On the last one the rows of the upgrade were moved, and nothing came in.
    *days, today = table["days"]
    dates = [(FIRST + timedelta(days=number)).date().isoformat() for number in range(10)]
    assert [day["day"] for day in days] == dates
    wrong = [set(day["wrong"]) for day in days]
    assert wrong[:6] == [set()] * 6
    assert wrong[6:] == [{"usual_day"}, {"usual_amounts"}, {"orders_once", "usual_day"}, set()]
    rows = [day["rows"] for day in days]
    assert rows[:6] == [rows_of(number) + 2 for number in range(6)]
    assert (rows[6], rows[8]) == (53, 2 * 101 + 2)
    assert [day["bad"] for day in days] == [2] * 10
    assert days[0]["failed"] == {"amount_positive": 2}
    assert (today["verdict"], today["rows"]) == ("warned", 0)
    assert (table["held"], table["broken"]["amount_positive"]) == (31, 26)
    assert table["rules"] == {
        "order_id_present": "enforced",
        "amount_positive": "enforced",
        "status_known": "enforced",
        "amount_plausible": "warn",
    }
    assert table["violators"] == {"amount_plausible": 1}
    assert [run["command"] for run in found["runs"]] == ["upgrade"]
    assert len(found["check_runs"]) == 10

    ran = command("report", "--out", "report.html", "--prometheus", "figures.prom")
    assert "wrote report.html" in ran.words
    assert "share order_id with another" in ran.words
    assert "31 held in quarantine" in ran.words
    assert 'deltacheck_quarantined_rows{environment="local"' in Path("figures.prom").read_text()
    with browser() as through:
        for size in (PHONE, DESK):
            seen = look(through, Path("report.html").resolve(), size, "light")
            assert (seen.wider, seen.sticking_out, seen.errors, seen.requests) == (0, [], [], [])
            assert "On 3 days a check failed" in seen.text
            assert f"{told(6)}: shop.orders usual_day: row_count is 51; the median" in seen.text
            assert f"{told(7)}: shop.orders usual_amounts: 1 of " in seen.text
            assert "groups by country fail: country = FR: mean(amount) is 6,300" in seen.text
            assert f"{told(8)}: shop.orders orders_once: 202 of " in seen.text
            assert "usual_day: row_count is 202" in seen.text
            came_in = "53 rows came in with 1 batch, 2 of them bad. 2 rows broke amount_positive"
            assert f"{came_in} (quarantined)." in seen.text
    assert latest_version(example.session, TableName.parse(example.orders)) == version


def test_a_table_dropped_meanwhile_is_told_as_such(yard: Yard) -> None:
    """With what is known of its days; and spoils nothing."""
    full = yard.table("id LONG", "(1)", "(1)")
    yard.declare("ids: {unique: id}")
    yard.run()
    yard.session.sql(f"DROP TABLE {full}")

    (table,) = command("report", "--json").json["tables"]

    assert table["problem"] == f"There is no table {full}."
    assert [set(day["wrong"]) for day in table["days"]] == [{"ids"}]


def test_a_quarantine_that_is_none_is_told_and_spoils_no_other_table(yard: Yard) -> None:
    """Its name is taken by some other table."""
    yard.table("id LONG", "(1)")
    yard.table("id LONG", name="orders_quarantine")
    other = yard.table("id LONG", "(1)", name="other")
    yard.declare(rules="id_positive: {check: id > 0}")
    yard.declare(rules="id_positive: {check: id > 0}", name="other")

    found = {table["table"]: table for table in command("report", "--json").json["tables"]}

    assert "is not a quarantine table of deltacheck" in found[yard.orders]["problem"]
    assert found[other]["problem"] == ""
    assert found[other]["rules"] == {"id_positive": "pending"}
    ran = command("report")
    assert ran.code == 0
    assert "is not a quarantine table of deltacheck" in ran.words


def test_a_quarantine_whose_files_are_lost_is_told(yard: Yard) -> None:
    full = yard.table("id LONG", "(1)")
    yard.session.sql(f"ALTER TABLE {full} ADD CONSTRAINT id_positive CHECK (id > 0)")
    yard.declare(rules="id_positive: {check: id > 0}")
    deltacheck.write(yard.session.sql("SELECT -1L AS id"), full)
    assert yard.environment.warehouse is not None
    lost = yard.environment.warehouse / yard.database / "orders_quarantine"
    for file in lost.rglob("*.parquet"):
        file.unlink()

    (table,) = command("report", "--json").json["tables"]

    assert table["problem"].startswith(f"{full} cannot be read")


def test_a_report_takes_clean_writes_into_the_log_once(yard: Yard) -> None:
    """Before the table's history forgets them; and writes to no other table."""
    full = yard.table("id LONG")
    yard.declare(rules="id_positive: {check: id > 0}")
    deltacheck.write(yard.session.sql("SELECT 1L AS id"), full)
    version = latest_version(yard.session, TableName.parse(full))

    found = [command("report", "--json").json["tables"][0]["days"] for _ in range(2)]

    assert found[0] == found[1]
    assert [(day["batches"], day["rows"]) for day in found[0]] == [(1, 1)]
    assert [(line.kind, line.rows) for line in yard.log()] == [("batch", 1)]
    assert latest_version(yard.session, TableName.parse(full)) == version


def test_a_rule_that_only_delta_could_judge_is_told_as_broken(yard: Yard) -> None:
    """A bug of silence: nobody knows by how many rows, and the report did not name it at all."""
    full = yard.table("id LONG")
    yard.declare(rules="id_positive: {check: id > 0}")
    add = f'op.add_check("{full}", "id_positive", "id > 0")'
    make_project(yard.folder, yard.environment, {"0001": add})
    assert command("upgrade").code == 0
    rows = yard.session.sql("SELECT 5L AS change")
    deltacheck.guard(
        rows, full, lambda changes: changes.selectExpr("-change AS id").writeTo(full).append()
    )

    (table,) = command("report", "--json").json["tables"]
    command("report", "--out", "report.html")

    assert [day["failed"] for day in table["days"]] == [{"id_positive": None}]
    said = " ".join(read(Path("report.html").read_text(encoding="utf-8")).text.split())
    assert "id_positive?quarantined" in said


def test_a_report_that_cannot_be_written_is_an_error_of_usage(yard: Yard) -> None:
    yard.declare()

    ran = command("report", "--out", "no/such/folder/report.html")

    assert ran.code == 2
    assert "cannot be written" in ran.words


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(yard: Yard) -> None:
    """Who has the old one open reads it to its end."""
    make_project(yard.folder, yard.environment, {})
    old = Path("figures.prom")
    old.write_text("old")
    with old.open() as reader:
        command("report", "--prometheus", "figures.prom")
        assert reader.read() == "old"

    assert old.read_text() == ""
    assert [path.name for path in Path().glob("*figures*")] == ["figures.prom"]


def test_a_table_declared_ahead_of_its_making_is_told(yard: Yard) -> None:
    """With its rules, which are pending."""
    yard.declare(rules="id_positive: {check: id > 0}")

    (table,) = command("report", "--json").json["tables"]

    assert table["problem"] == f"There is no table {yard.orders}."
    assert (table["rules"], table["held"]) == ({"id_positive": "pending"}, None)


def test_a_project_without_anything_has_an_empty_report(yard: Yard) -> None:
    make_project(yard.folder, yard.environment, {})

    found = command("report", "--json", "--days", "7").json
    assert (found["days"], found["tables"]) == (7, [])
    assert "nothing was wrong in the last 7 days" in command("report", "--days", "7").words
    command("report", "--out", "report.html")
    assert "Nothing is known yet" in read(Path("report.html").read_text(encoding="utf-8")).text
