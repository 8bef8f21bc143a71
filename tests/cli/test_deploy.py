"""plan, upgrade, downgrade, status: the real commands on real tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.table import history
from deltacheck.names import TableName
from tests.cli.projects import Ran, command, make_project, migration
from tests.harness.marks import connect_is_slow


@pytest.fixture
def orders(any_spark: SparkSession, database: str) -> str:
    """A table of ten orders, of which one has a negative and one no amount."""
    name = f"{database}.orders"
    any_spark.sql(f"CREATE TABLE {name} (id INT, amount DOUBLE) USING delta")
    any_spark.sql(
        f"INSERT INTO {name} SELECT id, CASE id WHEN 3 THEN -1.0 WHEN 4 THEN NULL ELSE id + 1 END "
        "FROM range(10)"
    )
    return name


def positive(table: str, extra: str = ', gate="50%"') -> str:
    """A migration's line: amounts are positive."""
    return f'op.add_check("{table}", "Amount_Positive", "amount > 0"{extra})'


def rows(session: SparkSession, table: str) -> int:
    """How many rows a table has."""
    return session.table(table).count()


def version(session: SparkSession, table: str) -> int:
    """A table's last version."""
    return history(session, TableName.parse(table), limit=1)[0].version


def test_an_upgrade_moves_enforces_and_tells(
    any_spark: SparkSession, orders: str, environment: Environment, tmp_path: Path
) -> None:
    """The JSON document holds what was found, moved and enforced; status reads it back."""
    project = make_project(tmp_path, environment, {"0001": positive(orders)})
    ran = command("upgrade", "--json", "--project", project)
    assert ran.code == 0, ran.out
    (step,) = ran.json["steps"]
    assert (step["rule"], step["state"]) == ("Amount_Positive", "enforced")
    assert step["violators"] == {"false": 1, "null": 1}
    (table,) = ran.json["tables"]
    assert (table["before"], table["moved"], table["after"]) == (10, 2, 8)
    assert any("were deleted" in n and "skipChangeCommits" in n for n in ran.json["notes"])
    assert rows(any_spark, orders) == 8
    assert rows(any_spark, f"{orders}_quarantine") == 2
    found = command("status", "--json", "--check", "--project", project)
    assert found.code == 0
    (rule,) = found.json["rules"]
    assert (rule["state"], rule["enforced_by"], rule["quarantined"]) == ("enforced", "check", 2)


@connect_is_slow
def test_a_second_upgrade_commits_nowhere(
    any_spark: SparkSession, orders: str, environment: Environment, tmp_path: Path
) -> None:
    """Nothing is pending: no table has a new version, the journal included."""
    project = make_project(tmp_path, environment, {"0001": positive(orders)})
    assert command("upgrade", "--project", project).code == 0
    tables = [orders, f"{orders}_quarantine", f"{environment.schema}.journal"]
    before = [version(any_spark, name) for name in tables]
    again = command("upgrade", "--project", project)
    assert again.code == 0
    assert "Nothing to do" in again.out
    assert [version(any_spark, name) for name in tables] == before


@connect_is_slow
def test_plan_counts_and_writes_nothing(
    any_spark: SparkSession, orders: str, environment: Environment, tmp_path: Path, warehouse: Path
) -> None:
    """Plan and --dry-run say what would move, and leave no folder behind."""
    project = make_project(tmp_path, environment, {"0001": positive(orders)})
    before = sorted(warehouse.iterdir())
    for words in (("plan",), ("upgrade", "--dry-run")):
        ran = command(*words, "--json", "--project", project)
        assert ran.code == 0
        assert ran.json["dry_run"] is True
        assert ran.json["steps"][0]["state"] == "planned"
        assert ran.json["tables"][0]["moved"] == 2
        assert any("will be deleted" in n and "skipChangeCommits" in n for n in ran.json["notes"])
        (look,) = ran.json["outlook"]
        assert look["writers"][0]["operation"] in ("WRITE", "CREATE TABLE")
        assert "checkConstraints" in look["protocol"]
    assert command("plan", "--check", "--project", project).code == 3
    assert rows(any_spark, orders) == 10
    assert sorted(warehouse.iterdir()) == before


