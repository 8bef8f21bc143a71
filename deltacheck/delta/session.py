"""Spark sessions: open one, make its settings ours for a while, keep its loggers quiet.

Knows nothing of tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

# Without this import conflicts of concurrent commits arrive as raw Java errors.
import delta.exceptions  # noqa: F401
from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.embedded import log_file, start

__all__ = ["is_connect", "log_file", "open_session", "settings"]


def open_session(environment: Environment) -> SparkSession:
    """Open the session of an environment."""
    if environment.spark.startswith("sc://"):
        return SparkSession.builder.remote(environment.spark).create()
    return start(environment)


def is_connect(session: SparkSession) -> bool:
    """Say whether a session is one of Spark Connect."""
    return not isinstance(session, SparkSession)


@contextmanager
def settings(session: SparkSession, values: Mapping[str, str | None]) -> Iterator[None]:
    """Set SQL settings for a while, and put back exactly what was there.

    Args:
        values: What to set; None takes a setting away, so that its default holds.
    """
    before = {key: session.conf.get(key, None) for key in values}
    try:
        _apply(session, values)
        yield
    finally:
        _apply(session, before)


def _apply(session: SparkSession, values: Mapping[str, str | None]) -> None:
    for key, value in values.items():
        if value is None:
            session.conf.unset(key)
        else:
            session.conf.set(key, value)
