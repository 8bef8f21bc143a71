"""The commands that show migrations: they start no JVM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from deltacheck.cli.documents import HistoryDocument, OperationDocument, RevisionLine, ShowDocument
from deltacheck.cli.options import AsJson, ProjectFolder
from deltacheck.cli.output import grid, out, print_json
from deltacheck.config import load_project
from deltacheck.migrate.tasks import add_statement, drop_statement, operation_kind
from deltacheck.revisions.files import load_history
from deltacheck.revisions.graph import History, Revision
from deltacheck.revisions.operations import (
    AddConstraint,
    DropConstraint,
    Execute,
    Operation,
    ReplaceConstraint,
)

One = Annotated[str, typer.Argument(metavar="REVISION", help="head, a revision or its beginning.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("history")(history)
    app.command("heads")(heads)
    app.command("show")(show)


def history(project: ProjectFolder = Path(), as_json: AsJson = False) -> None:
    """List the migrations, newest first."""
    found = load_history(load_project(project).versions)
    _print_list(found, found.revisions, as_json=as_json)


def heads(project: ProjectFolder = Path(), as_json: AsJson = False) -> None:
    """List the migrations that no other one follows: one, or after a fork several."""
    found = load_history(load_project(project).versions)
    _print_list(found, [found.get(name) for name in found.heads], as_json=as_json)


def show(revision: One = "head", project: ProjectFolder = Path(), as_json: AsJson = False) -> None:
    """Show one migration: what it is for and what it does."""
    found = load_history(load_project(project).versions)
    one = found.get(revision)
    if as_json:
        print_json(_show_document(found, one))
        return
    line = Text(one.revision, style="bold")
    line.append(f"  {one.message}", style="not bold")
    out().print(line)
    follows = ", ".join(one.down_revision) or "nothing: it is the first"
    out().print(Text(f"{one.path or one.file}, follows {follows}", style="dim"))
    print_operations(one.upgrade)
    if any(operation.reverse() is None for operation in one.upgrade):
        out().print("Not all of it can be taken back.", style="yellow")


def _print_list(found: History, revisions: Sequence[Revision], *, as_json: bool) -> None:
    newest_first = list(reversed(revisions))
    if as_json:
        document: HistoryDocument = {
            "heads": list(found.heads),
            "revisions": [_line(found, one) for one in newest_first],
        }
        print_json(document)
        return
    if not revisions:
        out().print("There is no migration yet.")
        return
    table = grid("revision", "follows", "what it does")
    for one in newest_first:
        name = f"{one.revision} (head)" if one.revision in found.heads else one.revision
        table.add_row(name, ", ".join(one.down_revision) or "-", Text(one.message))
    out().print(table)


def _line(found: History, one: Revision) -> RevisionLine:
    return {
        "revision": one.revision,
        "down_revision": list(one.down_revision),
        "message": one.message,
        "file": None if one.path is None else one.path.as_posix(),
        "head": one.revision in found.heads,
    }


def _show_document(found: History, one: Revision) -> ShowDocument:
    return {
        **_line(found, one),
        "checksum": one.checksum,
        "upgrade": [operation_document(operation) for operation in one.upgrade],
        "downgrade": [operation_document(operation) for operation in one.downgrade],
    }


def operation_document(operation: Operation) -> OperationDocument:
    """An operation as JSON has it."""
    added = _added(operation)
    return {
        "operation": operation_kind(operation),
        "table": None if operation.table is None else str(operation.table),
        "rule": None if _name(operation) is None else _name(operation),
        "column": getattr(operation, "column", None),
        "expression": None if added is None else added.expression,
        "violators": None if added is None else added.violators,
        "gate": None if added is None or added.gate is None else added.gate.text,
        "statement": _statement(operation),
    }


def print_operations(operations: Iterable[Operation]) -> None:
    """Print operations as a table, one line for each."""
    rows = list(operations)
    if not rows:
        return
    table = grid("operation", "table", "rule", "expression")
    before = None
    for operation in rows:
        name = "" if operation.table is None else str(operation.table)
        table.add_row(
            operation_kind(operation),
            Text(name if name != before else ""),
            Text(_name(operation) or ""),
            Text(_says(operation)),
        )
        before = name
    out().print(table)


def _says(operation: Operation) -> str:
    match operation:
        case AddConstraint():
            return operation.expression
        case ReplaceConstraint(added=added, previous=previous):
            was = "" if previous is None else f"\nwas {previous.expression}"
            return added.expression + was
        case Execute(statement=statement):
            return statement
    return ""


def _name(operation: Operation) -> str | None:
    if isinstance(operation, (AddConstraint, DropConstraint, ReplaceConstraint)):
        return operation.name
    return None


def _added(operation: Operation) -> AddConstraint | None:
    match operation:
        case AddConstraint():
            return operation
        case ReplaceConstraint(added=added):
            return added
    return None


def _statement(operation: Operation) -> str | None:
    match operation:
        case AddConstraint() | ReplaceConstraint():
            added = _added(operation)
            assert added is not None
            return add_statement(added.table, added.name, added.expression)
        case DropConstraint():
            return drop_statement(operation.table, operation.name)
        case Execute(statement=statement):
            return statement
    return None