@connect_is_slow
def test_a_reviewed_plan_is_held_to(
    any_spark: SparkSession, orders: str, environment: Environment, tmp_path: Path
) -> None:
    """An upgrade by a plan is refused once more rows are bad, or a revision changed."""
    project = make_project(tmp_path, environment, {"0001": positive(orders)})
    plan = tmp_path / "plan.json"
    assert command("plan", "--out", plan, "--project", project).code == 0
    any_spark.sql(f"INSERT INTO {orders} VALUES (11, -2.0), (12, 5.0)")
    more = command("upgrade", "--plan", plan, "--json", "--project", project)
    assert (more.code, more.json["error"]["code"]) == (1, "plan_changed")
    assert "3 rows" in more.json["error"]["message"]
    assert rows(any_spark, orders) == 12

    assert command("plan", "--out", plan, "--project", project).code == 0
    file = project / "versions" / "0001_test.py"
    was = file.read_text(encoding="utf-8")
    file.write_text(was.replace("amount > 0", "amount > 1"), encoding="utf-8")
    edited = command("upgrade", "--plan", plan, "--json", "--project", project)
    assert (edited.code, edited.json["error"]["code"]) == (1, "plan_changed")
    file.write_text(was, encoding="utf-8")
    assert command("upgrade", "--plan", plan, "--project", project).code == 0
    assert rows(any_spark, orders) == 9


def test_a_plan_that_was_edited_is_no_plan(
    orders: str, environment: Environment, tmp_path: Path
) -> None:
    """What a person reviewed is what a file says, to the letter."""
    project = make_project(tmp_path, environment, {"0001": positive(orders)})
    plan = tmp_path / "plan.json"
    assert command("plan", "--out", plan, "--project", project).code == 0
    plan.write_text(plan.read_text().replace('"violators": 2', '"violators": 9'))
    ran = command("upgrade", "--plan", plan, "--project", project)
    assert ran.code == 2
    assert "edited" in ran.err
    plan.write_text("not json")
    assert command("upgrade", "--plan", plan, "--project", project).code == 2


def test_the_statements_can_be_printed(
    any_spark: SparkSession, orders: str, environment: Environment, tmp_path: Path
) -> None:
    """--sql prints what would be run, says what is not in it, and touches nothing."""
    project = make_project(tmp_path, environment, {"0001": positive(orders)})
    ran = command("upgrade", "--sql", "--project", project)
    assert ran.code == 0
    assert "neither counted nor moved" in ran.out
    assert "ADD CONSTRAINT `Amount_Positive` CHECK (amount > 0);" in ran.out
    assert rows(any_spark, orders) == 10


@connect_is_slow
def test_a_gate_stops_before_anything_moves(
    any_spark: SparkSession, orders: str, environment: Environment, tmp_path: Path
) -> None:
    """Two of ten rows are more than the default gate of 10%: exit 4, all is as it was."""
    project = make_project(tmp_path, environment, {"0001": positive(orders, "")})
    before = version(any_spark, orders)
    ran = command("upgrade", "--json", "--project", project)
    assert (ran.code, ran.json["error"]["code"]) == (4, "gate")
    assert "2 of 10 rows" in ran.json["error"]["message"]
    assert "10%" in ran.json["error"]["message"]
    assert version(any_spark, orders) == before


@connect_is_slow
def test_a_fail_rule_stops_before_anything_moves(
    any_spark: SparkSession, orders: str, environment: Environment, tmp_path: Path
) -> None:
    """violators="fail": rows that break the rule stop the run with exit 4."""
    line = positive(orders, ', violators="fail", gate="50%"')
    project = make_project(tmp_path, environment, {"0001": line})
    ran = command("upgrade", "--json", "--project", project)
    assert (ran.code, ran.json["error"]["code"]) == (4, "fail_rule")
    assert rows(any_spark, orders) == 10


def test_all_revisions_are_checked_before_the_first_row_moves(
    any_spark: SparkSession, orders: str, environment: Environment, tmp_path: Path
) -> None:
    """A rule of the second revision that Spark does not accept stops the first one too."""
    project = make_project(
        tmp_path,
        environment,
        {"0001": positive(orders), "0002": f'op.add_check("{orders}", "x_known", "nope > 0")'},
    )
    ran = command("upgrade", "--json", "--project", project)
    assert (ran.code, ran.json["error"]["code"]) == (1, "expression")
    assert "nope" in ran.json["error"]["message"]
    assert rows(any_spark, orders) == 10


@connect_is_slow
def test_a_downgrade_drops_what_was_added(
    any_spark: SparkSession, orders: str, environment: Environment, tmp_path: Path
) -> None:
    """The constraint goes, the quarantined rows stay, the environment is at base again."""
    project = make_project(tmp_path, environment, {"0001": positive(orders)})
    assert command("upgrade", "--project", project).code == 0
    ran = command("downgrade", "base", "--json", "--project", project)
    assert ran.code == 0
    assert ran.json["steps"][0]["state"] == "dropped"
    assert ran.json["current"] is None
    any_spark.sql(f"INSERT INTO {orders} VALUES (99, -1.0)")
    assert rows(any_spark, orders) == 9
    assert rows(any_spark, f"{orders}_quarantine") == 2


