"""How the results of a run and of ``status`` look on a terminal and as JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.text import Text

from deltacheck.cli.documents import DriftDocument, RunDocument, StatusDocument
from deltacheck.cli.output import count, grid, out, print_json, rows_of, state

if TYPE_CHECKING:
    from deltacheck.migrate.drift import Drift
    from deltacheck.migrate.results import Outlook, RunResult, Step
    from deltacheck.migrate.status import Status


def print_run(result: RunResult, *, as_json: bool = False) -> None:
    """Print what ``upgrade``, ``downgrade`` or ``plan`` found and did."""
    if as_json:
        print_json(run_document(result))
        return
    console = out()
    if result.nothing_to_do and not result.restored:
        at = result.current or "base"
        console.print(f"Nothing to do: {result.environment} is at {at}.")
        return
    for run in result.settled:
        console.print(
            f"Run {run} did not end; what it left is settled."
            if not result.dry_run
            else f"Run {run} did not end; an upgrade settles what it left."
        )
    if result.steps:
        table = grid(
            "rev",
            "table",
            "rule",
            "false",
            "NULL",
            "state",
            "seconds",
            right=("false", "NULL", "seconds"),
        )
        for step in result.steps:
            table.add_row(*_cells(step))
        console.print(table)
    for outcome in result.tables:
        verb = "would move" if result.dry_run else "moved"
        line = Text(
            f"{outcome.table}: {rows_of(outcome.before)} before = "
            f"{outcome.after:,} left + {outcome.moved:,} {verb} to {outcome.quarantine}"
        )
        if outcome.before != outcome.after + outcome.moved:
            line = Text(
                f"{outcome.table}: {rows_of(outcome.moved)} {verb} to "
                f"{outcome.quarantine}; {rows_of(outcome.before)} when first counted, "
                f"{outcome.after:,} now (others write to it)"
            )
        console.print(line)
    for table_name in result.recorded:
        does = "would be recorded" if result.dry_run else "recorded"
        console.print(Text(f"{table_name}: its declared rules are {does} on it", style="dim"))
    for back in result.restored:
        kept = f"; {rows_of(back.kept)} break a rule that still holds and stay" if back.kept else ""
        console.print(
            f"{back.table}: {rows_of(back.rows)} brought back from {back.quarantine}{kept}"
        )
    for note in result.notes:
        console.print(Text(note, style="yellow"))
    if result.dry_run:
        for look in result.outlook:
            _print_outlook(look)
        console.print("Nothing was written.", style="dim")
    else:
        console.print(f"{result.environment} is at {result.current or 'base'}.")


def _print_outlook(look: Outlook) -> None:
    console = out()
    skipped = look.files - look.files_read
    console.print(
        f"{look.table}: {look.files:,} files, {look.bytes / 1e6:,.1f} MB; counting read "
        f"{look.files_read:,} files in {look.count_seconds:.1f} s"
        + (f" ({skipped:,} are proven clean by their statistics)" if skipped > 0 else "")
        + "; each new constraint makes Delta scan the table once more"
    )
    if look.protocol:
        console.print(Text(f"  {look.protocol}", style="yellow"))
    for writer in look.writers[:3]:
        console.print(
            Text(
                f"  written by {writer.operation} of {writer.engine}: {writer.commits} of its "
                f"last commits, {writer.per_day:g} a day",
                style="dim",
            )
        )


def print_sql(text: str, *, as_json: bool = False) -> None:
    """Print statements as a script."""
    if as_json:
        print_json({"sql": text})
    else:
        sys.stdout.write(text)


def _cells(step: Step) -> list[Text | str]:
    found = step.violators
    return [
        step.revision,
        step.table or "",
        step.rule or step.operation,
        "" if found is None else count(found.false),
        "" if found is None else count(found.null),
        state(step.state),
        f"{step.seconds:.1f}" if step.seconds else "",
    ]


def run_document(result: RunResult) -> RunDocument:
    """The JSON document of a run."""
    return {
        "environment": result.environment,
        "command": result.command,
        "run": result.run,
        "dry_run": result.dry_run,
        "current": result.current,
        "revisions": list(result.revisions),
        "steps": [
            {
                "revision": step.revision,
                "operation": step.operation,
                "table": step.table,
                "rule": step.rule,
                "expression": step.expression,
                "violators": None
                if step.violators is None
                else {"false": step.violators.false, "null": step.violators.null},
                "state": step.state,
                "seconds": step.seconds,
                "statements": list(step.statements),
                "note": step.note,
            }
            for step in result.steps
        ],
        "tables": [
            {
                "table": outcome.table,
                "quarantine": outcome.quarantine,
                "before": outcome.before,
                "moved": outcome.moved,
                "after": outcome.after,
            }
            for outcome in result.tables
        ],
        "recorded": list(result.recorded),
        "settled": list(result.settled),
        "outlook": [
            {
                "table": look.table,
                "files": look.files,
                "files_read": look.files_read,
                "bytes": look.bytes,
                "count_seconds": look.count_seconds,
                "protocol": look.protocol,
                "writers": [
                    {
                        "operation": writer.operation,
                        "engine": writer.engine,
                        "commits": writer.commits,
                        "per_day": writer.per_day,
                    }
                    for writer in look.writers
                ],
            }
            for look in result.outlook
        ],
        "restored": [
            {
                "table": back.table,
                "quarantine": back.quarantine,
                "rows": back.rows,
                "kept": back.kept,
            }
            for back in result.restored
        ],
        "notes": list(result.notes),
    }


def print_status(found: Status, *, as_json: bool = False) -> None:
    """Print every rule and how things stand."""
    if as_json:
        print_json(status_document(found))
        return
    console = out()
    if not found.rules:
        what = "no rule is declared and none is on a table"
        if not found.selection.everything:
            what = "there is no such rule"
        console.print(f"{found.environment}: {what}.")
        return
    table = grid(
        "table",
        "rule",
        "expression",
        "state",
        "enforced by",
        "rev",
        "quarantined",
        right=("quarantined",),
    )
    before = None
    for rule in found.rules:
        expression = Text(rule.expression)
        if rule.kind == "not_null":
            expression = Text(rule.expression.replace(" IS NOT NULL", "  NOT NULL", 1))
        by = {"check": "CHECK", "not_null": "NOT NULL", None: ""}[rule.enforced_by]
        table.add_row(
            rule.table if rule.table != before else "",
            rule.rule,
            expression,
            state(rule.state),
            by,
            rule.revision or "",
            count(rule.quarantined),
        )
        before = rule.table
    console.print(table)
    for rule in found.rules:
        if rule.note:
            line = state(rule.state)
            line.append(f"  {rule.table}.{rule.rule}: {rule.note}", style="default not bold")
            console.print(line, soft_wrap=True)
    for name in found.missing:
        console.print(Text(f"{name}: there is no such table", style="yellow"))
    for name, rows in found.restored.items():
        text = f"{name}: a RESTORE has brought back {rows_of(rows)} that its quarantine holds too"
        console.print(Text(text, style="yellow"))
    column = found.selection.column
    if column is not None and any(rule.enforced_by == "check" for rule in found.rules):
        console.print(
            Text(f"Delta refuses to rename, drop or retype {column} while a CHECK reads it.")
        )
    at = found.current or "base"
    behind = "" if found.current == found.head else f"; head is {found.head}"
    console.print(f"{found.environment} is at {at}{behind}.")


def status_document(found: Status) -> StatusDocument:
    """The JSON document of ``status``."""
    return {
        "environment": found.environment,
        "current": found.current,
        "head": found.head,
        "in_sync": found.in_sync,
        "missing": list(found.missing),
        "restored": dict(found.restored),
        "rules": [
            {
                "table": rule.table,
                "rule": rule.rule,
                "kind": rule.kind,
                "expression": rule.expression,
                "state": rule.state,
                "enforced_by": rule.enforced_by,
                "revision": rule.revision,
                "quarantined": rule.quarantined,
                "note": rule.note,
                "drift": None if rule.drift is None else _drift_document(rule.drift),
                "tags": list(rule.tags),
                "owner": rule.owner,
            }
            for rule in found.rules
        ],
    }


def _drift_document(drift: Drift) -> DriftDocument:
    return {
        "cause": drift.cause,
        "version": drift.version,
        "at": None if drift.at is None else drift.at.isoformat(),
        "operation": drift.operation,
        "engine": drift.engine,
        "run": drift.run,
    }
