"""Spark sessions: open one, make its settings ours for a while, keep it quiet.

One place knows the four kinds of Spark that an environment can name. Everything above works
on a session and asks at most whether it is one of Spark Connect. Knows nothing of tables.
"""

from __future__ import annotations

import atexit
import importlib
import re
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

# Without this import conflicts of concurrent commits arrive as raw Java errors.
import delta.exceptions  # noqa: F401
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.failures import failure_of
from deltacheck.delta.log import log_file, quiet_query_loggers
from deltacheck.errors import ConfigError, EngineError

__all__ = [
    "VERDICT_SETTINGS",
    "apart",
    "aside",
    "is_connect",
    "leave",
    "log_file",
    "open_session",
    "quiet_query_loggers",
    "session_for",
    "settings",
    "sibling",
    "verdict_session",
    "verdict_settings",
]

REPEATED_FIRST = "spark.sql.subexpressionElimination.enabled"
"""Whether what occurs twice is computed once and first, even behind a guard."""

VERDICT_SETTINGS: Mapping[str, str] = {
    # What an expression means.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.function.concatBinaryAsString": "false",
    "spark.sql.function.eltOutputAsString": "false",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.readSideCharPadding": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    # A guard keeps what stands behind it from failing: `a = 0 OR 10 DIV a > 1` would end in a
    # division by zero in Delta's own scan. `...skipForShortcutExpr`, meant for this, overlooks
    # the guard in `(a = 0 OR 10 DIV a > 1) AND b > 0`.
    REPEATED_FIRST: "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.variable.substitute": "false",
    # Which rows a scan sees: one that skips files would count, copy and delete too little.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.databricks.delta.stalenessLimit": "0ms",
    # What a write does beside writing rows.
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
    "spark.databricks.delta.schema.autoMerge.enabled": "false",
    # Delta's default. Its stricter mode refuses, after rows have been moved, every function that
    # is not on a list of Delta's own (AllowedUserProvidedExpressions.scala), split_part among
    # them; what no write survives is refused by deltacheck itself before anything is touched.
    "spark.databricks.delta.checkConstraints.validation.enabled": "LOG_ONLY",
}
"""The settings under which rules are counted, moved and enforced, so that one predicate has
one meaning in all three. Mostly Spark 4's defaults; a session may have others."""

_UNSET_PREFIXES = (
    # Spark's switches back to older meanings, and Delta's properties for new tables: one
    # that is append-only by default would make a quarantine that nothing can leave.
    "spark.sql.legacy.",
    "spark.sql.parser.escapedStringLiterals",
    "spark.databricks.delta.properties.defaults.",
)

# Retries, and the longest wait between two in milliseconds. A first call: two more tries, so
# that nothing listening is told in seconds. Later ones: about a minute in all, in place of
# PySpark's ten, since a server that was away for longer has forgotten the session.
_FIRST = (2, 500)
_LATER = (8, 15_000)


def open_session(environment: Environment) -> SparkSession:
    """Open the session of an environment.

    ``local`` and a master URL give the classic session of this process: the same one at
    each call. A Spark Connect address gives a new session. ``package.module:function``
    gives what the function returns; the current folder is importable.

    Raises:
        ConfigError: ``spark`` is none of the four.
        EngineError: There is no Java, no Delta, no server, no such function; or this process
            has a classic session that deltacheck did not start, which is never taken over.
    """
    spark = environment.spark
    if spark.startswith("sc://"):
        return _connect(environment)
    if spark in ("local", "yarn") or spark.startswith("local[") or "://" in spark:
        # Brings py4j and launches a JVM, neither of which a client of Spark Connect needs.
        from deltacheck.delta.embedded import start

        return start(environment)
    if ":" in spark:
        return _call(environment)
    raise ConfigError(
        f"The environment {environment.name!r} has spark = {spark!r}, which names no Spark; "
        "nothing was done.",
        hint='It can be "local", a Spark Connect address (sc://host:port), a master URL, or '
        "package.module:function.",
    )


def _connect(environment: Environment) -> SparkSession:
    session = None
    try:
        session = SparkSession.builder.remote(environment.spark).create()
        _try_again(session, *_FIRST)
        with _without_retry_warning():
            # The first call that needs a server.
            str(session.version)
    except PySparkException as error:
        if session is not None:
            leave(session)
        # What follows the address can be a token.
        address = environment.spark.partition("/;")[0]
        raise EngineError(
            f"No Spark Connect server can be reached at {address}, which the environment "
            f"{environment.name!r} names: {_reason(error)}; nothing was done.",
            hint="Start the server, or correct the address.",
        ) from None
    return _own(session)


def _own(session: SparkSession) -> SparkSession:
    """Make a new session one that never keeps its process waiting for a server that is gone.

    At the end of a process PySpark's own clean-up would wait as patiently as any other call.
    """
    _try_again(session, *_LATER)
    opened = weakref.ref(session)

    def end() -> None:
        left = opened()
        if left is not None:
            leave(left)

    atexit.register(end)
    return session