@connect_is_slow
def test_a_run_can_be_narrowed_to_tables(
    any_spark: SparkSession, orders: str, database: str, environment: Environment, tmp_path: Path
) -> None:
    """With --table only matching tables change; the revision is applied when all are done."""
    other = f"{database}.refunds"
    any_spark.sql(f"CREATE TABLE {other} (id INT, amount DOUBLE) USING delta")
    lines = positive(orders) + "\n" + positive(other)
    project = make_project(tmp_path, environment, {"0001": lines})
    part = command("upgrade", "--table", "*.refunds", "--json", "--project", project)
    assert part.code == 0
    assert [step["table"] for step in part.json["steps"]] == [other]
    assert part.json["current"] is None
    assert rows(any_spark, orders) == 10
    rest = command("upgrade", "--json", "--project", project)
    assert rest.json["current"] == "0001"
    assert rows(any_spark, orders) == 8


def test_a_run_can_be_narrowed_to_tags_and_owners(
    spark: SparkSession, database: str, environment: Environment, tmp_path: Path
) -> None:
    """Of rules, as `constraints/` declares them; plan, upgrade and its SQL alike."""
    table = f"{database}.orders"
    spark.sql(f"CREATE TABLE {table} (id INT, amount INT) USING delta")
    lines = f'op.add_check("{table}", "a", "id > 0")\nop.add_check("{table}", "b", "amount > 0")'
    declared = (
        f"table: {table}\nowner: sales\nrules:\n  a: {{check: id > 0, owner: platform}}\n"
        "  b: {check: amount > 0, tags: [money]}\n"
    )
    project = make_project(tmp_path, environment, {"0001": lines}, {"orders.yml": declared})

    def steps(name: str, *options: str) -> list[str]:
        ran = command(name, *options, "--json", "--project", project)
        assert ran.code == 0, ran
        return [step["rule"] for step in ran.json["steps"]]

    assert steps("plan", "--owner", "Platform") == ["a"]
    assert steps("plan", "--owner", "platform", "--tag", "money") == []
    sql = command("upgrade", "--sql", "--owner", "sales", "--project", project).out
    assert "`b`" in sql
    assert "`a`" not in sql
    assert steps("upgrade", "--tag", "money") == ["b"]
    assert steps("upgrade", "--owner", "platform") == ["a"]
    assert command("current", "--json", "--project", project).json["current"] is None
    assert steps("upgrade") == ["a", "b"]
    assert command("current", "--json", "--project", project).json["current"] == "0001"


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        ("", "table_not_found", "no table"),
        ("CREATE VIEW {0} AS SELECT 1 AS amount", "not_delta", "view"),
        ("CREATE TABLE {0} (amount INT) USING parquet", "not_delta", "not a Delta table"),
    ],
)
def test_what_is_not_a_delta_table_is_refused(
    any_spark: SparkSession,
    database: str,
    environment: Environment,
    tmp_path: Path,
    make: str,
    code: str,
    words: str,
) -> None:
    """A table that is missing, a view or parquet: exit 1, one paragraph, no journal made."""
    name = f"{database}.thing"
    if make:
        any_spark.sql(make.format(name))
    project = make_project(tmp_path, environment, {"0001": positive(name)})
    ran = command("upgrade", "--json", "--project", project)
    assert (ran.code, ran.json["error"]["code"]) == (1, code)
    assert words in ran.json["error"]["message"]
    assert not any_spark.catalog.databaseExists(environment.schema)


def assert_paragraph(ran: Ran) -> None:
    """An error is one paragraph on standard error, without a stack trace."""
    assert ran.out == ""
    assert ran.err.startswith("Error: ")
    assert "Traceback" not in ran.err
    assert ran.err.count("\n\n") == 0


def test_without_configuration_there_is_a_paragraph(tmp_path: Path) -> None:
    """A folder without deltacheck.toml: exit 2, and what to do."""
    ran = command("upgrade", "--project", tmp_path)
    assert ran.code == 2
    assert "deltacheck.toml" in ran.err
    assert_paragraph(ran)


def test_an_unknown_environment_is_named_with_what_is_there(
    tmp_path: Path,
) -> None:
    """exit 2, the known ones listed, and a near miss suggested."""
    (tmp_path / "deltacheck.toml").write_text('[env.prod]\nspark = "sc://localhost:1"\n')
    ran = command("upgrade", "--env", "prd", "--project", tmp_path)
    assert ran.code == 2
    assert "Did you mean 'prod'?" in ran.err
    assert_paragraph(ran)


def test_a_broken_migration_file_is_named(tmp_path: Path) -> None:
    """exit 6, with file and line, before Spark starts."""
    (tmp_path / "deltacheck.toml").write_text('[env.prod]\nspark = "sc://localhost:1"\n')
    (tmp_path / "versions").mkdir()
    (tmp_path / "versions" / "0001_a.py").write_text("def upgrade(op:\n")
    ran = command("upgrade", "--project", tmp_path)
    assert ran.code == 6
    assert "0001_a.py" in ran.err
    assert_paragraph(ran)


