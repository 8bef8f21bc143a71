"""``deltacheck report`` as a Python function: reads what is known, and writes files alone."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession

from deltacheck.delta.log import quiet_query_loggers
from deltacheck.delta.session import session_for
from deltacheck.errors import TableNotFoundError, UsageError
from deltacheck.ledger.journal import now, read_journal
from deltacheck.ledger.quality_log import BATCH, RULE, Line, read_log
from deltacheck.migrate.api import read_project, status
from deltacheck.quality.passes import unlogged
from deltacheck.quarantine.api import list_held
from deltacheck.quarantine.holding import Progress
from deltacheck.report.facts import Report, report_of
from deltacheck.report.metrics import metrics
from deltacheck.report.page import page


def report(
    out: Path | str | None = None,
    *,
    prometheus: Path | str | None = None,
    env: str | None = None,
    project: Path | str = ".",
    session: SparkSession | None = None,
    progress: Progress = lambda _: None,
) -> Report:
    """Put together what came in, what was rejected, and what is wrong.

    Writes to no table.

    Args:
        out: A file for the page, which needs no network.
        prometheus: A file for the figures, as Prometheus reads them.
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
    environment = given.environment
    with ExitStack() as stack:
        if session is None:
            progress("Starting Spark")
            session = stack.enter_context(session_for(environment))
        stack.enter_context(quiet_query_loggers())
        progress("Reading what is known")
        at = now()
        lines = list(read_log(session, environment))
        for name, declared in given.rules.items():
            base = Line(at, environment.name, str(name), BATCH, "")
            try:
                lines += unlogged(session, environment, declared, base)
            except TableNotFoundError:
                # Declared ahead of its making.
                continue
        found = report_of(
            environment.name,
            at,
            rules=status(env=env, project=project, session=session).rules,
            lines=_once(lines),
            held=list_held(env=env, project=project, session=session),
            runs=read_journal(session, environment).runs,
        )
    if out is not None:
        _write(Path(out), page(found))
    if prometheus is not None:
        _write(Path(prometheus), metrics(found))
    return found


def _once(lines: list[Line]) -> list[Line]:
    """The lines, a write that two runs harvested at the same time told once."""
    seen: dict[object, Line] = {}
    for place, line in enumerate(lines):
        written = line.source == "write" and line.kind in (RULE, BATCH)
        key = (line.table_id, line.version, line.kind, line.rule) if written else place
        seen.setdefault(key, line)
    return list(seen.values())


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}.", hint="Name another file."
        ) from None
