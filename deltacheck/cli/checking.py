"""``deltacheck check``: what passed and what failed, of tables as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer
from rich.table import Table as Grid
from rich.text import Text

from deltacheck.cli.documents import CheckDocument, CheckResultDocument
from deltacheck.cli.options import AsJson, Env, Owners, ProjectFolder, Quiet, Tags, Verbose
from deltacheck.cli.output import (
    error_body,
    grid,
    out,
    print_error,
    print_json,
    reporting,
    state,
)

if TYPE_CHECKING:
    from deltacheck.quality.results import Checked, CheckResult, Outcome, RuleCount

Patterns = Annotated[
    Optional[list[str]],  # noqa: UP045  (typer reads annotations at run time on Python 3.10)
    typer.Argument(metavar="[TABLE]...", help="Only tables that match, such as shop.*."),
]


Keep = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--keep",
        metavar="AGE",
        help="Delete lines of the log of these tables that are older: 400d.",
    ),
]


Keys = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--keys", metavar="TABLE", help="Append the keys of failed unique and references to it."
    ),
]


def add_to(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("check")(check)


def check(
    tables: Patterns = None,
    tags: Tags = None,
    owners: Owners = None,
    keep: Keep = None,
    keys: Keys = None,
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> int:
    """Run the checks of tables and log what passed and failed; exit with 4 where one fails.

    Also counts the rows that break a rule which Delta does not enforce: each warn rule, and
    each that an upgrade has still to add. Nothing is written but the quality log, and the
    table of --keys.
    """
    from deltacheck.quality import api

    with reporting(env, project, verbose, quiet or as_json) as tell:
        found = api.check(
            *(tables or ()),
            tags=tags or (),
            owners=owners or (),
            keep=keep,
            keys=keys,
            env=env,
            project=project,
            progress=tell,
        )
    if as_json:
        print_json(check_document(found))
    else:
        _print(found, quiet=quiet)
        for error in found.unwritten:
            print_error(error, as_json=False)
    if found.failed:
        return 4
    return found.unwritten[0].exit_code if found.unwritten else 0


def _print(found: Checked, *, quiet: bool) -> None:
    console = out()
    for name in found.missing:
        console.print(Text(f"{name}: there is no such table", style="bold red"))
    for problem in found.problems.values():
        console.print(Text(problem, style="bold red"))
    shown = [one for one in found.checks if not quiet or one.state == "failed"]
    if shown:
        console.print(_checks(shown))
    counted = [one for one in found.rules if not quiet or one.gated]
    if counted:
        console.print(_rules(counted))
    for gate in found.gates:
        if gate.gated:
            console.print(Text(f"{gate.table}: {gate.told}", style="bold red"))
    if not (found.checks or found.rules or found.missing or found.problems):
        what = "no check is declared, and Delta enforces every rule"
        if not found.selection.everything:
            what = "there is no such check, and no such rule that Delta does not enforce"
        console.print(f"{found.environment}: {what}.")
        return
    console.print(_summary(found))
    if found.keys is not None:
        console.print(Text(f"The keys of failed checks are in {found.keys}, run {found.run}."))


def _checks(found: list[CheckResult]) -> Grid:
    table = grid("table", "check", "state", "message")
    before = None
    for one in found:
        warned = one.state == "failed" and not one.stops
        table.add_row(
            Text(one.table if one.table != before else ""),
            Text(one.check.name),
            state("warn" if warned else one.state),
            Text(one.outcome.message),
        )
        before = one.table
    return table


def _rules(found: list[RuleCount]) -> Grid:
    table = grid("table", "rule", "state", "message")
    before = None
    for one in found:
        table.add_row(
            Text(one.table if one.table != before else ""),
            Text(one.rule),
            state("failed" if one.gated else one.state),
            Text(one.told),
        )
        before = one.table
    return table


def _summary(found: Checked) -> Text:
    states = [one.state for one in found.checks]
    parts = [
        f"{states.count(kind):,} {kind}"
        for kind in ("passed", "failed", "unjudged")
        if states.count(kind)
    ]
    checks = ", ".join(parts) or "none"
    text = f"{found.environment}: {len(states):,} checks: {checks}."
    return Text(text, style="bold red" if found.failed else "")


def check_document(found: Checked) -> CheckDocument:
    """The JSON document of ``check``."""
    return {
        "environment": found.environment,
        "run": found.run,
        "at": found.at.isoformat(),
        "failed": found.failed,
        "missing": list(found.missing),
        "problems": dict(found.problems),
        "gaps": list(found.gaps),
        "keys": found.keys,
        "unwritten": [error_body(error) for error in found.unwritten],
        "checks": [_check_document(one) for one in found.checks],
        "rules": [
            {
                "table": one.table,
                "rule": one.rule,
                "expression": one.expression,
                "state": one.state,
                "on_violation": one.action,
                "rows": one.rows,
                "failed": one.failed,
                "gate": one.gate,
                "gated": one.gated,
                "note": one.note,
                "owner": one.owner,
            }
            for one in found.rules
        ],
        "gates": [
            {
                "table": one.table,
                "rows": one.rows,
                "failed": one.failed,
                "gate": one.gate,
                "gated": one.gated,
                "note": one.note,
            }
            for one in found.gates
        ],
    }


def _check_document(one: CheckResult) -> CheckResultDocument:
    return {
        "table": one.table,
        "check": one.check.name,
        "kind": one.check.kind,
        "expression": one.expression,
        "on_failure": "fail" if one.stops else "warn",
        "state": one.state,
        "message": one.outcome.message,
        "rows": one.outcome.rows,
        "failed": one.outcome.failed,
        "figure": _figure(one.outcome),
        "groups": [
            {
                "group": group.key,
                "name": group.name,
                "state": group.outcome.state,
                "message": group.outcome.message,
                "rows": group.outcome.rows,
                "failed": group.outcome.failed,
                "figure": _figure(group.outcome),
            }
            for group in one.groups
        ],
        "tags": list(one.tags),
        "owner": one.owner,
    }


def _figure(outcome: Outcome) -> float | None:
    return None if outcome.figure is None else float(outcome.figure)
