"""What a person wants to know of a table before choosing the hour of an upgrade.

Only reads: the table's metadata and its history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pyspark.sql import SparkSession

from deltacheck.delta.table import Commit, Table, frame, history, read_table
from deltacheck.delta.violators import any_violator
from deltacheck.migrate.preflight import Look
from deltacheck.migrate.results import Outlook, Writer

_COMMITS = 200
_FEATURE = "checkConstraints"
FEATURE_OF_CHECKS = f"the table feature {_FEATURE} (legacy tables: writer version 3)"
"""What the first CHECK constraint brings to a table for good, for messages."""

_DAY = 86_400.0


def outlook(session: SparkSession, looks: Iterable[Look]) -> tuple[Outlook, ...]:
    """The outlook of each table that gets a new constraint."""
    return tuple(_of(session, look) for look in looks if look.new and look.found is not None)


def _of(session: SparkSession, look: Look) -> Outlook:
    name = look.name
    assert look.found is not None
    where = any_violator({key: add.expression for key, add in look.new.items()})
    # Delta prunes a scan's files by their statistics before it says which they are.
    read = frame(session, name, look.found.version).where(where).inputFiles()
    table = read_table(session, name)
    return Outlook(
        table=str(name),
        files=table.files,
        files_read=len(read),
        bytes=table.bytes,
        count_seconds=look.seconds,
        protocol=protocol_change(table),
        writers=writers(history(session, name, limit=_COMMITS)),
    )


def protocol_change(table: Table) -> str:
    """What the first CHECK constraint of a table changes for other writers."""
    if _FEATURE in table.features:
        return ""
    return (
        f"{table.name} gains {FEATURE_OF_CHECKS} for good; a writer that does not know it can no "
        "longer write to the table."
    )


def writers(commits: list[Commit]) -> tuple[Writer, ...]:
    """Who made commits, deltacheck apart, busiest first.

    Args:
        commits: Newest first.
    """
    if not commits:
        return ()
    span = max((commits[0].at - commits[-1].at).total_seconds(), 1.0)
    made = Counter(
        (commit.operation, commit.engine or "unknown") for commit in commits if not commit.tag
    )
    return tuple(
        Writer(operation, engine, number, round(number * _DAY / max(span, _DAY), 2))
        for (operation, engine), number in made.most_common()
    )
