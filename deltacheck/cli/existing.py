"""The commands for tables that were there before deltacheck: stamp and baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer
from rich.text import Text

from deltacheck.cli.documents import BaselineDocument, StampDocument
from deltacheck.cli.options import AsJson, Env, LockTimeout, ProjectFolder, Quiet, Verbose
from deltacheck.cli.output import grid, out, print_json, reporting

if TYPE_CHECKING:
    from deltacheck.migrate.baseline import Baseline

At = Annotated[
    str, typer.Argument(metavar="REVISION", help="head, base, a revision or its beginning.")
]

Named = Annotated[
    Optional[list[str]],  # noqa: UP045  (typer reads annotations at run time on Python 3.10)
    typer.Argument(metavar="[TABLE]...", help="The tables whose constraints are taken over."),
]
Schema = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--schema", metavar="NAME", help="All Delta tables of a schema instead."),
]
Message = Annotated[
    str, typer.Option("--message", "-m", metavar="TEXT", help="What the revision is for.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("stamp")(stamp)
    app.command("baseline")(baseline)


def stamp(
    revision: At,
    lock_timeout: LockTimeout = 0.0,
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Record that an environment is at REVISION, without running anything.

    REVISION and all that it builds on count as applied, all others as not applied. No table is
    touched: `deltacheck status` tells whether they agree.
    """
    from deltacheck.migrate import api

    with reporting(env, project, verbose, quiet or as_json) as tell:
        done = api.stamp(
            revision, env=env, project=project, lock_timeout=lock_timeout, progress=tell
        )
    if as_json:
        document: StampDocument = {
            "environment": done.environment,
            "run": done.run,
            "before": done.before,
            "current": done.current,
            "stamped": list(done.stamped),
            "reverted": list(done.reverted),
        }
        print_json(document)
        return
    at = done.current or "base"
    if done.run is None:
        out().print(f"Nothing to do: {done.environment} is at {at}.")
        return
    for verb, revisions in (("applied", done.stamped), ("not applied", done.reverted)):
        if revisions:
            out().print(f"recorded as {verb}: {', '.join(revisions)}")
    out().print(f"{done.environment} is at {at}; no table was touched.")


def baseline(
    tables: Named = None,
    schema: Schema = None,
    message: Message = "baseline",
    lock_timeout: LockTimeout = 0.0,
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Take over the constraints that tables have already.

    Writes constraints/*.yml and a revision for the CHECK and NOT NULL constraints found, and
    records the revision as applied. No table is touched. In a further environment whose tables
    have them as well, `deltacheck stamp` records the revision.
    """
    from deltacheck.migrate import api

    with reporting(env, project, verbose, quiet or as_json) as tell:
        done = api.baseline(
            tables or (),
            schema=schema,
            message=message,
            env=env,
            project=project,
            lock_timeout=lock_timeout,
            progress=tell,
        )
    if as_json:
        print_json(_baseline_document(done))
    else:
        _print_baseline(done)


def _print_baseline(done: Baseline) -> None:
    if done.taken:
        table = grid("table", "rule", "expression", "enforced by")
        before = None
        for one in done.taken:
            by = "CHECK" if one.enforced_by == "check" else "NOT NULL"
            table.add_row(
                Text(str(one.table) if one.table != before else ""),
                Text(one.rule.name),
                Text(one.rule.expression),
                by,
            )
            before = one.table
        out().print(table)
    for left in done.left:
        what = f"{left.table}.{left.rule}" if left.rule else str(left.table)
        out().print(Text(f"left alone: {what}: {left.reason}", style="yellow"))
    for path in done.files:
        out().print(Text(f"made {path}"))
    if done.revision is None:
        out().print("Nothing to take over.")
    else:
        out().print(f"{done.environment} is at {done.revision}; no table was touched.")


def _baseline_document(done: Baseline) -> BaselineDocument:
    return {
        "environment": done.environment,
        "run": done.run,
        "revision": done.revision,
        "files": [path.as_posix() for path in done.files],
        "rules": [
            {
                "table": str(one.table),
                "rule": one.rule.name,
                "kind": "check" if one.rule.column is None else "not_null",
                "expression": one.rule.expression,
                "enforced_by": one.enforced_by,
            }
            for one in done.taken
        ],
        "left": [
            {"table": str(one.table), "rule": one.rule, "reason": one.reason} for one in done.left
        ],
    }
