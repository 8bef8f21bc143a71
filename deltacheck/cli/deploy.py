"""The commands that look at an environment's tables, and those that change them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from deltacheck.cli.options import (
    AsJson,
    Env,
    LockTimeout,
    Owners,
    ProjectFolder,
    Quiet,
    Tags,
    Verbose,
)
from deltacheck.cli.output import err, out, print_json, reporting, rows_of
from deltacheck.cli.show import print_run, print_sql, print_status

if TYPE_CHECKING:
    from deltacheck.migrate.results import RunResult

Target = Annotated[str, typer.Argument(help="head, base, +1, -1, a revision or a prefix of one.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Look and count; write nothing.")]
Check = Annotated[bool, typer.Option("--check", help="Exit with 3 where not all is in sync.")]
Deadline = Annotated[
    Optional[float],  # noqa: UP045  (typer reads annotations at run time on Python 3.10)
    typer.Option("--deadline", metavar="SECONDS", help="Go on so long on a busy table."),
]
Patterns = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--table", metavar="GLOB", help="Only tables that match; may be repeated."),
]
PlanOut = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--out", metavar="FILE", help="Write the plan, for `upgrade --plan FILE`."),
]
PlanIn = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--plan", metavar="FILE", help="Refuse to run unless this plan still holds."),
]
Column = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--column", metavar="NAME", help="Only rules that read this column."),
]
Repair = Annotated[
    bool, typer.Option("--repair", help="Add drifted constraints again, in the same way.")
]
Restore = Annotated[
    bool,
    typer.Option("--restore-quarantined", help="Also bring the rows back that they had moved."),
]
Sql = Annotated[bool, typer.Option("--sql", help="Print the statements; touch no table.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Move rows without asking.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("plan")(plan)
    app.command("upgrade")(upgrade)
    app.command("downgrade")(downgrade)
    app.command("status")(status)
    app.command("current")(current)
    app.command("unlock")(unlock)


def plan(
    target: Target = "head",
    check: Check = False,
    repair: Repair = False,
    to_file: PlanOut = None,
    tables: Patterns = None,
    tags: Tags = None,
    owners: Owners = None,
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> int:
    """Show what an upgrade would find, move and enforce; write to no table."""
    from deltacheck.migrate import api

    with reporting(env, project, verbose, quiet or as_json) as tell:
        result = api.plan(
            target,
            env=env,
            project=project,
            repair=repair,
            tables=tables or (),
            tags=tags or (),
            owners=owners or (),
            out=to_file,
            progress=tell,
        )
    print_run(result, as_json=as_json)
    return 3 if check and not result.nothing_to_do else 0


def upgrade(
    target: Target = "head",
    dry_run: DryRun = False,
    repair: Repair = False,
    plan_file: PlanIn = None,
    sql: Sql = False,
    tables: Patterns = None,
    tags: Tags = None,
    owners: Owners = None,
    yes: Yes = False,
    deadline: Deadline = None,
    lock_timeout: LockTimeout = 0.0,
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Count the rows that break new rules, move them to quarantine, then enforce the rules."""
    from deltacheck.migrate import api

    with reporting(env, project, verbose, quiet or as_json) as tell:
        if sql:
            text = api.sql(
                target,
                env=env,
                project=project,
                tables=tables or (),
                tags=tags or (),
                owners=owners or (),
                progress=tell,
            )
        else:
            result = api.upgrade(
                target,
                env=env,
                project=project,
                dry_run=dry_run,
                repair=repair,
                tables=tables or (),
                tags=tags or (),
                owners=owners or (),
                plan=plan_file,
                lock_timeout=lock_timeout,
                deadline=deadline,
                review=None if yes or not sys.stdin.isatty() else ask_before_moving,
                progress=tell,
            )
    if sql:
        print_sql(text, as_json=as_json)
    else:
        print_run(result, as_json=as_json)


def ask_before_moving(plan: RunResult) -> None:
    """Ask the person at the terminal before rows are moved.

    Raises:
        click.Abort: The answer is no; nothing was changed.
    """
    for outcome in plan.tables:
        if outcome.moved:
            err().print(
                f"{outcome.table}: {rows_of(outcome.moved)} of {outcome.before:,} break the new "
                f"rules and will be moved to {outcome.quarantine}."
            )
    if any(outcome.moved for outcome in plan.tables):
        typer.confirm("Move them?", abort=True, err=True)


def downgrade(
    target: Target,
    dry_run: DryRun = False,
    restore_quarantined: Restore = False,
    lock_timeout: LockTimeout = 0.0,
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Drop what the revisions after TARGET added; quarantined rows stay where they are."""
    from deltacheck.migrate import api

    with reporting(env, project, verbose, quiet or as_json) as tell:
        result = api.downgrade(
            target,
            env=env,
            project=project,
            dry_run=dry_run,
            restore_quarantined=restore_quarantined,
            lock_timeout=lock_timeout,
            progress=tell,
        )
    print_run(result, as_json=as_json)


def status(
    check: Check = False,
    tables: Patterns = None,
    tags: Tags = None,
    owners: Owners = None,
    column: Column = None,
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> int:
    """List every rule of every table and how things stand; write nothing.

    Of a rule that has drifted it says why: the commit of the table's history that did it.
    """
    from deltacheck.migrate import api

    with reporting(env, project, verbose, quiet or as_json) as tell:
        found = api.status(
            env=env,
            project=project,
            tables=tables or (),
            tags=tags or (),
            owners=owners or (),
            column=column,
            progress=tell,
        )
    print_status(found, as_json=as_json)
    return 3 if check and not found.in_sync else 0


def current(
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Say which revision an environment is at; write nothing."""
    from deltacheck.migrate import api

    with reporting(env, project, verbose, quiet or as_json) as tell:
        found = api.current(env=env, project=project, progress=tell)
    if as_json:
        print_json({"environment": found.environment, "current": found.revision})
    else:
        out().print(found.revision or "base: nothing is applied")


def unlock(
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Break the lock of an environment; a run that holds it cannot go on."""
    from deltacheck.migrate import api

    with reporting(env, project, verbose, quiet or as_json) as tell:
        broken = api.unlock(env=env, project=project, progress=tell)
    if as_json:
        print_json({"broken": broken})
    else:
        out().print("No run holds the lock." if broken is None else f"Broke the lock of {broken}.")
