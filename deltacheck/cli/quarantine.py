"""``deltacheck quarantine``: what is held, and what becomes of it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from rich.text import Text

from deltacheck.cli.documents import (
    DiscardDocument,
    ExportDocument,
    HeldDocument,
    PurgeDocument,
    QuarantineListDocument,
    QuarantineShowDocument,
    ReleaseDocument,
)
from deltacheck.cli.options import AsJson, Env, Owners, ProjectFolder, Quiet, Tags, Verbose
from deltacheck.cli.output import count, err, grid, out, print_json, reporting, rows_of

if TYPE_CHECKING:
    from deltacheck.quarantine.api import Discarded, Held, Purged, Released, Shown


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(help="Quarantined rows.", no_args_is_help=True)
    group.command("list")(list_rows)
    group.command("show")(show)
    group.command("export")(export)
    group.command("release")(release)
    group.command("discard")(discard)
    group.command("purge")(purge)
    app.add_typer(group, name="quarantine")


class State(str, Enum):
    """Which rows are meant."""

    HELD = "held"
    RELEASED = "released"
    DISCARDED = "discarded"
    ALL = "all"


class Format(str, Enum):
    """How rows are written to files."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


Tables = Annotated[
    Optional[list[str]],  # noqa: UP045  (typer reads annotations at run time on Python 3.10)
    typer.Argument(metavar="[TABLE]...", help="Only these tables; default: all of the project."),
]
Table = Annotated[str, typer.Argument(help="The table that the rows were meant for.")]
Rules = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--rule", metavar="RULE", help="Only rows that broke it; may be repeated."),
]
Run = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--run", metavar="ID", help="Only rows of this run, batch or attempt."),
]
Where = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--where", metavar="SQL", help="Only rows that meet this condition."),
]
InState = Annotated[State, typer.Option("--state", help="Only rows in this state.")]
Columns = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--columns", metavar="NAMES", help="Only these columns, separated by commas."),
]
At = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--quarantine", metavar="NAME", help="The quarantine; default: the table's own."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Look and count; write nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def list_rows(
    tables: Tables = None,
    rules: Rules = None,
    run: Run = None,
    where: Where = None,
    tags: Tags = None,
    owners: Owners = None,
    quarantine: At = None,
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Count quarantined rows per table, rules, origin and state; write nothing."""
    from deltacheck.quarantine import api

    with reporting(env, project, verbose, quiet or as_json) as tell:
        held = api.list_held(
            *(tables or ()),
            rules=rules or (),
            run=run,
            where=where,
            tags=tags or (),
            owners=owners or (),
            quarantine=quarantine,
            env=env,
            project=project,
            progress=tell,
        )
    if as_json:
        document: QuarantineListDocument = {"held": [_held_document(entry) for entry in held]}
        print_json(document)
        return
    _print_held(held)


def _held_document(entry: Held) -> HeldDocument:
    return {
        "table": entry.table,
        "quarantine": entry.quarantine,
        "rules": list(entry.rules),
        "source": entry.source,
        "run": entry.run,
        "state": entry.state,
        "rows": entry.rows,
        "oldest": entry.oldest.isoformat(),
        "newest": entry.newest.isoformat(),
        "claimed": entry.claimed,
        "note": entry.note,
    }


_NOTES = {
    "": "",
    "restored": "back in the table (RESTORE)",
    "unsettled": "the run or batch has not ended; `deltacheck upgrade`, or the job, settles it",
}


def _print_held(held: Sequence[Held]) -> None:
    if not held:
        out().print("No row is quarantined.")
        return
    table = grid("table", "rules broken", "rows", "state", "by", "since (UTC)", right=("rows",))
    before = None
    for entry in held:
        notes = [_NOTES[entry.note]] if entry.note else []
        if entry.claimed:
            notes.append(f"{rows_of(entry.claimed)} of an unfinished release")
        table.add_row(
            entry.table if entry.table != before else "",
            ", ".join(entry.rules) or "none (good row of a bad batch)",
            count(entry.rows),
            ", ".join([entry.state, *notes]),
            f"{entry.source} {entry.run}",
            f"{entry.oldest:%Y-%m-%d %H:%M}",
        )
        before = entry.table
    out().print(table)


def show(
    table: Table,
    columns: Columns = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many rows.")] = 20,
    state: InState = State.HELD,
    rules: Rules = None,
    run: Run = None,
    where: Where = None,
    quarantine: At = None,
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Show quarantined rows, values and all, the oldest first; write nothing."""
    from deltacheck.quarantine import api

    with reporting(env, project, verbose, quiet or as_json) as tell:
        found = api.show(
            table,
            columns=_names(columns),
            limit=limit,
            state=state.value,
            rules=rules or (),
            run=run,
            where=where,
            quarantine=quarantine,
            env=env,
            project=project,
            progress=tell,
        )
    if as_json:
        document: QuarantineShowDocument = {
            "table": found.table,
            "quarantine": found.quarantine,
            "columns": list(found.columns),
            "rows": [dict(row) for row in found.rows],
            "total": found.total,
        }
        print_json(document)
        return
    _print_rows(found)


