"""Marks that several tests share."""

from __future__ import annotations

import pytest

connect_is_slow = pytest.mark.parametrize(
    "any_spark",
    ["classic", pytest.param("connect", marks=[pytest.mark.connect, pytest.mark.slow])],
    indirect=True,
)
"""Both sessions, that of Spark Connect only among the slow tests: where what the test is about is
the same on both, and others show that Connect gets there."""
