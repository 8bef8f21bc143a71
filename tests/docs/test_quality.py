"""What docs/quality.md shows, runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import deltacheck
from deltacheck.config import load_project
from deltacheck.events import EVENT_KINDS, Event, emit
from deltacheck.ledger.quality_log import SCHEMA
from deltacheck.rules.check_models import BATCH_TESTS, TABLE_TESTS
from deltacheck.rules.files import read_rules
from deltacheck.writing.survey import PROJECT_VARIABLE
from tests.cli.projects import command
from tests.quality.conftest import yard
from tests.quality.yard import Yard

__all__ = ["yard"]

PAGE = (Path(__file__).parents[2] / "docs" / "quality.md").read_text(encoding="utf-8")
TABLES, BATCHES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_file_of_the_page_has_every_kind_of_check(tmp_path: Path) -> None:
    """And the page says of each when it passes."""
    (tmp_path / "orders.yml").write_text(TABLES, encoding="utf-8")
    (declared,) = read_rules(tmp_path).values()

    assert {check.kind for check in declared.checks} == set(TABLE_TESTS)
    table = PAGE.split("| test | passes when |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(TABLE_TESTS)


def test_the_other_file_of_the_page_has_every_kind_of_check_of_a_batch(tmp_path: Path) -> None:
    (tmp_path / "orders.yml").write_text(BATCHES, encoding="utf-8")
    (declared,) = read_rules(tmp_path).values()

    assert [check.kind for check in declared.batch] == list(BATCH_TESTS)


def test_the_page_names_every_event() -> None:
    table = PAGE.split("| event | when |")[1].split("\n\n")[0]

    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == EVENT_KINDS


def test_the_page_names_every_column_of_the_log() -> None:
    table = PAGE.split("| column | holds |")[1].split("\n\n")[0]
    named = [name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row[:60])]

    assert set(SCHEMA.names) <= set(named)


def snippet(name: str) -> str:
    """The block of the page that a comment names."""
    (found,) = re.findall(rf"<!-- \w+: {name} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def execute(name: str, yard: Yard, **known: object) -> dict[str, object]:
    """Run a block of Python on the yard's tables; the names that it leaves."""
    code = snippet(name).replace("shop.", f"{yard.database}.")
    names = {"deltacheck": deltacheck, "spark": yard.session, "project": yard.folder, **known}
    exec(compile(code, name, "exec"), names)
    return names


def test_the_python_of_the_page_runs(yard: Yard, capsys: pytest.CaptureFixture[str]) -> None:
    """On a table with one check."""
    yard.table("id INT", "(1)", "(1)")
    yard.declare("ids: {unique: id}")

    execute("quality.py", yard)

    said = capsys.readouterr().out
    assert f"{yard.orders} ids failed 2 of 2 rows share id with another (1 value)" in said
    assert "|failed|" in said.replace(" ", "")
    assert yard.session.table(f"{yard.database}.failing_keys").count() == 1


def test_the_batch_of_the_page_passes_the_checks_of_the_page(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is looked at by each of them."""
    orders = "order_id BIGINT, customer_id BIGINT, amount DECIMAL(10,2)"
    yard.table(orders)
    yard.table("loaded_at TIMESTAMP", "(current_timestamp())", name="customers")
    yard.declare()
    text = BATCHES.replace("shop.", f"{yard.database}.")
    (yard.folder / "constraints" / "orders.yml").write_text(text, encoding="utf-8")
    monkeypatch.setenv(PROJECT_VARIABLE, str(yard.folder))
    df = yard.session.sql(
        "SELECT id AS order_id, 1L AS customer_id, "
        "CAST(IF(id = 0, 12000, 345.67) AS DECIMAL(10, 2)) AS amount FROM range(2)"
    )

    execute("batch.py", yard, df=df)

    assert yard.session.table(yard.orders).count() == 2
    logged = {line.rule: line.state for line in yard.log() if line.kind == "check"}
    assert len(logged) == len(BATCH_TESTS)
    assert set(logged.values()) == {"passed"}


def test_the_events_of_the_page_are_told(
    yard: Yard, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file can be read, and the function is called."""
    text = '[env.l]\nspark = "local"\nwarehouse = "w"\n'
    (tmp_path / "deltacheck.toml").write_text(snippet("notify") + text, encoding="utf-8")
    notify = load_project(tmp_path).notify
    assert notify is not None
    assert (notify.logger, len(notify.events)) == ("team.alerts", 3)

    told = execute("events.py", yard)["page_the_owner"]
    try:
        emit(Event("stopped", "too many", owners=("sales",)))
    finally:
        deltacheck.off_event(told)  # type: ignore[arg-type]
    assert "stopped ('sales',) too many" in capsys.readouterr().out


def test_the_commands_of_the_page_run(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.table("id INT", "(1)")
    yard.declare("ids: {unique: id, tags: [core]}")
    monkeypatch.chdir(yard.folder)

    for line in snippet("check.sh").replace("shop.", f"{yard.database}.").splitlines():
        program, *words = line.split("#")[0].split()
        ran = command(*words)
        assert (program, ran.code) == ("deltacheck", 0), ran
        assert "1 passed" in ran.words
