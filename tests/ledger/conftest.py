"""The bench of the tests of upgrades, and the yard in which checks run."""

from __future__ import annotations

from tests.migrate.conftest import bench
from tests.quality.conftest import yard

__all__ = ["bench", "yard"]
