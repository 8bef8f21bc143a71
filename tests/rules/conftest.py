"""Rules are judged as Spark judges them by default: by compiled code."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _compiled(request: pytest.FixtureRequest) -> None:
    if "spark" in request.fixturenames:
        request.getfixturevalue("compiled")
