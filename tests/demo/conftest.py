"""The worked example on the session that all tests share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltacheck
from deltacheck.config import Environment
from deltacheck.demo import shop
from tests.cli.projects import make_project
from tests.quality.yard import Yard


@pytest.fixture
def example(
    session: SparkSession,
    environment: Environment,
    tmp_path: Path,
    warehouse: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Yard]:
    """Its project in the current folder, upgraded, the customers that it found fault with put
    right: the orders of each are known."""
    folder = tmp_path / "shop"
    shop.make_project(folder)
    make_project(folder, environment, {})
    monkeypatch.chdir(folder)
    shop.fill_tables(session)
    deltacheck.upgrade(session=session)
    repairs = ["customer_id = coalesce(customer_id, 51)", "email = 'unknown@example.org'"]
    deltacheck.quarantine.release("shop.customers", repairs=repairs, session=session)
    yield Yard(session, environment, folder, "shop")
    session.sql("DROP DATABASE shop CASCADE")
    shutil.rmtree(warehouse / "shop", ignore_errors=True)
