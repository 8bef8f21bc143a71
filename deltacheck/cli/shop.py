"""``deltacheck demo``: the worked example, end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from deltacheck.cli.options import Quiet
from deltacheck.cli.output import out, progress, rows_of
from deltacheck.cli.show import print_run, print_status


def add_to(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("demo")(demo)


Folder = Annotated[Path, typer.Argument(metavar="[FOLDER]", help="A new folder to make it in.")]


def demo(folder: Folder = Path("deltacheck-demo"), quiet: Quiet = False) -> None:
    """Run the worked example in a new folder: an orders shop with bad rows."""
    from deltacheck.demo import shop
    from deltacheck.migrate import api
    from deltacheck.writing.write import write

    shop.make_project(folder)
    with progress(shown=not quiet) as tell:
        tell("Starting Spark (the first time it fetches Delta's jars)")
        session = api.session(project=folder)
        tell("Making two Delta tables with bad rows in them")
        shop.fill_tables(session)
        before = {name: session.table(name).count() for name in ("shop.customers", "shop.orders")}
        _say(
            "An orders shop",
            f"shop.customers has {rows_of(before['shop.customers'])}, shop.orders "
            f"{rows_of(before['shop.orders'])}; some of them are bad. constraints/ says what a "
            "good row is, versions/ carries it to the tables.",
        )
        result = api.upgrade(project=folder, session=session, progress=tell)
        _say("deltacheck upgrade", "counts the bad rows, moves them to quarantine, then enforces:")
        print_run(result)
        found = api.status(project=folder, session=session)
        _say("deltacheck status", "lists every rule and how things stand:")
        print_status(found)
        _say("In a job", 'deltacheck.write(df, "shop.orders") appends a batch:')
        good = write(shop.batch(session, "good"), "shop.orders", job="demo")
        out().print(f"  a good batch: {rows_of(good.written or 0)} written, version {good.version}")
        bad = write(shop.batch(session, "bad"), "shop.orders", job="demo")
        reasons = ", ".join(f"{rule} ({rows_of(rows)})" for rule, rows in bad.broken.items())
        out().print(
            f"  a bad batch: nothing written, {rows_of(bad.quarantined)} wait in {bad.quarantine}; "
            f"Delta named {bad.rule}, broken are {reasons}"
        )
    _say("Go on", f"cd {folder}; deltacheck status; deltacheck check; deltacheck quarantine list")


def _say(head: str, text: str) -> None:
    line = Text(f"\n{head}", style="bold")
    line.append(f"  {text}", style="not bold")
    out().print(line)
