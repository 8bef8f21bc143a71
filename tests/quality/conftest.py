"""The yard in which checks run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.session import settings
from tests.migrate.bench import FRUGAL
from tests.quality.yard import Yard


@pytest.fixture
def yard(
    session: SparkSession, environment: Environment, tmp_path: Path, database: str
) -> Iterator[Yard]:
    """A project whose tables live in the test's own database."""
    with settings(session, dict(FRUGAL)):
        yield Yard(session, environment, tmp_path, database)
