"""``deltacheck check`` and the quality log as Python functions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lower

from deltacheck.config import load_project
from deltacheck.delta.log import quiet_query_loggers
from deltacheck.delta.session import open_session
from deltacheck.errors import UsageError
from deltacheck.events import emit
from deltacheck.ledger.journal import now
from deltacheck.ledger.quality_log import BATCH, Line, log_frame
from deltacheck.names import TableName
from deltacheck.quality.check import is_asked_for, run_checks
from deltacheck.quality.events import events_of
from deltacheck.quality.passes import harvest
from deltacheck.quality.results import Checked
from deltacheck.quarantine.holding import Progress, desk
from deltacheck.rules.files import project_rules
from deltacheck.rules.model import RuleSet
from deltacheck.rules.quantities import Age
from deltacheck.rules.selection import Selection


def check(
    *tables: str,
    tags: Iterable[str] = (),
    owners: Iterable[str] = (),
    env: str | None = None,
    project: Path | str = ".",
    session: SparkSession | None = None,
    keep: str | None = None,
    keys: str | None = None,
    progress: Progress = lambda _: None,
) -> Checked:
    """Run the checks of tables, and count the rows that break rules not enforced yet.

    Writes what passed and what failed to the quality log, and nothing else but ``keys``.

    Args:
        tables: Only tables that match one of these patterns (``shop.*``).
        tags: Only checks and rules that have one of these tags, or whose table has.
        owners: Only checks and rules that one of these answers for.
        env: The environment's name; default: the project's default.
        project: The project's folder.
        session: A session to use instead of the environment's own.
        keep: For how long the log keeps its lines of the tables asked for, such as ``400d``;
            default: for good. What is older is deleted, and the small files of deltacheck's own
            tables are put together, which else is done where they are many.
        keys: A table to which the keys are appended that are not unique or not found in the
            table that they refer to: values of rows, which are told nowhere else. It is made
            where it is not there. Where it, or the log, cannot be written in the end,
            ``unwritten`` of what is returned says why.
        progress: Told in a few words what is done.

    Returns:
        What came of each check; ``failed`` tells whether one stops a deploy.

    Raises:
        UsageError: No table of ``constraints/`` is or matches one of ``tables``, or no check and
            no rule has a tag and an owner asked for.
        DeclarationError: ``keep`` is not a length of time; or a file is malformed.
        IdentifierError: ``keys`` is not the name of a table.
        LedgerError: ``keys`` is some other table, or cannot be made; nothing was checked.
        DeltacheckError: See ``deltacheck.errors``.
    """
    kept = None if keep is None else Age.parse(keep).length
    place = None if keys is None else TableName.parse(keys)
    found = load_project(project)
    environment = found.environment(env)
    rules = project_rules(found)
    selection = Selection(tuple(tables), tuple(tags), tuple(owners))
    _check_asked(selection, rules, found.constraints)
    with desk(session, env, project, progress) as on:
        checked = run_checks(on, environment, rules, selection, keep=kept, keys=place)
    for event in events_of(checked):
        emit(event, found.notify)
    return checked


def _check_asked(selection: Selection, rules: RuleSet, constraints: Path) -> None:
    """Whether there is what is asked for: a mistyped name must not pass for a check."""
    unknown = [one for one in selection.tables if not any(map(Selection((one,)).has_table, rules))]
    if unknown:
        raise UsageError(
            f"No table of {constraints} matches {', '.join(unknown)}; nothing was checked.",
            hint="Name tables as they are declared, or patterns such as shop.*.",
        )
    if selection.by_declaration and not any(is_asked_for(selection, one) for one in rules.values()):
        asked = ", ".join((*selection.tags, *selection.owners))
        raise UsageError(
            f"No check and no rule of {constraints} has what is asked for: {asked}; nothing was "
            "checked.",
            hint="See the tags and owners there.",
        )


def quality_log(
    *tables: str,
    env: str | None = None,
    project: Path | str = ".",
    session: SparkSession | None = None,
    view: str | None = None,
) -> DataFrame:
    """What passed and what failed: the log, and wrapped writes that are not in it yet.

    Writes nothing.

    Args:
        tables: Only tables that match one of these patterns (``shop.*``).
        env: The environment's name; default: the project's default.
        project: The project's folder.
        session: A session to use instead of the environment's own.
        view: The name of a temporary view to make of it, for SQL.

    Returns:
        One row for each rule, check or batch that was judged; see ``docs/quality.md``.

    Raises:
        DeltacheckError: See ``deltacheck.errors``.
    """
    declared = load_project(project)
    environment = declared.environment(env)
    rules = project_rules(declared)
    selection = Selection(tuple(tables))
    spark = open_session(environment) if session is None else session
    meant = [one for name, one in rules.items() if selection.has_table(name)]
    with quiet_query_loggers():
        base = Line(now(), environment.name, "", BATCH, "")
        # Rules may be declared ahead of their table.
        found = harvest(spark, environment, meant, base).of_tables_there()
        rows = log_frame(spark, environment, found)
    if tables:
        names = [str(one.table).lower() for one in meant]
        rows = rows.where(lower(col("table")).isin(names))
    if view is not None:
        rows.createOrReplaceTempView(view)
    return rows
