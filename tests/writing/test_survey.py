"""What is known of a table: a project's rules override recorded ones, arguments override both."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltacheck
from deltacheck.writing.request import request
from deltacheck.writing.survey import ENVIRONMENT_VARIABLE, PROJECT_VARIABLE, survey
from tests.writing.batches import good, ids, make_table, mixed, record

CONFIG = """
default_env = "local"
[env.local]
spark = "local"
warehouse = "warehouse"
quarantine = "{schema}.{table}_local"
[env.prod]
spark = "sc://spark.internal"
quarantine = "{schema}.{table}_prod"
"""
FILE = """
table: TABLE
rules:
  amount_positive:
    check: amount > 0
    on_violation: fail
  id_small:
    check: id < 2
    on_violation: warn
gate: 3
"""


@pytest.fixture
def table(spark: SparkSession, database: str) -> str:
    """A table whose recorded rules say other things than the project's."""
    name = make_table(spark, f"{database}.orders")
    rules = {"amount_positive": {"check": "amount > 0", "on_violation": "drop"}}
    record(spark, name, rules, gate="1%", quarantine=f"{name}_recorded")
    return name


@pytest.fixture
def project(table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that is configured for jobs."""
    (tmp_path / "deltacheck.toml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "constraints").mkdir()
    declare(tmp_path, table, FILE)
    monkeypatch.setenv(PROJECT_VARIABLE, str(tmp_path))
    return tmp_path


def declare(project: Path, table: str, text: str) -> None:
    """Write the project's rules of the table."""
    file = project / "constraints" / "orders.yml"
    file.write_text(text.replace("TABLE", table), encoding="utf-8")


def test_without_a_project_the_recorded_rules_hold(spark: SparkSession, table: str) -> None:
    """As on a cluster."""
    result = deltacheck.write(mixed(spark).where("id < 4"), table, gate="50%")
    assert (result.dropped, result.quarantined) == (1, 0)
    with pytest.raises(deltacheck.GateError, match="gate 1%"):
        deltacheck.write(mixed(spark), table)


def test_a_projects_rules_override_what_is_recorded(
    spark: SparkSession, table: str, project: Path
) -> None:
    """Actions, warn rules, gate and quarantine."""
    with pytest.raises(deltacheck.FailRuleError):
        deltacheck.write(mixed(spark), table)
    warned = deltacheck.write(good(spark), table)
    declare(project, table, FILE.replace("fail", "quarantine"))
    routed = deltacheck.write(mixed(spark), table, route="rows")

    assert warned.broken == {"id_small": 1}
    assert (routed.quarantine, routed.quarantined) == (f"{table}_local", 2)


def test_arguments_override_both(spark: SparkSession, table: str, project: Path) -> None:
    """``rules``, ``quarantine``, ``gate``."""
    result = deltacheck.write(
        mixed(spark),
        table,
        route="rows",
        rules={"amount_positive": {"check": "amount > 0", "on_violation": "quarantine"}},
        quarantine=f"{table}_mine",
        gate="50%",
    )
    assert (result.quarantine, result.quarantined) == (f"{table}_mine", 2)
    assert ids(spark, table) == [1, 2]


def test_the_project_is_the_one_in_which_the_job_runs(
    spark: SparkSession, table: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the one that the variable names; the environment is named by another."""
    asked = request(table)
    assert str(survey(spark, asked).quarantine) == f"{table}_local"
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "prod")
    assert str(survey(spark, asked).quarantine) == f"{table}_prod"
    monkeypatch.delenv(PROJECT_VARIABLE)
    assert str(survey(spark, asked).quarantine) == f"{table}_recorded"
    monkeypatch.chdir(project)
    assert str(survey(spark, asked).quarantine) == f"{table}_prod"


def test_a_table_that_the_project_does_not_declare_keeps_its_recorded_rules(
    spark: SparkSession, table: str, project: Path
) -> None:
    """The project's place for quarantines holds for it all the same."""
    declare(project, f"{table}_other", FILE)
    known = survey(spark, request(table))
    assert known.declared["amount_positive"].on_violation is deltacheck.Action.DROP
    assert str(known.quarantine) == f"{table}_local"


def test_a_project_that_cannot_be_read_stops_the_write(
    spark: SparkSession, table: str, project: Path
) -> None:
    """Before anything is written: the rules that it was to go by are not known."""
    declare(project, table, "table: TABLE\nrules: [")
    with pytest.raises(deltacheck.RuleFileError):
        deltacheck.write(good(spark), table)
    assert ids(spark, table) == []
