"""The table that most tests of writing write to."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.writing.batches import make_table


@pytest.fixture
def table(spark: SparkSession, database: str) -> str:
    """A table with the rules amount_positive and status_known."""
    return make_table(spark, f"{database}.orders")
