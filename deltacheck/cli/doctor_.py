"""``deltacheck doctor``: what works, what does not, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from deltacheck.cli.documents import DoctorDocument
from deltacheck.cli.options import AsJson, Env, ProjectFolder, Quiet, Verbose
from deltacheck.cli.output import grid, out, print_json, progress
from deltacheck.migrate.doctor import Health, examine

TryRights = Annotated[
    bool,
    typer.Option("--write", help="Try the rights: make a small table, write to it, drop it."),
]

_STYLES = {"ok": "green", "note": "yellow", "broken": "bold red", "skipped": "dim"}


def add_to(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("doctor")(doctor)


def doctor(
    write: TryRights = False,
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> int:
    """Check Java, Spark, Delta, the project, its tables and rights; exit with 1 if one is broken.

    Writes nothing without --write.
    """
    with progress(shown=not (quiet or as_json)) as tell:
        health = examine(project, env, write=write, progress=tell)
    if as_json:
        print_json(_document(health))
    else:
        _print(health, verbose=verbose, quiet=quiet)
    return 0 if health.healthy else 1


def _print(health: Health, *, verbose: bool, quiet: bool) -> None:
    table = grid("", "what", "message")
    for check in health.checks:
        if quiet and check.state != "broken":
            continue
        said = Text(check.found)
        if check.remedy and (verbose or check.state != "skipped"):
            said.append(f"\n{check.remedy}", style="dim")
        table.add_row(Text(check.state, style=_STYLES[check.state]), check.name, said)
    if table.row_count:
        out().print(table)
    if not quiet:
        out().print(
            "All is well." if health.healthy else Text("Something is broken.", style="bold red")
        )


def _document(health: Health) -> DoctorDocument:
    return {
        "environment": health.environment,
        "healthy": health.healthy,
        "checks": [
            {
                "name": check.name,
                "state": check.state,
                "found": check.found,
                "remedy": check.remedy,
            }
            for check in health.checks
        ],
    }
