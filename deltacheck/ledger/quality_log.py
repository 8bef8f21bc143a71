"""The quality log: what passed and what failed, one line for each rule or check that was judged.

Append-only; one commit for each run or batch. It holds figures and names, and values of rows
only where a check's declaration lets its groups be named.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from deltacheck.config import Environment
from deltacheck.delta.commit import Statement, Tag, commit
from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.delta.session import aside
from deltacheck.errors import DeltacheckError
from deltacheck.ledger.tables import (
    create_table,
    frame_of,
    own_properties,
    read_rows,
    schema_of,
    sql_time,
)
from deltacheck.names import TableName, literal, split_path

_warnings = logging.getLogger("deltacheck")

LOG = "a quality log"
"""What the table is."""

RULE, CHECK, BATCH, HARVEST = "rule", "check", "batch", "harvest"
"""What a line is about: a rule's rows, a check of a table, a batch as a whole; or that a table's
history has been read up to a version."""

WRITE, GUARD = "write", "guard"
"""What the log calls a wrapped write, and one of the job's own that is guarded."""

_WRITES = f"({literal(WRITE)}, {literal(GUARD)})"

_DIRECT = f"source IN {_WRITES} AND table_id IS NULL"
"""SQL for lines of writes that told themselves what became of them: only a history is read
together with the table's id."""

_APPEND_TRIES = 5


@dataclass(frozen=True)
class Line:
    """One line of the log. Times are UTC.

    Attributes:
        at: When the run or the write began.
        table: The table, as declared.
        rule: The rule or the check; None: the batch as a whole.
        table_id: Delta's own id of the table; another one means that it was made anew.
        kind: ``rule``, ``check``, ``batch`` or ``harvest``.
        expression: What was tested, in one line.
        action: What its failure means: fail, quarantine, drop or warn.
        state: passed, failed or unjudged; of a harvest: done.
        rows: Rows looked at; ``passed`` and ``failed`` are those among them.
        figure: What was measured, where something was.
        group: A digest of the group of rows, where the check has groups.
        group_name: The group by its values, where the declaration lets it be named.
        source: check, upgrade, write or guard.
        run: The run of checks, the upgrade, or the attempt at writing a batch.
        version: The table's version that was looked at, or that a batch made, where a look at
            its history was taken.
        message: The figures in words; of a harvest: which versions it came too late for.
        owner: Who answers for it.
    """

    at: datetime
    environment: str
    table: str
    kind: str
    state: str
    table_id: str | None = None
    rule: str | None = None
    expression: str | None = None
    action: str | None = None
    rows: int | None = None
    passed: int | None = None
    failed: int | None = None
    figure: float | None = None
    group: str | None = None
    group_name: str | None = None
    source: str | None = None
    run: str | None = None
    batch: str | None = None
    job: str | None = None
    revision: str | None = None
    version: int | None = None
    message: str | None = None
    owner: str | None = None


SCHEMA = schema_of(Line)


@dataclass(frozen=True)
class Series:
    """Figures of earlier runs of one check that can be compared.

    Attributes:
        runs: At most so many of the last runs are wanted.
        since: And all since then.
    """

    table: str
    rule: str
    expression: str
    runs: int
    since: datetime


@dataclass(frozen=True)
class Figure:
    """A figure of an earlier run.

    Attributes:
        group: The digest of its group; empty where the check has none.
    """

    at: datetime
    group: str
    value: float


def log_name(environment: Environment) -> TableName:
    """Where an environment's quality log is."""
    return TableName((*split_path(environment.schema), "quality_log"))


def log_exists(session: SparkSession, environment: Environment) -> bool:
    """Whether there is a log yet. Writes nothing.

    Raises:
        LedgerError: A newer deltacheck wrote it, or the table is not a quality log.
    """
    return own_properties(session, log_name(environment), LOG) is not None


