"""Rows that are given up: discarded with a reason, and at last purged from the quarantine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from deltacheck.delta.commit import Statement, Tag, commit
from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.delta.table import Definition
from deltacheck.errors import BusyTableError, QuarantineError, UsageError
from deltacheck.names import literal, quote
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.fates import read_fates, undone_releases
from deltacheck.quarantine.holding import UNCLAIMED, Holding, Selection, is_state

_TRIES = 20
_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes"}


@dataclass(frozen=True)
class Discarded:
    """Rows that were given up; they are in the quarantine until they are purged.

    Attributes:
        rows: How many; with ``dry_run``, that would be.
    """

    table: str
    quarantine: str
    reason: str
    rows: int = 0
    dry_run: bool = False


@dataclass(frozen=True)
class Purged:
    """Rows that were deleted from a quarantine.

    Attributes:
        rows: How many; with ``dry_run``, that would be.
        held: How many of them were held: of these there is no other copy.
        before: They came before this time, in UTC; None: at any time.
        left_behind: What of them can still be read, and until when.
    """

    table: str
    quarantine: str
    rows: int = 0
    held: int = 0
    before: datetime | None = None
    left_behind: str = ""
    dry_run: bool = False


def discard_rows(place: Holding, reason: str, selection: Selection, *, dry_run: bool) -> Discarded:
    """Give up held rows; see ``deltacheck.quarantine.discard``."""
    if not reason.strip():
        raise UsageError(
            "A reason is needed to discard rows; nothing was done.",
            hint='For example: --reason "test data".',
        )
    done = Discarded(str(place.source), str(place.name), reason, dry_run=dry_run)
    if place.held is None:
        return done
    where = f"{is_state(own.HELD)} AND {UNCLAIMED} AND {selection.predicate(place)}"
    where = _settled(place, where)
    if dry_run:
        return Discarded(*_names(place), reason, _count(place, where), dry_run=True)
    statement = (
        f"UPDATE {place.name.sql} SET {quote(own.STATE)} = '{own.DISCARDED}', "
        f"{quote(own.REASON)} = {literal(reason)} WHERE {where}"
    )
    return Discarded(*_names(place), reason, _affected(place, statement, "discard"))


def purge_rows(
    place: Holding,
    older_than: timedelta | str | None,
    selection: Selection,
    *,
    held: bool,
    dry_run: bool,
) -> Purged:
    """Delete rows from the quarantine; see ``deltacheck.quarantine.purge``."""
    if older_than is None and selection.everything:
        raise UsageError(
            "Nothing says which rows to purge; nothing was done.",
            hint="Give an age (--older-than 90d), or --where, --rule or --run.",
        )
    before = None if older_than is None else datetime.now(timezone.utc) - age(older_than)
    done = Purged(*_names(place), before=before, dry_run=dry_run)
    if place.held is None:
        return done
    is_held = is_state(own.HELD)
    parts = [selection.predicate(place)]
    # A claimed row may be on its way to the table.
    parts.append(f"(NOT {is_held} OR {UNCLAIMED})" if held else f"NOT {is_held}")
    if before is not None:
        moment = f"{before:%Y-%m-%d %H:%M:%S.%f}Z"
        parts.append(f"{quote(own.AT)} < TIMESTAMP {literal(moment)}")
    where = " AND ".join(parts)
    where = _settled(place, where) if held else _nowhere_else(place, where)
    rows, held_rows = _count(place, where), _count(place, f"{where} AND {is_held}")
    if not dry_run:
        affected = _affected(place, f"DELETE FROM {place.name.sql} WHERE {where}", "purge")
        # A DELETE of whole files may not know its number: `DeleteCommand.scala` says -1 then.
        rows = affected if affected >= 0 else rows
    return Purged(
        *_names(place),
        rows=rows,
        held=held_rows,
        before=before,
        left_behind=left_behind(place, selection) if rows else "",
        dry_run=dry_run,
    )


def _settled(place: Holding, where: str) -> str:
    """A condition, narrowed to rows that no run will write again.

    Raises:
        QuarantineError: It selects rows of a run that has not been settled.
    """
    fates = read_fates(place.session, place.source, place.name, place.ledger)
    unsettled = f"({is_state(own.HELD)} AND {fates.is_unsettled})"
    if rows := _count(place, f"{where} AND {unsettled}"):
        raise QuarantineError(
            f"{rows} of these quarantined rows of {place.source} were moved by a run that has not "
            "ended: what settles it may write them again. Nothing was done.",
            hint="Run `deltacheck upgrade` first, which settles what a dead run left; or narrow "
            "the rows with --run, --rule or --where.",
            table=str(place.source),
        )
    return f"{where} AND NOT ({unsettled})"


def _nowhere_else(place: Holding, where: str) -> str:
    """A condition, where none of its released rows has left the table by a RESTORE.

    Raises:
        QuarantineError: It selects rows whose release a RESTORE has undone, as far as the history
            tells.
    """
    undone = undone_releases(place.session, place.source, place.name, where)
    if not undone:
        return where
    listed = ", ".join(map(literal, sorted(undone)))
    rows = _count(place, f"{where} AND {quote(own.RELEASE)} IN ({listed})")
    raise QuarantineError(
        f"{rows} of these rows had been released to {place.source}, and a RESTORE of the table has "
        "undone that: they may be nowhere but here. Nothing was purged.",
        hint="Export them and write them back; then purge them with --held. Or narrow the rows "
        "with --where.",
        table=str(place.source),
    )


def age(text: timedelta | str) -> timedelta:
    """Read an age: weeks, days, hours or minutes.

    >>> age("90d").days, age("36h").days
    (90, 1)

    Raises:
        UsageError: It is none.
    """
    if isinstance(text, timedelta):
        return text
    match = re.fullmatch(r"(\d{1,6})\s*([wdhm])", text.strip().lower())
    if match is None:
        raise UsageError(
            f"{text!r} is not an age; nothing was done.",
            hint="Write a number and w, d, h or m: 90d for ninety days.",
        )
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def left_behind(place: Holding, selection: Selection) -> str:
    """What can still be read of rows that were deleted from a quarantine."""
    assert place.held is not None, "rows were deleted from it"
    kept = _duration(place.held, "delta.deletedFileRetentionDuration", "7 days")
    log = _duration(place.held, "delta.logRetentionDuration", "30 days")
    text = (
        f"Until `VACUUM {place.name}` removes them (it takes those older than {kept}), older files"
        f" of {place.name} hold the rows, and VERSION AS OF reads them; so do older "
        f"versions of {place.source} that had them."
    )
    vectors = "delta.enableDeletionVectors"
    if place.held.properties.get(vectors, "false").lower() == "true":
        text += (
            f" {place.name} has deletion vectors: its current files hold the rows too, until "
            f"`REORG TABLE {place.name} APPLY (PURGE)` rewrites them, before that VACUUM."
        )
    text += (
        f" The same holds for {place.source} where it has deletion vectors, since the rows were "
        "deleted there."
    )
    if selection.where is not None:
        text += f" The condition itself stays in the history of {place.name} for {log}."
    return text


def _duration(table: Definition, key: str, default: str) -> str:
    return table.properties.get(key, default).removeprefix("interval ")


def _names(place: Holding) -> tuple[str, str]:
    return str(place.source), str(place.name)


def _count(place: Holding, where: str) -> int:
    return place.session.table(place.name.sql).where(where).count()


def _affected(place: Holding, statement: str, step: str) -> int:
    try:
        rows = commit(
            place.session, place.name, Statement(statement), tag=Tag(step=step), tries=_TRIES
        )
    except EngineFailure as error:
        failure = failure_of(error)
        raise BusyTableError(
            f"The quarantine {place.name} cannot be written: Spark says "
            f"{failure.condition or failure.kind}; its rows are as they were.",
            hint="Check your rights there; try again when no batch arrives there.",
            table=str(place.source),
        ) from None
    return int(rows[0]["num_affected_rows"]) if rows else 0
