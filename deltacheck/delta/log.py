"""Where Spark's own words go: to a file, not to the terminal.

Spark's log and PySpark's loggers can hold values of rows. The file is therefore its user's
alone, and the loggers can be silenced around an attempt of which deltacheck itself reports.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from pyspark.logger import PySparkLogger

from deltacheck.config import Environment
from deltacheck.delta.cache import cache_folder, make

QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark's loggers of failed queries (``pyspark/errors/exceptions/base.py``, since 4.0)."""

_LOG_BYTES = 10_000_000
_quiet: ContextVar[bool] = ContextVar("deltacheck_quiet", default=False)


def log_file(environment: Environment, environ: Mapping[str, str] | None = None) -> Path:
    """The file that gets what Spark prints on this environment; nothing is created.

    Args:
        environ: Environment variables; default: the process's own.
    """
    warehouse = environment.warehouse
    where = f"{environment.spark}\n{'' if warehouse is None else warehouse.resolve()}"
    name = re.sub(r"\W+", "_", environment.name)
    key = hashlib.sha256(where.encode()).hexdigest()[:8]
    return cache_folder(environ) / "logs" / f"{name}-{key}.log"


def open_log(environment: Environment) -> Path:
    """Make the log file of an environment ready to be appended to.

    It is put aside, in the place of the one put aside before, when it has grown beyond
    10 MB.

    Raises:
        EngineError: Its folder cannot be made.
    """
    log = log_file(environment)
    make(log.parent)
    if log.exists() and log.stat().st_size > _LOG_BYTES:
        log.replace(log.with_suffix(".old.log"))
    log.touch(mode=0o600)
    return log


@contextmanager
def quiet_query_loggers() -> Iterator[None]:
    """Drop what PySpark logs of failing queries, for this thread and this while.

    PySpark prints the whole message of a failed query, with the values of the row that
    broke a constraint. Other threads' queries go on being logged.
    """
    for name in QUERY_LOGGERS:
        # The same filter twice is one filter.
        PySparkLogger.getLogger(name).addFilter(_passes)
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def _passes(record: logging.LogRecord) -> bool:
    return not _quiet.get()
