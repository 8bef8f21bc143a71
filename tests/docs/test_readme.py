"""The README shows what is there, and what it shows runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deltacheck.config import load_project
from deltacheck.errors import ExpressionError
from deltacheck.lint import lint_project
from deltacheck.names import TableName
from deltacheck.rules.expression import parse_rule
from deltacheck.rules.given import rules_given

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text: str, marker: str) -> dict[str, str]:
    """Marker argument to the fenced block that follows it."""
    pattern = rf"<!-- {marker}: (.+?) -->\n```\w*\n(.*?)```"
    return dict(re.findall(pattern, text, flags=re.DOTALL))


@pytest.mark.parametrize("name", sorted(blocks(README, "file")))
def test_a_file_that_the_readme_shows_is_the_one_in_the_repository(name: str) -> None:
    """What the README quotes of the worked example is the worked example."""
    assert (ROOT / name).read_text(encoding="utf-8") == blocks(README, "file")[name]


def test_the_configuration_that_the_readme_shows_is_read(tmp_path: Path) -> None:
    """The README's deltacheck.toml has two environments that deltacheck understands."""
    text = blocks(README, "check")["toml"]
    (tmp_path / "deltacheck.toml").write_text(text, encoding="utf-8")
    project = load_project(tmp_path)
    assert set(project.environments) == {"local", "prod"}
    assert project.environment().spark == "local"
    assert project.environment("prod").schema == "ops.deltacheck"


TABLE = README.split("<!-- table: rules -->\n")[1].split("\n\n")[0]
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in TABLE.splitlines()[2:]
]


@pytest.mark.parametrize(("written", "outcome"), ROWS)
def test_what_the_readme_says_of_a_rule_is_so(written: str, outcome: str) -> None:
    """Each row of the table of refused, respelled and taken rules."""
    rule = written.strip("`")
    if outcome.startswith("refused"):
        with pytest.raises(ExpressionError):
            parse_rule(rule)
    elif outcome.startswith("stored as"):
        stored = re.match(r"stored as `(.*?)`(?: \(|$)", outcome)
        assert stored is not None
        assert parse_rule(rule).stored == stored[1]
    else:
        assert outcome.startswith("taken; `deltacheck lint`")
        assert parse_rule(rule).stored == rule
        declared = {"r": rule}
        table = TableName.parse("shop.t")
        codes = {f.code for f in lint_project({table: rules_given(table, declared)}, None)}
        assert ("DC103" in codes) == ("reports an error" in outcome)
