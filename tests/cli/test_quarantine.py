"""`deltacheck quarantine ...`: the real commands on real tables."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltacheck.config import Environment
from tests.cli.projects import command, make_project
from tests.quarantine.held import hold, make_table, rows, states


@pytest.fixture
def table(session: SparkSession, database: str) -> str:
    """A table with three rows in quarantine, of which one would pass."""
    name = f"{database}.orders"
    make_table(session, name)
    hold(session, name, "(1, -5, 'new'), (2, -6, 'lost'), (3, 7, 'new')", attempt="b1")
    return name


@pytest.fixture
def project(
    table: str, environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A project that declares the table, in the current folder."""
    rules = f"table: {table}\nrules:\n  amount_positive:\n    check: amount > 0\n"
    monkeypatch.chdir(make_project(tmp_path, environment, {}, {"orders.yml": rules}))
    return tmp_path


class Terminal(io.StringIO):
    """A person at the terminal, who types a line."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_list_counts_and_shows_no_value(any_spark: SparkSession, table: str, project: Path) -> None:
    """For people and as JSON, of all tables of the project or of those named."""
    said = command("quarantine", "list")
    assert said.code == 0
    assert "amount_positive, status_known" in said.words
    assert "none (good row of a bad batch)" in said.words

    found = command("quarantine", "list", table, "--rule", "status_known", "--json").json
    (entry,) = found["held"]
    assert (entry["rows"], entry["state"], entry["run"]) == (1, "held", "b1")
    nothing = command("quarantine", "list", table, "--where", "amount > 100")
    assert nothing.out == "No row is quarantined.\n"
    assert command("quarantine", "list", "--owner", "nobody").out == "No row is quarantined.\n"


def test_show_and_export_give_values_on_request(
    session: SparkSession, table: str, project: Path
) -> None:
    """Columns and rows can be chosen; what is there is not overwritten."""
    said = command("quarantine", "show", table, "--columns", "id, amount", "--limit", "2")
    # Rows that came together are in no order; two of the three amounts are negative.
    assert "-5" in said.out or "-6" in said.out
    assert "2 of 3 rows" in said.out
    assert "status" not in said.out
    document = command("quarantine", "show", table, "--where", "id = 2", "--json").json
    assert document["rows"] == [
        {
            "_deltacheck_rules": ["amount_positive", "status_known"],
            "id": 2,
            "amount": -6,
            "status": "lost",
        }
    ]

    done = command("quarantine", "export", table, "bad.csv", "--json")
    assert (done.code, done.json["rows"], done.json["format"]) == (0, 3, "csv")
    assert list((project / "bad.csv").glob("*.csv"))
    again = command("quarantine", "export", table, "bad.csv")
    assert (again.code, "already" in again.err) == (2, True)


def test_release_repairs_writes_back_and_says_what_stays(
    any_spark: SparkSession, table: str, project: Path
) -> None:
    """A dry run first; then each row that passes goes back."""
    repair = ("--set", "amount = abs(amount)")
    plan = command("quarantine", "release", table, *repair, "--dry-run", "--json").json
    assert (plan["rows"], plan["kept"], plan["broken"]) == (2, 1, {"status_known": 1})
    assert rows(any_spark, table) == {}

    done = command("quarantine", "release", table, *repair)

    assert done.code == 0
    assert f"2 rows went back to {table}" in done.words
    assert "1 row still held for breaking a rule: status_known (1 row)" in done.words
    assert rows(any_spark, table, "id, amount") == {(1, 5): 1, (3, 7): 1}
    refused = command("quarantine", "release", table, "--set", "price = 1", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "expression")


def test_nothing_is_done_without_the_consent_of_the_person_at_the_terminal(
    session: SparkSession, table: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command says how many rows it is about and asks; --yes answers."""
    commands = {
        "release": (),
        "discard": ("--reason", "test"),
        "purge": ("--older-than", "0d", "--held"),
    }
    for name, options in commands.items():
        monkeypatch.setattr("sys.stdin", Terminal("n\n"))
        refused = command("quarantine", name, table, *options)
        assert (refused.code, "Go on?" in refused.err) == (130, True)
        assert ("1 row" if name == "release" else "3 rows") in refused.err
    assert states(session, table) == dict.fromkeys((1, 2, 3), "held")

    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert command("quarantine", "discard", table, "--reason", "test", "--where", "id=1").code == 0
    monkeypatch.setattr("sys.stdin", Terminal(""))
    assert command("quarantine", "release", table, "--yes").code == 0
    assert states(session, table) == {1: "discarded", 2: "held", 3: "released"}


def test_every_command_can_be_narrowed_to_a_persons_rows(
    session: SparkSession, table: str, project: Path
) -> None:
    """By --where; the condition is all that is said of them."""
    mine = ("--where", "id = 3", "--json")
    assert command("quarantine", "list", table, *mine).json["held"][0]["rows"] == 1
    assert command("quarantine", "export", table, "mine.json", *mine).json["rows"] == 1
    repair = ("--set", "amount = abs(amount)")
    assert command("quarantine", "release", table, *repair, *mine).json["rows"] == 1
    assert command("quarantine", "discard", table, "--reason", "test", *mine).json["rows"] == 0
    done = command("quarantine", "purge", table, *mine)
    assert (done.json["rows"], done.json["held"]) == (1, 0)
    assert "VACUUM" in done.json["left_behind"]
    assert states(session, table) == {1: "held", 2: "held"}
    assert rows(session, table, "id") == {(3,): 1}


def test_discard_and_purge_count_and_say_what_is_left(
    session: SparkSession, table: str, project: Path
) -> None:
    """Nobody is asked where nobody is at a terminal."""
    done = command("quarantine", "discard", table, "--reason", "test", "--run", "b1", "--json")
    assert done.json["rows"] == 3
    preview = command("quarantine", "purge", table, "--older-than", "0d", "--dry-run")
    assert "3 rows would be deleted" in preview.out
    purged = command("quarantine", "purge", table, "--older-than", "0d")
    assert (purged.code, "VACUUM" in purged.words) == (0, True)
    assert states(session, table) == {}
    assert command("quarantine", "purge", table).code == 2
    assert command("quarantine", "purge", table, "--older-than", "soon", "--json").code == 2


def test_status_notices_rows_that_a_restore_brought_back(
    session: SparkSession, database: str, environment: Environment, tmp_path: Path
) -> None:
    """They are in the table and in its quarantine until somebody discards them."""
    table = f"{database}.restored"
    make_table(session, table, rules={})
    session.sql(f"INSERT INTO {table} VALUES (1, 5, 'new'), (2, -5, 'new')")
    line = f'op.add_check("{table}", "amount_positive", "amount > 0", gate="50%")'
    project = make_project(tmp_path, environment, {"0001": line})
    assert command("upgrade", "--project", project).code == 0
    assert command("status", "--project", project, "--json").json["restored"] == {}

    session.sql(f"RESTORE TABLE {table} TO VERSION AS OF 1")

    assert command("status", "--project", project, "--json").json["restored"] == {table: 1}
    said = command("quarantine", "list", table, "--project", project)
    assert "back in the table (RESTORE)" in said.words
    refused = command("quarantine", "release", table, "--project", project)
    assert (refused.code, "RESTORE" in refused.err) == (1, True)
    discard = ("discard", table, "--reason", "restored", "--run")
    run = command("quarantine", "list", table, "--project", project, "--json").json["held"][0]
    assert command("quarantine", *discard, run["run"], "--project", project).code == 0
    assert command("status", "--project", project, "--json").json["restored"] == {}
