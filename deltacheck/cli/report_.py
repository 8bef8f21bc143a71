"""``deltacheck report``: one page that says what came in, what was rejected, what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer
from rich.text import Text

from deltacheck.cli.documents import DayDocument, ReportDocument, TableReportDocument
from deltacheck.cli.options import AsJson, Env, ProjectFolder, Quiet, Verbose
from deltacheck.cli.output import grid, out, print_json, reporting, rows_of

if TYPE_CHECKING:
    from deltacheck.report.facts import Day, Report, TableFacts

Out = Annotated[
    Optional[Path],  # noqa: UP045  (typer reads annotations at run time on Python 3.10)
    typer.Option("--out", metavar="FILE", help="Write the page, as HTML that needs no network."),
]
Prometheus = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--prometheus", metavar="FILE", help="Write the figures as Prometheus reads them."
    ),
]
Days = Annotated[
    int, typer.Option("--days", metavar="N", min=1, help="How many days back it looks.")
]


def add_to(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("report")(report)


def report(
    page: Out = None,
    prometheus: Prometheus = None,
    days: Days = 30,
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Say what came in, what was rejected, and on which day what was wrong.

    Reads the quality log, the tables' history, their rules, their quarantines and the journal;
    writes to no table but the log, as `check` does.
    """
    from deltacheck.report import api

    with reporting(env, project, verbose, quiet or as_json) as tell:
        found = api.report(
            page, prometheus=prometheus, days=days, env=env, project=project, progress=tell
        )
    if as_json:
        print_json(report_document(found))
        return
    _print(found)
    for path in (page, prometheus):
        if path is not None:
            out().print(Text(f"wrote {path}"))


def _print(found: Report) -> None:
    console = out()
    wrong = found.wrong_days
    if not wrong:
        console.print(f"{found.environment}: nothing was wrong in the last {found.days} days.")
    else:
        table = grid("day", "table", "check", "message")
        for one, day in wrong:
            for check, why in day.wrong.items():
                table.add_row(day.day.isoformat(), Text(one.table), Text(check), Text(why))
            for why in day.stops:
                table.add_row(day.day.isoformat(), Text(one.table), "(stopped)", Text(why))
        console.print(table)
    for one in found.tables:
        if one.problem:
            console.print(Text(one.problem, style="bold red"))
        console.print(
            Text(
                f"{one.table}: {rows_of(one.rows)} came in, {one.bad:,} of them bad; "
                f"{'?' if one.held is None else format(one.held.rows, ',')} held in quarantine"
            )
        )


def report_document(found: Report) -> ReportDocument:
    """The JSON document of ``report``."""
    return {
        "environment": found.environment,
        "at": found.at.isoformat(),
        "days": found.days,
        "tables": [_table_document(one) for one in found.tables],
        "runs": [
            {
                "run": run.run,
                "command": run.command,
                "state": run.state,
                "began": run.started.isoformat(),
                "revisions": list(run.revisions),
                "tables": [str(touched.table) for touched in run.tables],
            }
            for run in found.runs
        ],
        "check_runs": [
            {
                "run": run.run,
                "at": run.at.isoformat(),
                "tables": list(run.tables),
                "states": dict(run.states),
            }
            for run in found.check_runs
        ],
    }


def _table_document(one: TableFacts) -> TableReportDocument:
    from deltacheck.report.facts import Holding

    held = one.held or Holding()
    return {
        "table": one.table,
        "owners": list(one.owners),
        "days": [_day_document(day) for day in one.days],
        "checks": [
            {
                "check": line.rule or "",
                "state": line.state,
                "message": line.message or "",
                "at": line.at.isoformat(),
            }
            for line in one.checks
        ],
        "rules": {rule.rule: rule.state for rule in one.rules},
        "violators": {rule: line.failed for rule, line in one.counted.items()},
        "held": None if one.held is None else held.rows,
        "oldest": None if held.oldest is None else held.oldest.isoformat(),
        "ages": dict(held.ages),
        "broken": dict(held.rules),
        "problem": one.problem,
        "gaps": list(one.gaps),
    }


def _day_document(day: Day) -> DayDocument:
    return {
        "day": day.day.isoformat(),
        "verdict": day.verdict,
        "batches": day.batches,
        "rows": day.rows,
        "bad": day.bad,
        "failed": dict(day.failed),
        "wrong": day.wrong,
        "warned": day.warned,
        "stops": list(day.stops),
    }
