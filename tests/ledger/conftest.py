"""The bench of the tests of upgrades."""

from __future__ import annotations

from tests.migrate.conftest import bench

__all__ = ["bench"]
