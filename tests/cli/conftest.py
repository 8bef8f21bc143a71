"""A command line to run, and projects to run it on."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltacheck.config import Environment
from tests.cli.runner import Outcome, Run, run_command
from tests.cli.shop import Shop


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``deltacheck ARGUMENTS`` in this process."""

    def run(*arguments: object) -> Outcome:
        return run_command(capsys, *arguments)

    return run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def shop(folder: Path, environment: Environment) -> Shop:
    """A project on the shared session, in the current folder: its tables live in a database
    of their own."""
    return Shop.make(folder, environment)
