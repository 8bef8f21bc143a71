"""What quarantine tables hold, in numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from pyspark.sql import SparkSession

from deltacheck.delta.table import read_table
from deltacheck.errors import TableNotFoundError
from deltacheck.names import TableName, quote
from deltacheck.quarantine import layout as own


@dataclass(frozen=True)
class Held:
    """Quarantined rows of one table that have rules, origin, run and state in common.

    Attributes:
        rules: All the rules that the rows broke; empty for good rows of a bad batch.
        source: upgrade, write or guard.
        run: The run, the batch or the attempt that they came with.
        oldest: When the first of them came, in UTC.
        newest: When the last of them came, in UTC.
    """

    table: str
    quarantine: str
    rules: tuple[str, ...]
    source: str
    run: str
    state: str
    rows: int
    oldest: datetime
    newest: datetime


def list_held(
    session: SparkSession, places: Iterable[tuple[TableName, TableName]]
) -> tuple[Held, ...]:
    """Count the rows of quarantine tables; writes nothing.

    Args:
        places: Tables, each with its quarantine; a quarantine that is not there is empty.
    """
    found: list[Held] = []
    for table, quarantine in places:
        try:
            read_table(session, quarantine)
        except TableNotFoundError:
            continue
        rules, source, state, at = map(quote, (own.RULES, own.SOURCE, own.STATE, own.AT))
        origin = f"coalesce({quote(own.RUN)}, {quote(own.BATCH)}, {quote(own.ATTEMPT)})"
        rows = session.sql(
            f"SELECT {rules} AS rules, {source} AS source, {origin} AS run, {state} AS state, "
            f"count(*) AS rows, unix_micros(min({at})) AS oldest, unix_micros(max({at})) AS newest "
            f"FROM {quarantine.sql} GROUP BY ALL ORDER BY oldest, run, rules"
        ).collect()
        found += [
            Held(
                table=str(table),
                quarantine=str(quarantine),
                rules=tuple(row["rules"]),
                source=row["source"],
                run=row["run"],
                state=row["state"],
                rows=row["rows"],
                oldest=_time(row["oldest"]),
                newest=_time(row["newest"]),
            )
            for row in rows
        ]
    return tuple(found)


def _time(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=micros)