def read_log(
    session: SparkSession, environment: Environment, since: datetime | None = None
) -> tuple[Line, ...]:
    """All lines, oldest first; none where there is no log yet. Writes nothing.

    Environments that share a ledger share its log: these are the lines of all.

    Args:
        since: In UTC; only lines from then on. None: all.

    Raises:
        LedgerError: A newer deltacheck wrote it, or the table is not a quality log.
    """
    if not log_exists(session, environment):
        return ()
    log = session.table(log_name(environment).sql)
    if since is not None:
        log = log.where(f"at >= {sql_time(since)}")
    rows = read_rows(log, SCHEMA)
    return tuple(sorted((Line(**values) for values in rows), key=lambda line: line.at))


def read_figures(
    session: SparkSession, environment: Environment, wanted: Iterable[Series]
) -> dict[Series, tuple[Figure, ...]]:
    """The figures of earlier runs of some checks, in one pass over the log. Writes nothing.

    Raises:
        LedgerError: As for ``read_log``.
    """
    series = list(wanted)
    if not series or not log_exists(session, environment):
        return dict.fromkeys(series, ())
    meant = " OR ".join(
        f"(lower(`table`) = {literal(one.table.lower())} AND lower(rule) = "
        f"{literal(one.rule.lower())} AND expression = {literal(one.expression)})"
        for one in series
    )
    runs = max(one.runs for one in series)
    since = min(one.since for one in series)
    rows = session.sql(
        "SELECT lower(`table`) AS t, lower(rule) AS r, expression AS e, "
        "coalesce(`group`, '') AS g, at, figure, row_number() OVER (PARTITION BY lower(`table`), "
        "lower(rule), expression, `group` ORDER BY at DESC) AS back "
        f"FROM {log_name(environment).sql} WHERE figure IS NOT NULL AND source = 'check' "
        f"AND environment = {literal(environment.name)} AND ({meant})"
    ).where(f"back <= {runs} OR at >= {sql_time(since)}")
    found: dict[tuple[str, str, str], list[Figure]] = {}
    for values in read_rows(rows, rows.schema):
        key = (values["t"], values["r"], values["e"])
        figure = Figure(values["at"], values["g"], values["figure"])
        found.setdefault(key, []).append(figure)
    return {
        one: tuple(found.get((one.table.lower(), one.rule.lower(), one.expression), ()))
        for one in series
    }


def harvested(session: SparkSession, environment: Environment) -> dict[str, int]:
    """Delta's own id of a table to the version up to which its history is in the log.

    Raises:
        LedgerError: As for ``read_log``.
    """
    if not log_exists(session, environment):
        return {}
    rows = session.sql(
        f"SELECT table_id, max(version) AS version FROM {log_name(environment).sql} "
        f"WHERE kind = {literal(HARVEST)} AND environment = {literal(environment.name)} "
        "GROUP BY table_id"
    )
    return {row["table_id"]: row["version"] for row in rows.collect()}


def told_by_writers(
    session: SparkSession, environment: Environment, since: datetime
) -> frozenset[str]:
    """The attempts at writing a batch that logged what became of it themselves.

    Args:
        since: In UTC; of those that began before nothing is said.

    Raises:
        LedgerError: As for ``read_log``.
    """
    if not log_exists(session, environment):
        return frozenset()
    rows = session.sql(
        f"SELECT run FROM {log_name(environment).sql} WHERE kind = {literal(BATCH)} AND {_DIRECT} "
        f"AND environment = {literal(environment.name)} "
        f"AND at >= {sql_time(since)}"
    )
    return frozenset(row["run"] for row in rows.collect())


def append_lines(
    session: SparkSession, environment: Environment, lines: Sequence[Line], tag: Tag
) -> None:
    """Append lines to the log, in one commit; makes the log where there is none yet.

    Raises:
        LedgerError: As for ``read_log``.
        PySparkException, Py4JJavaError: It cannot be written.
    """
    if not lines:
        return
    name = log_name(environment)
    if not log_exists(session, environment):
        comment = "What passed and what failed; append-only"
        # Its statement takes its tag from the session's settings, which other threads share.
        with aside(session) as other:
            create_table(other, environment, name, SCHEMA, comment)
    commit(session, name, frame_of(session, lines, SCHEMA), tag=tag, tries=_APPEND_TRIES)


