"""What a command prints: tables for people on standard output, or one JSON document there.

Progress and errors go to standard error.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from deltacheck.cli.documents import ErrorBody
from deltacheck.config import load_project
from deltacheck.errors import DeltacheckError

SCHEMA_VERSION = 1

_UNFOLDED = 160
_FOLDED = ("expression", "what it does", "rules broken", "message")

STATE_STYLES = {
    "enforced": "green",
    "dropped": "green",
    "ran": "green",
    "passed": "green",
    "unjudged": "dim",
    "planned": "cyan",
    "pending": "cyan",
    "warn": "yellow",
    "skipped": "dim",
    "unmanaged": "magenta",
    "drifted": "bold red",
    "stopped": "bold red",
    "failed": "bold red",
}


def out() -> Console:
    """The console for results."""
    return _console(sys.stdout)


def err() -> Console:
    """The console for progress and errors."""
    return _console(sys.stderr)


def _console(stream: TextIO) -> Console:
    # What goes to a file or a pipe is not folded at the edge of a terminal that is not there.
    width = None if stream.isatty() else _UNFOLDED
    return Console(file=stream, highlight=False, width=width)


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document with its schema version."""
    text = json.dumps({"schema_version": SCHEMA_VERSION, **document}, indent=2, default=plain)
    sys.stdout.write(text + "\n")


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return str(value)


def error_body(error: DeltacheckError) -> ErrorBody:
    """An error as a JSON document has it."""
    return {
        "code": error.code,
        "message": str(error).removesuffix(error.hint).strip(),
        "hint": error.hint,
        "exit_code": error.exit_code,
    }


def print_error(error: DeltacheckError, *, as_json: bool) -> None:
    """Print an error: one paragraph, or a JSON document on standard output."""
    if as_json:
        print_json({"error": error_body(error)})
    else:
        text = Text("Error: ", style="bold red")
        text.append(error_body(error)["message"], style="default")
        if error.hint:
            text.append(f" {error.hint}", style="dim")
        err().print(text)


def state(name: str) -> Text:
    """A state in its colour."""
    return Text(name, style=STATE_STYLES.get(name, ""))


def count(rows: int) -> Text:
    """A number of rows; none is not worth looking at."""
    return Text(f"{rows:,}", style="dim" if rows == 0 else "")


def rows_of(number: int) -> str:
    """A number of rows in words.

    >>> rows_of(1), rows_of(2400)
    ('1 row', '2,400 rows')
    """
    return f"{number:,} row" if number == 1 else f"{number:,} rows"


def grid(*columns: str, right: tuple[str, ...] = ()) -> Grid:
    """An open table with quiet headings."""
    table = Grid(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in right else "left",
            overflow="fold",
            no_wrap=column not in _FOLDED,
        )
    return table


@contextmanager
def progress(*, shown: bool) -> Iterator[Callable[[str], None]]:
    """Say what goes on, in a line of its own, for as long as it takes."""
    console = err()
    if not shown:
        yield lambda _: None
    elif console.is_terminal:
        with console.status("") as line:
            yield lambda text: line.update(text)
    else:
        yield lambda text: console.print(text, style="dim")


@contextmanager
def reporting(
    env: str | None, project: Path, verbose: bool, quiet: bool
) -> Iterator[Callable[[str], None]]:
    """Progress on standard error, and with ``-v`` where Spark logs."""
    if verbose:
        from deltacheck.delta.log import log_file

        place = log_file(load_project(project).environment(env))
        err().print(f"Spark logs to {place}", style="dim")
    with progress(shown=not quiet) as tell:
        yield tell
