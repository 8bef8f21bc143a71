"""Rules are judged as Spark judges them by default: by compiled code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from deltacheck.delta.session import settings


@pytest.fixture(autouse=True)
def _compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    if "spark" not in request.fixturenames:
        yield
        return
    session: SparkSession = request.getfixturevalue("spark")
    compiled = {
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
    }
    with settings(session, compiled):
        yield