def _try_again(session: SparkSession, times: int, longest: int) -> None:
    """Bound how often calls that reach no server are tried again."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    policy = DefaultPolicy(max_retries=times, max_backoff=longest)
    session.client.set_retry_policies([policy])


@contextmanager
def _without_retry_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        # PySpark warns that it has given up, and then raises.
        warnings.filterwarnings("ignore", message=".*RETRIES_EXCEEDED")
        yield


def _reason(error: Exception) -> str:
    text = str(error)
    # gRPC prints its whole state; the sentence for people is its details.
    details = re.search(r'details = "(.+)"', text)
    return details.group(1) if details else text.strip().splitlines()[0].rstrip(".")


def _call(environment: Environment) -> SparkSession:
    module, _, function = environment.spark.partition(":")
    with _importable(Path.cwd()):
        try:
            found = getattr(importlib.import_module(module), function)
        except (ImportError, AttributeError) as error:
            raise EngineError(
                f"The environment {environment.name!r} names {environment.spark}, which cannot "
                f"be imported: {error}; nothing was done.",
                hint="It must be package.module:function, importable from the current folder "
                "or installed.",
            ) from None
        session = found()
    if not (hasattr(session, "sql") and hasattr(session, "conf")):
        raise EngineError(
            f"{environment.spark}, named by the environment {environment.name!r}, returned "
            f"{type(session).__name__} in place of a Spark session; nothing was done."
        )
    return cast(SparkSession, session)


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def is_connect(session: SparkSession) -> bool:
    """Say whether a session is one of Spark Connect, which has no JVM in this process."""
    return not isinstance(session, SparkSession)


def sibling(session: SparkSession) -> SparkSession:
    """Give another session on the same Spark and catalog, whose SQL settings are its own.

    They begin as those of ``session``. Temporary views are not promised.

    Returns:
        A new session; over Spark Connect with a server older than 4.1 ``session`` itself,
        since such a server cannot make one.
    """
    if is_connect(session):
        try:
            clone = session.cloneSession()  # type: ignore[attr-defined]
        except (AttributeError, PySparkException):
            return session
        # Spark 4.2 forgets to give it this, and its stop() asks for it.
        clone.release_session_on_close = True
        return _own(cast(SparkSession, clone))
    other = session.newSession()
    began = _explicit(other)
    for key, value in _explicit(session).items():
        if began.get(key) != value:
            _set_if_possible(other, key, value)
    return other


def _set_if_possible(session: SparkSession, key: str, value: str) -> None:
    try:
        session.conf.set(key, value)
    except PySparkException as error:
        # The session of a stream's batch lists settings of Spark itself as its own.
        if failure_of(error).family != "CANNOT_MODIFY_CONFIG":
            raise


@contextmanager
def aside(session: SparkSession) -> Iterator[SparkSession]:
    """Work in a :func:`sibling`, and give it back afterwards."""
    other = sibling(session)
    try:
        yield other
    finally:
        if other is not session:
            leave(other)


@contextmanager
def verdict_session(session: SparkSession) -> Iterator[SparkSession]:
    """Work in a :func:`sibling` under :func:`verdict_settings`, its loggers quiet."""
    with aside(session) as own, quiet_query_loggers(), settings(own, verdict_settings(own)):
        yield own


@contextmanager
def session_for(environment: Environment) -> Iterator[SparkSession]:
    """Open the session of an environment for a while, as :func:`open_session` does."""
    session = open_session(environment)
    try:
        yield session
    finally:
        leave(session)


def leave(session: SparkSession) -> None:
    """Give a session back that nobody uses any more.

    One of Spark Connect is ended; its client would otherwise wait for its server when the
    process ends. A classic one is this process's Spark, which stays for the next caller.
    """
    if is_connect(session):
        _try_again(session, *_FIRST)
        with _without_retry_warning():
            session.stop()


def verdict_settings(session: SparkSession) -> dict[str, str | None]:
    """The settings for :func:`settings` under which deltacheck counts, moves and enforces.

    ``VERDICT_SETTINGS``, and None for each of this session's settings that goes back to an
    older meaning (``spark.sql.legacy.*`` and the like) or gives new Delta tables other properties
    (``spark.databricks.delta.properties.defaults.*``).
    """
    unset = {key: None for key in _explicit(session) if key.startswith(_UNSET_PREFIXES)}
    return {**unset, **VERDICT_SETTINGS}


def _explicit(session: SparkSession) -> dict[str, str]:
    # Spark 3.5 cannot list them without hiding some.
    return dict(getattr(session.conf, "getAll", {}))


@contextmanager
def settings(session: SparkSession, values: Mapping[str, str | None]) -> Iterator[None]:
    """Set SQL settings for a while, and put back exactly what was there.

    Not for a session that another thread uses at the same time: see :func:`sibling`.

    Args:
        values: What to set; None takes a setting away, so that its default holds.

    Raises:
        PySparkException: A setting cannot be changed while Spark runs.
    """
    before = {key: session.conf.get(key, None) for key in values}
    try:
        _apply(session, values)
        yield
    except (KeyboardInterrupt, SystemExit):
        apart(lambda: _restore(session, before))
        raise
    except BaseException:
        _restore(session, before)
        raise
    _apply(session, before)


def apart(action: Callable[[], None]) -> None:
    """Do something after an interrupt, in a thread of its own.

    The interrupted call's answer still waits on this thread's connection to Java, where the
    next call would take it for its own; each thread has its own connection.
    """
    thread = threading.Thread(target=action, name="deltacheck-apart")
    thread.start()
    thread.join()


def _restore(session: SparkSession, before: Mapping[str, str | None]) -> None:
    # A session that is gone has no settings, and its error is the one to be told.
    with suppress(PySparkException, Py4JError):
        _apply(session, before)


def _apply(session: SparkSession, values: Mapping[str, str | None]) -> None:
    for key, value in values.items():
        if value is None:
            session.conf.unset(key)
        else:
            session.conf.set(key, value)
