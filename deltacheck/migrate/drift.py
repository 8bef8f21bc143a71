"""Why a table differs from what its migrations say: the cause, found in the table's history.

Delta tells in its history what each commit did to constraints, so what each commit left can
be worked out without reading an old version. Where the log of the cause is gone, or a tool
changed the table in a way that the history does not tell, the cause is ``unknown``.

Reads commits and, for a NOT NULL, schemas of old versions. Knows no row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Literal, Union

from pyspark.sql import SparkSession

from deltacheck.delta.failures import EngineFailure
from deltacheck.delta.table import (
    CONSTRAINT_PREFIX,
    Commit,
    frame,
    read_definition,
    required_columns,
)
from deltacheck.ledger.journal import Journal
from deltacheck.migrate.preflight import is_enforced
from deltacheck.migrate.tasks import Task
from deltacheck.names import TableName
from deltacheck.revisions.graph import History
from deltacheck.revisions.state import state_after
from deltacheck.rules.expression import same_rule

Cause = Literal[
    "dropped",
    "unset",
    "replaced",
    "schema_overwritten",
    "restored",
    "changed",
    "added",
    "never_added",
    "table_gone",
    "unknown",
]
"""Why: DROP CONSTRAINT or DROP NOT NULL; the property unset; CREATE OR REPLACE; a write with
overwriteSchema; RESTORE; another expression; a constraint that no migration knows; one that
this table never had; the table is gone; the history does not tell."""

_SENTENCES: dict[Cause, str] = {
    "dropped": "dropped by hand",
    "unset": "taken off as a table property",
    "replaced": "lost when the table was replaced",
    "schema_overwritten": "lost in a write that overwrote the schema",
    "restored": "taken back by RESTORE",
    "changed": "changed by other hands",
    "added": "added by other hands",
    "never_added": "this table never had it",
    "table_gone": "the table is gone",
    "unknown": "the table's history does not tell why",
}


@dataclass(frozen=True)
class Drift:
    """Why a constraint is not as it should be.

    Attributes:
        version: The table's version that did it, where the history tells.
        at: When, in UTC.
        operation: What Delta calls the commit.
        engine: What made it.
        run: The run of deltacheck that made it, if one did: of another environment or with
            another journal.
    """

    cause: Cause
    version: int | None = None
    at: datetime | None = None
    operation: str | None = None
    engine: str | None = None
    run: str | None = None

    @property
    def sentence(self) -> str:
        """The cause in words, for people.

        >>> Drift("unset", 7, datetime(2026, 5, 1, 9, 30), "UNSET TBLPROPERTIES").sentence
        'taken off as a table property: UNSET TBLPROPERTIES, version 7, 2026-05-01 09:30 UTC'
        """
        text = _SENTENCES[self.cause]
        if self.version is None:
            return text
        details = [str(self.operation), f"version {self.version}"]
        if self.at is not None:
            details.append(f"{self.at:%Y-%m-%d %H:%M} UTC")
        if self.run is not None:
            details.append(f"run {self.run} of deltacheck")
        elif self.engine and "Delta-Lake" not in self.engine:
            details.append(f"by {self.engine}")
        return f"{text}: {', '.join(details)}"


class _Unknown(Enum):
    """What a constraint was after a commit that does not tell."""

    UNKNOWN = "unknown"


Value = Union[str, None, _Unknown]
"""The expression of a constraint after a commit; None: there was none."""


def cause_of_check(commits: Sequence[Commit], name: str, live: str | None) -> Drift:
    """Why the CHECK of a name is as it is.

    Args:
        commits: The table's, newest first.
        name: In any case.
        live: Its expression on the table; None: there is none.
    """
    oldest_first = list(reversed(commits))
    values = _values(oldest_first, name.lower())
    if live is None and all(value is None for value in values):
        return Drift("never_added")
    if not _same(values[-1], live):
        return Drift("unknown")
    last: Commit | None = None
    for commit, before, after in zip(oldest_first, values[:-1], values[1:], strict=True):
        if not _same(before, after):
            last = commit
    return Drift("unknown") if last is None else _drift(_check_cause(last, live), last)


def cause_of_not_null(commits: Sequence[Commit], required: Callable[[int], bool | None]) -> Drift:
    """Why the schema of a table has a NOT NULL no more.

    Args:
        commits: The table's, newest first.
        required: Whether the schema of a version has it; None: that cannot be read.
    """
    for commit in commits:
        if commit.version > 0 and _may_loosen(commit):
            before = required(commit.version - 1)
            if before is None:
                return Drift("unknown")
            if before:
                return _drift(_not_null_cause(commit), commit)
    complete = bool(commits) and commits[-1].version == 0
    return Drift("never_added" if complete else "unknown")


def find_cause(
    commits: Sequence[Commit],
    name: str,
    live: str | None,
    required: Callable[[int], bool | None] | None = None,
) -> Drift:
    """Why a constraint that was applied is not there, or is another one.

    Args:
        commits: The table's, newest first.
        name: The constraint's, in any case.
        live: The expression of the CHECK of that name; None: there is none.
        required: Of a NOT NULL, which may have been one of the schema: see
            :func:`cause_of_not_null`.
    """
    found = cause_of_check(commits, name, live)
    if found.cause == "never_added" and required is not None:
        return cause_of_not_null(commits, required)
    return replace(found, cause="changed") if found.cause == "added" else found


def requires(
    session: SparkSession, table: TableName, column: tuple[str, ...]
) -> Callable[[int], bool | None]:
    """Tells whether the schema of a version declares a column NOT NULL; None: it is gone.

    Args:
        column: Its path, in lower case.
    """

    def at(version: int) -> bool | None:
        try:
            schema = frame(session, table, version).schema
        except EngineFailure:
            # The log of that version has been cleaned up.
            return None
        paths = required_columns(schema)
        return column in {tuple(part.lower() for part in path) for path in paths}

    return at


def _values(oldest_first: Sequence[Commit], key: str) -> list[Value]:
    """What the CHECK of a key was before the first commit and after each."""
    # Delta cleans up its log: what came before the oldest entry may not be told.
    complete = not oldest_first or oldest_first[0].version == 0
    value: Value = None if complete else _Unknown.UNKNOWN
    values = [value]
    after: dict[int, Value] = {}
    for commit in oldest_first:
        value = _value_after(commit, key, value, after)
        after[commit.version] = value
        values.append(value)
    return values


def _value_after(commit: Commit, key: str, before: Value, after: dict[int, Value]) -> Value:
    said = commit.parameters
    match commit.operation.split():
        case ["ADD", "CONSTRAINT"]:
            return said.get("expr") if (said.get("name") or "").lower() == key else before
        case ["DROP", "CONSTRAINT"]:
            return None if (said.get("name") or "").lower() == key else before
        case ["UNSET", "TBLPROPERTIES"]:
            keys = {name.lower() for name in _json(said.get("properties"), list)}
            return None if CONSTRAINT_PREFIX + key in keys else before
        case ["CREATE" | "REPLACE", *_]:
            return _constraints_in(said.get("properties")).get(key)
        case ["RESTORE"] if (version := said.get("version")) is not None:
            return after.get(int(version), _Unknown.UNKNOWN)
        case ["RESTORE" | "CLONE"]:
            return _Unknown.UNKNOWN
    return before


def _constraints_in(properties: str | None) -> dict[str, str]:
    return {
        name.lower().removeprefix(CONSTRAINT_PREFIX): expression
        for name, expression in _json(properties, dict).items()
        if name.lower().startswith(CONSTRAINT_PREFIX)
    }


def _json(text: str | None, kind: type) -> Any:
    try:
        value = json.loads(text or "")
    except ValueError:
        return kind()
    return value if isinstance(value, kind) else kind()


def _same(left: Value, right: Value) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return same_rule(left, right)
    return left is right


def _check_cause(commit: Commit, live: str | None) -> Cause:
    match commit.operation.split():
        case ["RESTORE"]:
            return "restored"
        case ["UNSET", *_]:
            return "unset"
        case ["DROP", "CONSTRAINT"]:
            return "dropped"
        case ["ADD", "CONSTRAINT"]:
            return "added"
        case _:
            return "added" if live is not None and commit.version == 0 else _replaced(commit)


def _replaced(commit: Commit) -> Cause:
    # DataFrameWriter.saveAsTable(mode="overwrite") arrives as CREATE OR REPLACE TABLE AS SELECT.
    by_write = commit.operation == "WRITE" or "isV1SaveAsTableOverwrite" in commit.parameters
    return "schema_overwritten" if by_write else "replaced"


def _may_loosen(commit: Commit) -> bool:
    operation = commit.operation
    if operation == "WRITE":
        return commit.parameters.get("mode") == "Overwrite"
    words = {"CREATE", "REPLACE", "RESTORE", "CLONE", "CHANGE"}
    return operation.split()[0] in words


def _not_null_cause(commit: Commit) -> Cause:
    match commit.operation.split():
        case ["RESTORE"]:
            return "restored"
        case ["CHANGE", *_]:
            return "dropped"
    return _replaced(commit)


def _drift(cause: Cause, commit: Commit | None) -> Drift:
    if commit is None:
        return Drift(cause)
    return Drift(
        cause=cause,
        version=commit.version,
        # PySpark gives times in the machine's zone, without saying so.
        at=commit.at.astimezone(timezone.utc),
        operation=commit.operation,
        engine=commit.engine,
        run=commit.tag.get("run"),
    )


def repairs(session: SparkSession, history: History, journal: Journal) -> tuple[Task, ...]:
    """What adds again the constraints that were applied and are not on their tables.

    As a migration adds them: violators are counted, held to the gate and quarantined first.

    Returns:
        In the order of the revisions that had added them.

    Raises:
        TableNotFoundError, NotDeltaError: A table with applied constraints is no longer one.
    """
    done = [one for one in history.revisions if one.revision in journal.applied]
    tasks = []
    for name, constraints in state_after(done).items():
        table = read_definition(session, name)
        tasks += [
            Task(managed.revision, managed.added, name, managed.added, replaces=True)
            for managed in constraints.values()
            if not is_enforced(table, managed.added)
        ]
    order = [one.revision for one in done]
    return tuple(sorted(tasks, key=lambda task: order.index(task.revision)))
