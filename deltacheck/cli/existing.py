"""The commands for tables that were there before deltacheck: stamp and baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deltacheck.cli.documents import StampDocument
from deltacheck.cli.options import AsJson, Env, LockTimeout, ProjectFolder, Quiet, Verbose
from deltacheck.cli.output import out, print_json, reporting

At = Annotated[
    str, typer.Argument(metavar="REVISION", help="head, base, a revision or its beginning.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("stamp")(stamp)


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
