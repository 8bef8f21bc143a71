"""What an upgrade finds stands in the quality log, beside the writes that its tables tell of."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltacheck
from deltacheck.config import Environment
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


def test_a_gate_that_stops_an_upgrade_is_logged_and_a_dry_run_is_not(
    session: SparkSession, environment: Environment, table: str, tmp_path: Path
) -> None:
    session.sql(f"INSERT INTO {table} VALUES (4, -4)")
    session.sql(f"INSERT INTO {table} VALUES (5, -5)")
    for dry_run in (True, False):
        with pytest.raises(deltacheck.GateError) as stop:
            upgrade(session, tmp_path, "head", dry_run=dry_run)
        assert len(told(session, environment)) == (0 if dry_run else 1)

    (line,) = told(session, environment)
    assert (line.source, line.rule, line.state) == ("upgrade", "Amount_OK", "failed")
    assert (line.rows, line.failed, line.message) == (5, 3, stop.value.message)


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