def _names(columns: Sequence[str] | None) -> list[str]:
    """The names in ``--columns``; back-quotes protect a comma.

    >>> _names(["id, `a,b`", "status"])
    ['id', 'a,b', 'status']
    """
    found = re.findall(r"\s*(?:`((?:[^`]|``)+)`|([^,]+))\s*(?:,|$)", ",".join(columns or ()))
    return [quoted.replace("``", "`") or plain.strip() for quoted, plain in found]


def _print_rows(found: Shown) -> None:
    if not found.rows:
        out().print("No such row is quarantined.")
        return
    table = grid(*found.columns)
    for row in found.rows:
        table.add_row(*(_cell(row.get(name)) for name in found.columns))
    out().print(table)
    if found.total > len(found.rows):
        out().print(f"{len(found.rows):,} of {rows_of(found.total)}; --limit shows more.")


def _cell(value: Any) -> Text:
    if value is None:
        return Text("NULL", style="dim")
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return Text(", ".join(value))
    return Text(json.dumps(value, ensure_ascii=False))


def export(
    table: Table,
    path: Annotated[
        str, typer.Argument(help="A new folder for the files: rows.csv, rows.json, rows.parquet.")
    ],
    format: Annotated[
        Optional[Format],  # noqa: UP045
        typer.Option("--format", help="Default: what PATH ends in."),
    ] = None,
    columns: Columns = None,
    state: InState = State.HELD,
    rules: Rules = None,
    run: Run = None,
    where: Where = None,
    quarantine: At = None,
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Write quarantined rows to files, values and all; never over what is there."""
    from deltacheck.quarantine import api

    with reporting(env, project, verbose, quiet or as_json) as tell:
        done = api.export(
            table,
            path,
            format=None if format is None else format.value,
            columns=_names(columns),
            state=state.value,
            rules=rules or (),
            run=run,
            where=where,
            quarantine=quarantine,
            env=env,
            project=project,
            progress=tell,
        )
    if as_json:
        document: ExportDocument = {
            "table": done.table,
            "quarantine": done.quarantine,
            "path": done.path,
            "format": done.format,
            "rows": done.rows,
        }
        print_json(document)
        return
    out().print(Text(f"{rows_of(done.rows)} of {done.quarantine} written to {done.path}."))


def release(
    table: Table,
    repairs: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--set",
            metavar="COLUMN=SQL",
            help='Repair rows on the way: --set "amount = abs(amount)"; may be repeated.',
        ),
    ] = None,
    append: Annotated[
        bool,
        typer.Option("--append", help="Append rows of guarded writes and overwrites as well."),
    ] = False,
    resume: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--resume", metavar="ID", help="Only the rows of this unfinished release."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    rules: Rules = None,
    run: Run = None,
    where: Where = None,
    quarantine: At = None,
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Write held rows that satisfy today's rules back to their table, each exactly once."""
    from deltacheck.quarantine import api

    def go(*, dry_run: bool) -> Released:
        with reporting(env, project, verbose, quiet or as_json) as tell:
            return api.release(
                table,
                repairs=repairs or (),
                append=append,
                resume=resume,
                dry_run=dry_run,
                rules=rules or (),
                run=run,
                where=where,
                quarantine=quarantine,
                env=env,
                project=project,
                progress=tell,
            )

    if not dry_run and resume is None and _asks(yes):
        plan = go(dry_run=True)
        if plan.rows:
            _ask(f"{rows_of(plan.rows)} of {plan.quarantine} will be appended to {plan.table}.")
    done = go(dry_run=dry_run)
    if as_json:
        print_json(_release_document(done))
        return
    _print_release(done)


def _release_document(done: Released) -> ReleaseDocument:
    return {
        "table": done.table,
        "quarantine": done.quarantine,
        "dry_run": done.dry_run,
        "release": done.release,
        "rows": done.rows,
        "version": done.version,
        "kept": done.kept,
        "broken": dict(done.broken),
        "unfit": done.unfit,
        "restored": done.restored,
        "unsettled": done.unsettled,
        "undecided": done.undecided,
        "left_out": dict(done.left_out),
        "finished": done.finished,
        "unfinished": list(done.unfinished),
    }


def _print_release(done: Released) -> None:
    lines = []
    if done.finished:
        lines.append(f"{rows_of(done.finished)} of an earlier release that did not end: finished.")
    verb = "would go" if done.dry_run else "went"
    at = "" if done.version is None else f" (version {done.version})"
    lines.append(f"{rows_of(done.rows)} {verb} back to {done.table}{at}.")
    if done.kept:
        reasons = ", ".join(f"{rule} ({rows_of(rows)})" for rule, rows in done.broken.items())
        lines.append(f"{rows_of(done.kept)} still held for breaking a rule: {reasons}.")
    stays = (
        (done.unfit, "a value does not fit the type that its column has now"),
        (done.restored, "a RESTORE has brought them back to the table"),
        (done.unsettled, "their run or batch has not ended, or the journal does not know it"),
        (done.undecided, "they come from a guarded write or an overwrite (--append)"),
    )
    lines += [f"{rows_of(rows)} still held: {why}." for rows, why in stays if rows]
    lines += [
        f"{rows_of(rows)} had a value in {column}, which the table does not have."
        for column, rows in done.left_out.items()
    ]
    lines += [f"The release {claim} has not ended (--resume)." for claim in done.unfinished]
    for line in lines:
        out().print(Text(line))
    if done.dry_run:
        out().print("Nothing was written.", style="dim")


def discard(
    table: Table,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")],
    dry_run: DryRun = False,
    yes: Yes = False,
    rules: Rules = None,
    run: Run = None,
    where: Where = None,
    quarantine: At = None,
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Give held rows up: mark them as discarded, until they are purged."""
    from deltacheck.quarantine import api

    def go(*, dry_run: bool) -> Discarded:
        with reporting(env, project, verbose, quiet or as_json) as tell:
            return api.discard(
                table,
                reason,
                dry_run=dry_run,
                rules=rules or (),
                run=run,
                where=where,
                quarantine=quarantine,
                env=env,
                project=project,
                progress=tell,
            )

    if not dry_run and _asks(yes):
        plan = go(dry_run=True)
        if plan.rows:
            _ask(f"{rows_of(plan.rows)} held in {plan.quarantine} will be given up.")
    done = go(dry_run=dry_run)
    if as_json:
        document: DiscardDocument = {
            "table": done.table,
            "quarantine": done.quarantine,
            "dry_run": done.dry_run,
            "reason": done.reason,
            "rows": done.rows,
        }
        print_json(document)
        return
    verb = "would be" if done.dry_run else "are"
    out().print(Text(f"{rows_of(done.rows)} of {done.quarantine} {verb} discarded."))


def purge(
    table: Table,
    older_than: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--older-than", metavar="AGE", help="Only rows that came so long ago: 90d."),
    ] = None,
    held: Annotated[
        bool,
        typer.Option("--held", help="Delete held rows too, of which there is no other copy."),
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    rules: Rules = None,
    run: Run = None,
    where: Where = None,
    quarantine: At = None,
    env: Env = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Delete released and discarded rows from the quarantine, and say what is left of them."""
    from deltacheck.quarantine import api

    def go(*, dry_run: bool) -> Purged:
        with reporting(env, project, verbose, quiet or as_json) as tell:
            return api.purge(
                table,
                older_than=older_than,
                held=held,
                dry_run=dry_run,
                rules=rules or (),
                run=run,
                where=where,
                quarantine=quarantine,
                env=env,
                project=project,
                progress=tell,
            )

    if not dry_run and _asks(yes):
        plan = go(dry_run=True)
        if plan.rows:
            nowhere = f", {plan.held:,} of them held: there is no other copy" if plan.held else ""
            _ask(f"{rows_of(plan.rows)} of {plan.quarantine} will be deleted{nowhere}.")
    done = go(dry_run=dry_run)
    if as_json:
        document: PurgeDocument = {
            "table": done.table,
            "quarantine": done.quarantine,
            "dry_run": done.dry_run,
            "rows": done.rows,
            "held": done.held,
            "before": None if done.before is None else done.before.isoformat(),
            "left_behind": done.left_behind,
        }
        print_json(document)
        return
    verb = "would be" if done.dry_run else "were"
    out().print(Text(f"{rows_of(done.rows)} {verb} deleted from {done.quarantine}."))
    if done.left_behind:
        out().print(Text(done.left_behind, style="dim"))


def _asks(yes: bool) -> bool:
    """Whether somebody is there to be asked, and has not answered yet."""
    return not yes and sys.stdin.isatty()


def _ask(text: str) -> None:
    err().print(Text(text))
    typer.confirm("Go on?", abort=True, err=True)