@contextmanager
def warned_where_unlogged(environment: Environment, subject: object, what: str) -> Iterator[None]:
    """Warn where the log cannot be read or written, and let nothing else suffer from it.

    Args:
        subject: What it was about: a table, an environment.
        what: What is then not in the log.
    """
    try:
        yield
    except (DeltacheckError, *EngineFailure) as error:
        why = error.code if isinstance(error, DeltacheckError) else failure_of(error).kind
        place = log_name(environment)
        _warnings.warning("%s: %s could not be logged in %s (%s)", subject, what, place, why)


def trim_log(
    session: SparkSession,
    environment: Environment,
    before: datetime,
    tag: Tag,
    tables: Iterable[str] | None = None,
) -> int:
    """Delete lines of an environment that are older.

    How far the history of each table has been read is kept.

    Args:
        before: In UTC.
        tables: Only lines of these tables, as declared; None: of all, those that are declared
            no more among them.

    Returns:
        How many lines are gone.

    Raises:
        LedgerError: As for ``read_log``.
        PySparkException, Py4JJavaError: The log cannot be written.
    """
    if not log_exists(session, environment):
        return 0
    name = log_name(environment)
    older = f"at < {sql_time(before)} AND environment = {literal(environment.name)}"
    if tables is not None:
        names = ", ".join(literal(one.lower()) for one in tables)
        older += f" AND lower(`table`) IN ({names})" if names else " AND false"
    marks = session.sql(
        f"SELECT environment, table_id, max(version) AS version FROM {name.sql} "
        f"WHERE kind = {literal(HARVEST)} GROUP BY environment, table_id"
    ).collect()
    last = [
        f"(environment = {literal(row['environment'])} AND table_id = {literal(row['table_id'])} "
        f"AND version = {row['version']})"
        for row in marks
    ]
    kept = f"kind = {literal(HARVEST)} AND ({' OR '.join(last) or 'false'})"
    delete = Statement(f"DELETE FROM {name.sql} WHERE {older} AND NOT ({kept})")
    found = commit(session, name, delete, tag=tag, tries=_APPEND_TRIES)
    return sum(int(row[0]) for row in found)


def log_frame(
    session: SparkSession, environment: Environment, more: Sequence[Line] = ()
) -> DataFrame:
    """An environment's log as a DataFrame, with lines that are not in it yet. Writes nothing.

    A write is there once: as it told itself, else as the history does, even where two runs
    harvested it at the same time.

    Raises:
        LedgerError: As for ``read_log``.
    """
    rows = frame_of(session, more, SCHEMA).rows
    if log_exists(session, environment):
        rows = session.table(log_name(environment).sql).select(*SCHEMA.names).unionByName(rows)
    rows = rows.where(f"environment = {literal(environment.name)}")
    write = f"(source IN {_WRITES} AND kind <> {literal(HARVEST)})"
    first = "row_number() OVER (PARTITION BY run, kind, lower(rule) ORDER BY table_id IS NOT NULL)"
    writes = rows.where(write).selectExpr("*", f"{first} AS _first").where("_first = 1")
    others = rows.where(f"NOT coalesce({write}, false) AND kind <> {literal(HARVEST)}")
    return writes.drop("_first").unionByName(others)


def once(lines: Iterable[Line]) -> list[Line]:
    """Lines of the log and of histories, each write told once, as in ``log_frame``."""
    found: dict[object, Line] = {}
    for place, line in enumerate(lines):
        write = line.source in (WRITE, GUARD) and line.kind != HARVEST
        name = (line.rule or "").lower()
        key = (line.environment, line.run, line.kind, name) if write else place
        if key not in found or (found[key].table_id is not None and line.table_id is None):
            found[key] = line
    return list(found.values())
