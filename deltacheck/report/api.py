"""``deltacheck report`` as a Python function: reads what is known, and writes files alone."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from datetime import timedelta
from glob import escape
from pathlib import Path

from pyspark.sql import SparkSession

from deltacheck.delta.commit import Tag
from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.delta.log import quiet_query_loggers
from deltacheck.errors import TableError, UsageError
from deltacheck.ledger.journal import now, read_journal
from deltacheck.ledger.quality_log import (
    BATCH,
    HARVEST,
    Line,
    append_lines,
    log_name,
    once,
    read_log,
)
from deltacheck.ledger.upkeep import TRIM, compact_where_many
from deltacheck.migrate.api import Given, read_project
from deltacheck.migrate.status import RuleStatus, read_status
from deltacheck.names import TableName
from deltacheck.quality.gather import problem_of
from deltacheck.quality.passes import harvest
from deltacheck.quarantine.holding import Desk, Progress, Selection, desk, holding
from deltacheck.quarantine.listing import Held, count_held
from deltacheck.report.facts import Report, report_of
from deltacheck.report.metrics import metrics
from deltacheck.report.page import page
from deltacheck.revisions.state import state_after
from deltacheck.rules.model import TableRules
from deltacheck.rules.selection import Selection as Declared

log = logging.getLogger("deltacheck")

STEP = "report"
"""What a commit to the log says of itself that took in what a report found."""


def report(
    out: Path | str | None = None,
    *,
    prometheus: Path | str | None = None,
    days: int = 30,
    env: str | None = None,
    project: Path | str = ".",
    session: SparkSession | None = None,
    progress: Progress = lambda _: None,
) -> Report:
    """Put together what came in, what was rejected, and what is wrong.

    Writes to no table but deltacheck's own log, into which it takes the passes of wrapped writes
    before the tables' history forgets them. A table that cannot be looked at is told as such,
    and spoils no other.

    Args:
        out: A file for the page, which needs no network.
        prometheus: A file for the figures, as Prometheus reads them. It is there whole or as it
            was before, for those who read it meanwhile.
        days: How many days back it looks, today among them.
        env: The environment's name; default: the project's default.
        project: The project's folder.
        session: A session to use instead of the environment's own.
        progress: Told in a few words what is done.

    Returns:
        What the page says, as values; none of them is a value of a row, but for groups that a
        declaration lets be named.

    Raises:
        UsageError: A file cannot be written.
        DeltacheckError: See ``deltacheck.errors``.
    """
    given = read_project(project, env)
    with desk(session, env, project, progress) as on, quiet_query_loggers():
        progress("Reading what is known")
        found = _read(on, given, days)
    if out is not None:
        _write(Path(out), page(found))
    if prometheus is not None:
        _write(Path(prometheus), metrics(found))
    return found


def _read(on: Desk, given: Given, days: int) -> Report:
    at = now()
    names = sorted({*given.rules, *state_after(given.history.revisions)}, key=str)
    rules, problems = _rules(on, given, names)
    # What a write told of itself is a little older than what the history tells of it.
    logged = read_log(on.session, given.environment, at - timedelta(days=days + 1))
    declared = [given.rules.get(name, TableRules(name, ())) for name in names]
    base = Line(at, given.environment.name, "", BATCH, "")
    found = harvest(on.session, given.environment, declared, base)
    for name, problem in found.problems.items():
        problems.setdefault(str(name), problem_of(problem, name))
    held: list[Held] = []
    for name in names:
        try:
            held += count_held(holding(on, name), Selection())
        except (TableError, *EngineFailure) as error:
            problems.setdefault(str(name), problem_of(error, name))
    _keep(on, given, found.lines)
    return report_of(
        given.environment.name,
        at,
        rules=rules,
        lines=once([*logged, *found.lines]),
        held=held,
        runs=read_journal(on.session, given.environment).runs,
        problems=problems,
        days=days,
    )


def _keep(on: Desk, given: Given, lines: Sequence[Line]) -> None:
    """Put passes into the log; whoever may not write it gets the report all the same."""
    if all(line.kind == HARVEST and line.message is None for line in lines):
        return
    try:
        append_lines(on.session, given.environment, lines, Tag(step=STEP))
        compact_where_many(on.session, given.environment, Tag(step=TRIM))
    except EngineFailure as error:
        log.warning(
            "%s could not be written (%s); a later run takes in what was found",
            log_name(given.environment),
            failure_of(error).kind,
        )


def _rules(
    on: Desk, given: Given, names: Iterable[TableName]
) -> tuple[list[RuleStatus], dict[str, str]]:
    """How things stand with the rules of all tables, and table to why that cannot be told."""
    known = (on.session, given.environment, given.history, given.rules)
    try:
        return list(read_status(*known).rules), {}
    except (TableError, *EngineFailure):
        # One of them: which, is seen when each is looked at by itself.
        pass
    found: list[RuleStatus] = []
    problems: dict[str, str] = {}
    for name in names:
        try:
            found += read_status(*known, Declared(tables=(escape(str(name)),))).rules
        except (TableError, *EngineFailure) as error:
            problems[str(name)] = problem_of(error, name)
    return found, problems


def _write(path: Path, text: str) -> None:
    """Write a file: whoever reads it meanwhile finds it whole, or as it was before."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise UsageError(
            f"{path} cannot be written: {error.strerror}.", hint="Name another file."
        ) from None
