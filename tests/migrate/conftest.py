"""The bench, for each test a fresh database on it."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from deltacheck.config import Environment
from tests.migrate.bench import Bench


@pytest.fixture
def bench(session: SparkSession, environment: Environment, database: str) -> Bench:
    """An environment with an empty database of its own."""
    return Bench(session, environment, database)
