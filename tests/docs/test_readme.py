"""The README shows what is there, and what it shows runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deltacheck.config import load_project

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