@connect_is_slow
def test_an_edited_applied_revision_is_refused(
    orders: str, environment: Environment, tmp_path: Path
) -> None:
    """exit 6; comments and formatting do not count as an edit."""
    project = make_project(tmp_path, environment, {"0001": positive(orders)})
    assert command("upgrade", "--project", project).code == 0
    file = project / "versions" / "0001_test.py"
    was = file.read_text(encoding="utf-8")
    file.write_text(was + "\n# a comment\n", encoding="utf-8")
    assert command("upgrade", "--project", project).code == 0
    file.write_text(was.replace("amount > 0", "amount > 7"), encoding="utf-8")
    ran = command("upgrade", "--project", project)
    assert ran.code == 6
    assert "0001" in ran.err


def test_two_heads_are_refused(orders: str, environment: Environment, tmp_path: Path) -> None:
    """exit 6, naming both files."""
    project = make_project(tmp_path, environment, {"0001": positive(orders)})
    for name in ("0002", "0003"):
        line = f'op.add_check("{orders}", "rule_{name}", "id >= 0")'
        (project / "versions" / f"{name}_fork.py").write_text(migration(name, "0001", line))
    ran = command("upgrade", "--project", project)
    assert ran.code == 6
    assert "0002_fork.py" in ran.err
    assert "0003_fork.py" in ran.err


def test_an_unknown_target_is_refused(
    orders: str, environment: Environment, tmp_path: Path
) -> None:
    """exit 2."""
    project = make_project(tmp_path, environment, {"0001": positive(orders)})
    ran = command("upgrade", "0009", "--project", project)
    assert ran.code == 2
    assert "0009" in ran.err


def test_several_environments_run_one_after_the_other(tmp_path: Path) -> None:
    """One that cannot be reached does not stop the others; the exit code is their common one."""
    (tmp_path / "deltacheck.toml").write_text(
        '[env.a]\nspark = "sc://127.0.0.1:1"\n[env.b]\nspark = "sc://127.0.0.1:2"\n'
    )
    (tmp_path / "versions").mkdir()
    words = ["upgrade", "--env", "all", "--json", "--project", str(tmp_path)]
    ran = subprocess.run(
        [sys.executable, "-m", "deltacheck.cli.app", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1, ran.stderr
    found = json.loads(ran.stdout)["environments"]
    assert [entry["environment"] for entry in found] == ["a", "b"]
    assert all(entry["result"]["error"]["code"] == "engine" for entry in found)


@connect_is_slow
def test_a_downgrade_can_bring_the_rows_back(
    any_spark: SparkSession, orders: str, environment: Environment, tmp_path: Path
) -> None:
    """Rows that the reverted revision moved return; those of a rule that still holds stay."""
    any_spark.sql(f"INSERT INTO {orders} VALUES (NULL, -7.0), (NULL, 7.0)")
    before = sorted(map(str, any_spark.table(orders).collect()))
    project = make_project(
        tmp_path,
        environment,
        {
            "0001": positive(orders),
            "0002": f'op.add_check("{orders}", "has_id", "id IS NOT NULL", gate="50%")',
        },
    )
    assert command("upgrade", "--project", project).code == 0
    assert rows(any_spark, orders) == 8
    ran = command("downgrade", "base", "--restore-quarantined", "--json", "--project", project)
    assert ran.code == 0, ran.out
    (back,) = ran.json["restored"]
    assert (back["rows"], back["kept"]) == (4, 0)
    assert sorted(map(str, any_spark.table(orders).collect())) == before
    again = command("downgrade", "base", "--restore-quarantined", "--json", "--project", project)
    assert again.json["restored"] == []
    assert sorted(map(str, any_spark.table(orders).collect())) == before


@connect_is_slow
def test_rows_that_break_a_rule_that_still_holds_stay_in_quarantine(
    any_spark: SparkSession, orders: str, environment: Environment, tmp_path: Path
) -> None:
    """Reverting the second revision brings back only what the first one lets in."""
    any_spark.sql(f"INSERT INTO {orders} VALUES (NULL, 7.0)")
    project = make_project(
        tmp_path,
        environment,
        {
            "0001": positive(orders),
            "0002": f'op.add_check("{orders}", "has_id", "id IS NOT NULL", gate="50%")',
        },
    )
    assert command("upgrade", "--project", project).code == 0
    ran = command("downgrade", "0001", "--restore-quarantined", "--json", "--project", project)
    (back,) = ran.json["restored"]
    assert (back["rows"], back["kept"]) == (1, 0)
    assert rows(any_spark, orders) == 9
    assert any_spark.table(f"{orders}_quarantine").where("_deltacheck_state = 'held'").count() == 2
