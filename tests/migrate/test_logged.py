"""What an upgrade finds stands in the quality log, beside the writes that its tables tell of."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltacheck
from deltacheck.config import Environment
from deltacheck.events import Event
from deltacheck.ledger.quality_log import HARVEST, Line, log_name, read_log
from tests.cli.projects import make_project
from tests.harness.marks import connect_is_slow


@pytest.fixture
def table(session: SparkSession, environment: Environment, database: str, tmp_path: Path) -> str:
    """A table of three rows, one of them bad, in a project with two revisions."""
    table = f"{database}.orders"
    session.sql(f"CREATE TABLE {table} (id INT, amount INT) USING delta")
    session.sql(f"INSERT INTO {table} VALUES (1, 1), (2, 2), (3, -3)")
    rules = "{Amount_OK: {check: amount > 0, owner: finance}, id_ok: {check: id > 0}}"
    make_project(
        tmp_path,
        environment,
        {
            "0001": f'op.add_check("{table}", "Amount_OK", "amount > 0", gate="1/2")',
            "0002": f'op.add_check("{table}", "id_ok", "id > 0")',
        },
        {"orders.yml": f"table: {table}\nowner: sales\nrules: {rules}\n"},
    )
    return table


def upgrade(session: SparkSession, folder: Path, target: str, **asked: bool) -> str | None:
    """Upgrade the project; the id of the run."""
    return deltacheck.upgrade(target, project=folder, session=session, **asked).run  # type: ignore[arg-type]


def told(session: SparkSession, environment: Environment) -> list[Line]:
    """The lines of the log, but for the marks of how far a history was read."""
    return [line for line in read_log(session, environment) if line.kind != HARVEST]


@connect_is_slow
def test_an_upgrade_logs_what_its_rules_found_and_what_writes_passed_before(
    any_spark: SparkSession, environment: Environment, table: str, tmp_path: Path
) -> None:
    """Its own rules at once; a clean write, which logs nothing itself, with the next run."""
    first = upgrade(any_spark, tmp_path, "0001")
    deltacheck.write(any_spark.sql("SELECT 4 AS id, 4 AS amount"), table, job="load")
    second = upgrade(any_spark, tmp_path, "head")
    upgrade(any_spark, tmp_path, "head")

    lines = told(any_spark, environment)
    assert sorted(
        (x.source or "", x.rule or "", x.revision or "", x.state, x.rows, x.failed) for x in lines
    ) == [
        ("upgrade", "Amount_OK", "0001", "failed", 3, 1),
        ("upgrade", "id_ok", "0002", "passed", 3, 0),
        ("write", "", "", "passed", 1, 0),
        ("write", "Amount_OK", "", "passed", 1, 0),
    ]
    by_run = {line.run: line for line in lines if line.source == "upgrade"}
    assert (by_run[first].owner, by_run[first].action) == ("finance", "quarantine")
    assert (by_run[second].owner, by_run[second].expression) == ("sales", "id > 0")


def test_a_gate_that_stops_an_upgrade_is_logged_and_told_and_a_dry_run_is_not(
    session: SparkSession, environment: Environment, table: str, tmp_path: Path, seen: list[Event]
) -> None:
    """Somebody is called at night for what another only looked at."""
    session.sql(f"INSERT INTO {table} VALUES (4, -4)")
    session.sql(f"INSERT INTO {table} VALUES (5, -5)")
    for dry_run in (True, False):
        with pytest.raises(deltacheck.GateError) as stop:
            upgrade(session, tmp_path, "head", dry_run=dry_run)
        assert len(told(session, environment)) == len(seen) == (0 if dry_run else 1)

    (line,) = told(session, environment)
    assert (line.source, line.rule, line.state) == ("upgrade", "Amount_OK", "failed")
    assert (line.rows, line.failed, line.message) == (5, 3, stop.value.message)


def test_a_gate_over_several_rules_is_logged_with_each_of_them(
    session: SparkSession, environment: Environment, table: str, tmp_path: Path
) -> None:
    """A stop that nobody finds in the log: no single rule is to blame."""
    both = [("Amount_OK", "amount > 1"), ("id_ok", "id > 0")]
    adds = [f'op.add_check("{table}", "{rule}", "{text}")' for rule, text in both]
    make_project(tmp_path, environment, {"0001": "\n".join(adds), "0002": ""})

    with pytest.raises(deltacheck.GateError) as stop:
        upgrade(session, tmp_path, "head")

    lines = told(session, environment)
    assert [(x.kind, x.rule, x.state, x.rows, x.failed, x.owner) for x in lines] == [
        ("rule", "Amount_OK", "failed", 3, 2, "finance"),
        ("rule", "id_ok", "passed", 3, 0, "sales"),
        ("check", "gate of the table", "failed", 3, 2, "sales"),
    ]
    assert [line.message for line in lines] == [None, None, stop.value.message]


def test_what_a_run_had_finished_is_logged_and_told_where_a_later_revision_stops(
    session: SparkSession, environment: Environment, table: str, tmp_path: Path, seen: list[Event]
) -> None:
    """Lost lines: the next run finds those rules enforced, and counts nothing for them."""
    late = f'op.execute("INSERT INTO {table} VALUES (-7, 7), (-8, 8), (-9, 9)")'
    make_project(
        tmp_path,
        environment,
        {
            "0001": f'op.add_check("{table}", "Amount_OK", "amount > 0", gate="1/2")',
            "0002": late,
            "0003": f'op.add_check("{table}", "id_ok", "id > 0")',
        },
    )
    with pytest.raises(deltacheck.GateError):
        upgrade(session, tmp_path, "head")
    found = {line.rule: line for line in told(session, environment)}
    assert [(event.kind, dict(event.rules)) for event in seen] == [
        ("upgraded", {"Amount_OK": 1}),
        ("stopped", {"id_ok": 3}),
    ]
    session.sql(f"DELETE FROM {table} WHERE id < 0")
    upgrade(session, tmp_path, "head")

    first, stop = found["Amount_OK"], found["id_ok"]
    assert (first.revision, first.failed, first.run is None) == ("0001", 1, False)
    assert (stop.state, stop.failed, stop.message is None) == ("failed", 3, False)
    by_rule = Counter((line.rule, line.revision) for line in told(session, environment))
    assert by_rule == {("Amount_OK", "0001"): 1, ("id_ok", None): 1, ("id_ok", "0003"): 1}


def test_an_upgrade_tells_what_a_history_no_longer_has(
    session: SparkSession, environment: Environment, table: str, tmp_path: Path, warehouse: Path
) -> None:
    """In a note of its result."""
    session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    upgrade(session, tmp_path, "0001")
    for _ in range(3):
        deltacheck.write(session.sql("SELECT 4 AS id, 4 AS amount"), table)
    log = warehouse / table.replace(".", "/") / "_delta_log"
    # As Delta does once their retention is over: the rest is in the checkpoint.
    for file in sorted(log.glob("*.json"))[:-1]:
        file.unlink()

    found = deltacheck.upgrade("head", project=tmp_path, session=session)

    assert any("have left its history unread" in note for note in found.notes)


def test_a_log_that_cannot_be_written_undoes_nothing(
    session: SparkSession,
    environment: Environment,
    table: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    upgrade(session, tmp_path, "0001")
    log = log_name(environment).sql
    session.sql(f"ALTER TABLE {log} SET TBLPROPERTIES ('deltacheck.format' = '99')")

    with caplog.at_level(logging.WARNING, "deltacheck"):
        assert upgrade(session, tmp_path, "head") is not None

    assert "could not be logged" in caplog.text
    session.sql(f"INSERT INTO {table} VALUES (9, 9)")
    with pytest.raises(Exception, match="id_ok"):
        session.sql(f"INSERT INTO {table} VALUES (-9, 9)")
