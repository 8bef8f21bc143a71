"""What quarantine tables hold, in numbers: no value of a row."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Literal

from deltacheck.names import quote
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.fates import Fates, read_fates
from deltacheck.quarantine.holding import UNCLAIMED, Holding, Selection, is_state

Note = Literal["", "restored", "unsettled"]


@dataclass(frozen=True)
class Held:
    """Quarantined rows of one table that have rules, origin, run and state in common.

    Attributes:
        rules: All the rules that the rows broke; empty for good rows of a bad batch.
        source: upgrade, write, guard or overwrite.
        run: The run, the batch or the attempt that they came with.
        state: held, released or discarded.
        oldest: When the first of them came, in UTC.
        newest: When the last of them came, in UTC.
        claimed: Held rows that a release has claimed and not finished.
        note: ``restored``: a RESTORE has brought them back to the table; ``unsettled``: the
            run that moved them has not ended, so they may still be in the table; or their batch
            is not decided, and its retry will write it.
    """

    table: str
    quarantine: str
    rules: tuple[str, ...]
    source: str
    run: str
    state: Literal["held", "released", "discarded"]
    rows: int
    oldest: datetime
    newest: datetime
    claimed: int = 0
    note: Note = ""


def count_held(place: Holding, selection: Selection) -> tuple[Held, ...]:
    """Count the rows of a quarantine table; writes nothing.

    Raises:
        ExpressionError: The condition is not one about one row of this table.
    """
    if place.held is None:
        return ()
    fates = Fates()
    if place.table is not None:
        fates = read_fates(place.session, place.source, place.name, place.ledger)
    rules, source, state, at = map(quote, (own.RULES, own.SOURCE, own.STATE, own.AT))
    origin = f"coalesce({quote(own.RUN)}, {quote(own.BATCH)}, {quote(own.ATTEMPT)})"
    note = (
        f"CASE WHEN NOT {is_state(own.HELD)} THEN '' WHEN {fates.is_restored} THEN 'restored' "
        f"WHEN {fates.is_unsettled} OR {fates.is_begun} THEN 'unsettled' ELSE '' END"
    )
    rows = place.session.sql(
        f"SELECT {rules} AS rules, {source} AS source, {origin} AS run, {state} AS state, "
        f"{note} AS note, count(*) AS rows, "
        f"count_if({is_state(own.HELD)} AND NOT {UNCLAIMED}) AS claimed, "
        f"unix_micros(min({at})) AS oldest, unix_micros(max({at})) AS newest "
        f"FROM {place.name.sql} WHERE {selection.predicate(place)} "
        "GROUP BY ALL ORDER BY oldest, run, rules, state"
    ).collect()
    return tuple(
        Held(
            table=str(place.source),
            quarantine=str(place.name),
            rules=tuple(row["rules"]),
            source=row["source"],
            run=row["run"],
            state=row["state"],
            rows=row["rows"],
            oldest=_time(row["oldest"]),
            newest=_time(row["newest"]),
            claimed=row["claimed"],
            note=row["note"],
        )
        for row in rows
    )


def _time(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=micros)
