"""A project to run commands on."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltacheck.config import Environment
from tests.cli.shop import Shop


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
