"""What docs/quality.md shows, runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deltacheck.events import EVENT_KINDS
from deltacheck.ledger.quality_log import SCHEMA
from deltacheck.rules.check_models import BATCH_TESTS, TABLE_TESTS
from deltacheck.rules.files import read_rules
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


def test_the_python_of_the_page_runs(yard: Yard, capsys: pytest.CaptureFixture[str]) -> None:
    """On a table with one check."""
    (code,) = re.findall(r"<!-- run: quality.py -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    yard.table("id INT", "(1)", "(1)")
    yard.declare("ids: {unique: id}")

    code = code.replace("shop.*", f"{yard.database}.*")
    exec(
        compile(code, "quality.py", "exec"),
        {"spark": yard.session, "project": yard.folder},
    )

    said = capsys.readouterr().out
    assert f"{yard.orders} ids failed 2 of 2 rows share id with another (1 value)" in said
    assert "|failed|" in said.replace(" ", "")
