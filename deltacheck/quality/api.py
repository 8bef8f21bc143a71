"""``deltacheck check`` as a Python function. The command line is thin over it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession

from deltacheck.config import load_project
from deltacheck.errors import UsageError
from deltacheck.quality.check import run_checks
from deltacheck.quality.results import Checked
from deltacheck.quarantine.holding import Progress, desk
from deltacheck.rules.files import read_rules
from deltacheck.rules.selection import Selection


def check(
    *tables: str,
    tags: Iterable[str] = (),
    owners: Iterable[str] = (),
    env: str | None = None,
    project: Path | str = ".",
    session: SparkSession | None = None,
    progress: Progress = lambda _: None,
) -> Checked:
    """Run the checks of tables, and count the rows that break rules not enforced yet.

    Writes what passed and what failed to the quality log, and nothing else.

    Args:
        tables: Only tables that match one of these patterns (``shop.*``).
        tags: Only checks and rules that have one of these tags, or whose table has.
        owners: Only checks and rules that one of these answers for.
        env: The environment's name; default: the project's default.
        project: The project's folder.
        session: A session to use instead of the environment's own.
        progress: Told in a few words what is done.

    Returns:
        What came of each check; ``failed`` tells whether one stops a deploy.

    Raises:
        UsageError: No table of ``constraints/`` matches.
        DeltacheckError: See ``deltacheck.errors``.
    """
    found = load_project(project)
    environment = found.environment(env)
    rules = read_rules(found.constraints) if found.constraints.is_dir() else {}
    selection = Selection(tuple(tables), tuple(tags), tuple(owners))
    if tables and not any(selection.has_table(name) for name in rules):
        raise UsageError(
            f"No table of {found.constraints} matches {', '.join(tables)}; nothing was checked.",
            hint="Name tables as they are declared, or patterns such as shop.*.",
        )
    with desk(session, env, project, progress) as on:
        return run_checks(on, environment, rules, selection)
