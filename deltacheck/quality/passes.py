"""The passes of wrapped writes, read from the history of a table up to now. Writes nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.table import history, reaches, read_table
from deltacheck.ledger.quality_log import HARVEST, Line, harvested, told_by_writers
from deltacheck.quality.harvest import lines, written_batches
from deltacheck.quarantine.today import held_by_schema
from deltacheck.rules.model import TableRules

log = logging.getLogger("deltacheck")

_LONGEST = timedelta(days=1)
"""How long a write may take from its beginning to its commit, to be known for the same."""


def unlogged(
    session: SparkSession, environment: Environment, declared: TableRules, base: Line
) -> list[Line]:
    """The lines for the wrapped writes to a table that the log does not have yet.

    The last of them marks how far the history has been read; there is none where it has no
    commit since. Where the history does not reach back to where it was last read, that mark says
    so, and a warning does.

    Args:
        base: What all lines have in common.

    Raises:
        TableNotFoundError, NotDeltaError: There is no such table, or it is not Delta.
        LedgerError: The log cannot be used.
    """
    table = read_table(session, declared.table)
    since = harvested(session, environment, table.id)
    commits = history(session, table.name, since=since)
    if not commits:
        return []
    about = replace(base, table_id=table.id)
    schema = held_by_schema(table, declared.rules)
    names = schema | {rule.key: rule.name for rule in declared.rules}
    actions = {rule.key: rule.on_violation.value for rule in declared.rules}
    mark = replace(about, kind=HARVEST, state="done", version=commits[0].version)
    if since >= 0 and not reaches(commits, since):
        mark = replace(mark, message=_gap(str(table.name), since + 1, commits[-1].version - 1))
        log.warning("%s", mark.message)
    batches = written_batches(commits, table.constraints, schema)
    if batches:
        told = told_by_writers(session, environment, batches[0].at - _LONGEST)
        batches = [one for one in batches if one.attempt not in told]
    return [*lines(batches, about, names, actions), mark]


def gaps(lines: Iterable[Line]) -> tuple[str, ...]:
    """What the log lacks of some tables' histories, in a sentence for each gap."""
    return tuple(line.message for line in lines if line.kind == HARVEST and line.message)


def _gap(table: str, first: int, last: int) -> str:
    gone = f"version {first} has" if first == last else f"versions {first} to {last} have"
    return (
        f"{table}: {gone} left its history unread; what wrapped writes passed there is not in the "
        "quality log."
    )
