"""``deltacheck quarantine``: what is held, and what becomes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from deltacheck.cli.options import AsJson, Env, ProjectFolder, Quiet, Verbose
from deltacheck.cli.output import count, grid, out, print_json, reporting


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(help="Quarantined rows.", no_args_is_help=True)
    group.command("list")(list_rows)
    app.add_typer(group, name="quarantine")


Tables = Annotated[
    Optional[list[str]],  # noqa: UP045  (typer reads annotations at run time on Python 3.10)
    typer.Argument(metavar="[TABLE]...", help="Only these tables; default: all of the project."),
]


def list_rows(
    tables: Tables = None,
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Count quarantined rows per table, rules, origin and state; write nothing."""
    from deltacheck.migrate import api

    with reporting(env, project, verbose, quiet or as_json) as tell:
        held = api.quarantined(tables, env=env, project=project, progress=tell)
    if as_json:
        print_json(
            {
                "held": [
                    {
                        "table": entry.table,
                        "quarantine": entry.quarantine,
                        "rules": list(entry.rules),
                        "source": entry.source,
                        "run": entry.run,
                        "state": entry.state,
                        "rows": entry.rows,
                        "oldest": entry.oldest.isoformat(),
                        "newest": entry.newest.isoformat(),
                    }
                    for entry in held
                ]
            }
        )
        return
    if not held:
        out().print("No row is quarantined.")
        return
    table = grid("table", "rules broken", "rows", "state", "by", "since (UTC)", right=("rows",))
    before = None
    for entry in held:
        table.add_row(
            entry.table if entry.table != before else "",
            ", ".join(entry.rules) or "none (good row of a bad batch)",
            count(entry.rows),
            entry.state,
            f"{entry.source} {entry.run}",
            f"{entry.oldest:%Y-%m-%d %H:%M}",
        )
        before = entry.table
    out().print(table)
