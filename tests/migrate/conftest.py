"""The bench, for each test a fresh database on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.session import settings
from tests.migrate.bench import FRUGAL, Bench


@pytest.fixture
def bench(session: SparkSession, environment: Environment, database: str) -> Iterator[Bench]:
    """An environment with an empty database of its own."""
    with settings(session, FRUGAL):
        yield Bench(session, environment, database)
