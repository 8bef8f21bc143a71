"""The commands about files alone: they start no JVM."""

from __future__ import annotations

from pathlib import Path

import typer

from deltacheck.cli.options import AsJson, ProjectFolder
from deltacheck.cli.output import err, grid, out, print_json
from deltacheck.config import load_project
from deltacheck.revisions.files import load_history


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("history")(history)


def history(project: ProjectFolder = Path(), as_json: AsJson = False) -> None:
    """List the migrations, newest first."""
    found = load_history(load_project(project).versions)
    heads = set(found.heads)
    if as_json:
        print_json(
            {
                "heads": list(found.heads),
                "revisions": [
                    {
                        "revision": one.revision,
                        "down_revision": list(one.down_revision),
                        "message": one.message,
                        "file": None if one.path is None else str(one.path),
                        "head": one.revision in heads,
                    }
                    for one in reversed(found.revisions)
                ],
            }
        )
        return
    if not found.revisions:
        err().print("There is no migration yet.")
        return
    table = grid("revision", "follows", "what it does")
    for one in reversed(found.revisions):
        name = f"{one.revision} (head)" if one.revision in heads else one.revision
        table.add_row(name, ", ".join(one.down_revision) or "-", one.message)
    out().print(table)
