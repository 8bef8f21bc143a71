"""The yard in which checks run."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltacheck.config import Environment
from tests.quality.yard import Yard


@pytest.fixture
def yard(session: SparkSession, environment: Environment, tmp_path: Path, database: str) -> Yard:
    """A project whose tables live in the test's own database."""
    return Yard(session, environment, tmp_path, database)
