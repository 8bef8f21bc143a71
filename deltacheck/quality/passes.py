"""The passes of wrapped writes, read from the history of a table up to now. Writes nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.failures import EngineFailure
from deltacheck.delta.table import Table, history, latest_version, reaches, read_table
from deltacheck.errors import TableError, TableNotFoundError
from deltacheck.ledger.quality_log import HARVEST, Line, harvested, told_by_writers
from deltacheck.names import TableName
from deltacheck.quality.harvest import lines, written_batches
from deltacheck.quarantine.today import held_by_schema
from deltacheck.rules.model import TableRules

log = logging.getLogger("deltacheck")

_LONGEST = timedelta(days=1)
"""How long a write may take from its beginning to its commit, to be known for the same."""


@dataclass(frozen=True)
class Harvest:
    """What the histories of some tables tell that the log does not have yet.

    Attributes:
        problems: Table to why it could not be looked at.
    """

    lines: tuple[Line, ...]
    problems: Mapping[TableName, Exception]

    def of_tables_there(self) -> tuple[Line, ...]:
        """The lines, where no table has another problem than that it is not there.

        Raises:
            TableError, PySparkException, Py4JJavaError: One has.
        """
        for problem in self.problems.values():
            if not isinstance(problem, TableNotFoundError):
                raise problem
        return self.lines


def harvest(
    session: SparkSession, environment: Environment, tables: Iterable[TableRules], base: Line
) -> Harvest:
    """The lines for the wrapped writes to some tables that the log does not have yet.

    One that cannot be looked at spoils no other. The last line of each table marks how far its
    history has been read; there is none where it has no commit since. Where the history does not
    reach back to where it was last read, that mark says so, and a warning does.

    Args:
        base: What all lines have in common, but for the table.

    Raises:
        LedgerError: The log cannot be used.
    """
    seen = harvested(session, environment)
    found: list[Line] = []
    problems: dict[TableName, Exception] = {}
    for declared in tables:
        about = replace(base, table=str(declared.table))
        try:
            table = read_table(session, declared.table)
            found += look_back(session, environment, table, declared, about, seen).lines
        except (TableError, *EngineFailure) as error:
            problems[declared.table] = error
    return Harvest(tuple(found), problems)


@dataclass(frozen=True)
class Passes:
    """A table's history up to its last commit.

    Attributes:
        version: That of the last commit.
        lines: Those for the wrapped writes that the log does not have yet.
    """

    version: int
    lines: tuple[Line, ...]


def look_back(
    session: SparkSession,
    environment: Environment,
    table: Table,
    declared: TableRules,
    base: Line,
    seen: Mapping[str, int],
) -> Passes:
    """As ``harvest``, of one table that has been read.

    Args:
        seen: What ``harvested`` says.
    """
    since = seen.get(table.id, -1)
    # With the last commit that the log knows of: where none came since, it tells the version.
    known = history(session, table.name, since=max(since - 1, -1))
    version = known[0].version if known else latest_version(session, table.name)
    commits = [one for one in known if one.version > since]
    if not commits:
        return Passes(version, ())
    about = replace(base, table_id=table.id, owner=declared.owner or None)
    schema = held_by_schema(table, declared.rules)
    mark = replace(about, kind=HARVEST, state="done", version=version)
    if since >= 0 and not reaches(commits, since):
        mark = replace(mark, message=_gap(str(table.name), since + 1, commits[-1].version - 1))
        log.warning("%s", mark.message)
    batches = written_batches(commits, table.constraints, schema)
    if batches:
        told = told_by_writers(session, environment, batches[0].at - _LONGEST)
        batches = [one for one in batches if one.attempt not in told]
    return Passes(version, (*lines(batches, about, declared.rules, schema), mark))


def gaps(lines: Iterable[Line]) -> tuple[str, ...]:
    """What the log lacks of some tables' histories, in a sentence for each gap."""
    return tuple(line.message for line in lines if line.kind == HARVEST and line.message)


def _gap(table: str, first: int, last: int) -> str:
    gone = f"version {first} has" if first == last else f"versions {first} to {last} have"
    return (
        f"{table}: {gone} left its history unread; what wrapped writes passed there is not in the "
        "quality log."
    )
