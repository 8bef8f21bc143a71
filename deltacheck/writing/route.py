"""Bring a batch where it belongs, when it cannot simply be written.

Bad rows go to quarantine first, under an id of the attempt, then good rows to the table; what
fails in between is taken back. With a batch id the table's log decides which attempt has won
(``once``).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from deltacheck.delta.commit import Fence, Frame, Tag, commit
from deltacheck.delta.failures import EngineFailure, cannot_evaluate, failure_of, violation_of
from deltacheck.delta.session import aside
from deltacheck.delta.table import latest_version
from deltacheck.errors import (
    BatchError,
    BusyTableError,
    DeltacheckError,
    NotDeltaError,
    QuarantineError,
    UsageError,
)
from deltacheck.names import TableName, quote
from deltacheck.quality.scan import ALWAYS
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.move import fence_off
from deltacheck.quarantine.place import Labels, Place, check_place, labelled, prepare
from deltacheck.rules.model import Action
from deltacheck.writing.deliver import deliver, make_table
from deltacheck.writing.judge import OUTSIDE, Ground, ground
from deltacheck.writing.once import (
    ROWS,
    Standing,
    abandon,
    begin,
    find_commit,
    remove_attempt,
    settle,
    standing,
)
from deltacheck.writing.request import Request
from deltacheck.writing.result import WriteResult
from deltacheck.writing.seen import BATCH, view
from deltacheck.writing.survey import Survey
from deltacheck.writing.verdict import Refusal, Verdict, named_rule, reach_verdict
from deltacheck.writing.watch import not_looked_at
from deltacheck.writing.whole import failures

log = logging.getLogger("deltacheck")

_TRIES = 5
"""How often an attempt makes way for another attempt at the same batch."""


@dataclass(frozen=True)
class Errand:
    """A batch on its way.

    Attributes:
        df: The batch, with the columns that only quarantine is to have.
        attempt: The id of this attempt, unique over all.
    """

    session: SparkSession
    df: DataFrame
    asked: Request
    known: Survey
    attempt: str

    def tag(self, detail: Mapping[str, object] | None = None) -> Tag:
        """What a commit of this attempt says of itself."""
        batch, told = self.asked.batch, dict(detail or {})
        if batch is not None and batch.query is not None:
            told["query"] = batch.query
        if batch is not None and batch.checkpoint is not None:
            told["checkpoint"] = batch.checkpoint
        return Tag(
            attempt=self.attempt,
            batch=self.asked.batch_id,
            job=self.asked.job,
            detail=told or None,
        )

    @property
    def table(self) -> TableName:
        """The table."""
        return self.asked.table


def new_attempt() -> str:
    """An id that no other attempt has."""
    return secrets.token_hex(8)


def route(
    errand: Errand, refusal: Refusal | None = None, stand: Standing | None = None
) -> WriteResult:
    """Judge a batch and bring it where it belongs.

    Args:
        refusal: Delta's refusal, where it was tried.
        stand: What earlier attempts did, where there were some.

    Raises:
        FailRuleError, GateError: The batch may not be split or quarantined.
        UsageError: A gate cannot be judged.
        BatchError: What earlier attempts did cannot be told.
        BusyTableError: Other attempts at the same batch won again and again.
        QuarantineError: The quarantine cannot be written, and the table was not tried.
        PySparkException, Py4JJavaError: Delta's refusal, with a QuarantineError as its cause,
            where the quarantine cannot be written; or whatever else Spark or Delta raises.
    """
    try:
        return _route(errand, refusal, stand or Standing())
    except (QuarantineError, NotDeltaError) as problem:
        if refusal is None:
            raise
        raise refusal.error from problem


def _route(errand: Errand, refusal: Refusal | None, stand: Standing) -> WriteResult:
    check_names(errand.df, errand.asked)
    base = ground(errand.session, errand.df, errand.asked, errand.known)
    _check_unjudged(base, errand.asked)
    verdict = _verdict(errand, base, refusal)
    for _ in range(_TRIES):
        try:
            result = _settled(errand, verdict, stand)
        except _Refused as again:
            log.warning(
                "%s refused rows for %s that are good by its rules; the batch goes to "
                "quarantine whole",
                errand.table,
                again.rule,
            )
            verdict, stand = replace(verdict, fate="batch", rule=again.rule), again.stand
            errand = replace(errand, attempt=new_attempt())
            continue
        if result is not None:
            return result
        assert errand.asked.batch is not None, "only a batch with an id makes way"
        stand = standing(errand.session, errand.table, errand.asked.batch)
        if stand.decision is not None:
            return repeated(errand, stand)
        errand = replace(errand, attempt=new_attempt())
    raise BusyTableError(
        f"Other attempts at batch {errand.tag().batch} of {errand.table} won again and again.",
        hint="See which job writes the same batch at the same time.",
        table=str(errand.table),
    )


def _verdict(errand: Errand, base: Ground, refusal: Refusal | None) -> Verdict:
    """Judge a batch; by its warn rules as well, if they can be evaluated."""

    def reached(ground: Ground) -> Verdict:
        return reach_verdict(errand.df, ground, errand.asked, errand.known, refusal)

    warned = tuple(r for r in base.rules if r.action is Action.WARN and r.gate is None)
    try:
        return reached(base)
    except EngineFailure as error:
        if not warned or violation_of(error) is not None or not cannot_evaluate(error):
            raise
    not_looked_at(errand.table, [rule.name for rule in warned])
    return reached(base.without(warned))


def _check_unjudged(base: Ground, asked: Request) -> None:
    """Whether all warn rules can be judged before the write; nobody judges them afterwards."""
    for rule in base.unjudged:
        if rule.action is not Action.WARN:
            continue
        if rule.gate is not None:
            raise UsageError(
                f"The gate of the rule {rule.name} cannot be held against a batch for "
                f"{asked.table}: it reads a column whose values only the write makes. Nothing "
                "was written.",
                hint="Leave out the gate, or have Delta enforce the rule.",
                table=str(asked.table),
                rule=rule.name,
            )
        log.warning(
            "%s: the rule %s was not looked at, the write makes values that it reads",
            asked.table,
            rule.name,
        )


def deliver_as_is(errand: Errand, rows: DataFrame | None = None, slot: int = 1) -> None:
    """Write a batch to the table as it came.

    Args:
        rows: The batch; default: the errand's.
    """
    asked = errand.asked
    deliver(
        errand.session,
        asked,
        errand.known,
        (errand.df if rows is None else rows).drop(*asked.keep),
        errand.tag(),
        _fence(errand, slot),
    )


def repeated(errand: Errand, stand: Standing) -> WriteResult:
    """What became of a batch that was written before; completes what was left undone."""
    batch, decision = errand.asked.batch, stand.decision
    assert batch is not None
    assert decision is not None
    winner = str(decision.tag["attempt"])
    settle(errand.session, batch, stand, errand.tag(), winner)
    told: Mapping[str, Any] = decision.tag.get("detail", {})
    quarantined = int(told.get("quarantined", 0))
    written = told.get("written")
    result = WriteResult(
        ok=not (quarantined and written == 0),
        table=str(errand.table),
        route=told.get("route", "clean"),
        quarantine=told.get("quarantine"),
        quarantined=quarantined,
        dropped=int(told.get("dropped", 0)),
        bad=int(told.get("bad", 0)),
        rule=told.get("rule"),
        broken=dict(told.get("broken", {})),
        checks={
            check: said["message"]
            for check, said in told.get("checks", {}).items()
            if said["state"] == "failed"
        },
        batch_id=batch.id,
        repeated=True,
        _session=errand.session,
        _attempt=winner,
        _rows=written,
        _landed=decision,
    )
    log.info("%s: batch %s had been written before", errand.table, batch.id)
    return result


def check_names(df: DataFrame, asked: Request) -> None:
    """Whether a quarantine can hold a batch's columns beside its own.

    Raises:
        QuarantineError: A column has a name that is taken.
    """
    ours = {name.lower() for name in (*own.OWN.names, BATCH, OUTSIDE, ALWAYS)}
    for name in df.columns:
        if name.lower() in ours:
            raise QuarantineError(
                f"The batch for {asked.table} has a column {name}, a name that quarantine tables "
                "keep for themselves; nothing was written.",
                hint="Rename the column.",
                table=str(asked.table),
            )


class _Refused(Exception):  # noqa: N818  (never leaves this module)
    """Delta refused the rows that were judged good."""

    def __init__(self, rule: str | None, stand: Standing) -> None:
        super().__init__()
        self.rule, self.stand = rule, stand


def _settled(errand: Errand, verdict: Verdict, stand: Standing) -> WriteResult | None:
    """One attempt; None where another attempt at the same batch has won meanwhile."""
    batch, slot = errand.asked.batch, stand.slot
    place = None
    if verdict.fate == "batch" or (verdict.fate == "rows" and verdict.counts.quarantine):
        rows = _quarantine_rows(errand, verdict)
        place = quarantine_place(errand.session, errand.asked, errand.known, rows, errand.tag())
        if batch is not None:
            if not errand.known.exists:
                # The table's log decides, so there has to be one.
                rows_of_table = verdict.good.drop(*errand.asked.keep)
                make_table(errand.session, errand.asked, rows_of_table)
            slot += 1
            if not begin(errand.session, errand.table, batch, errand.tag(), slot, place.name):
                return None
            begun = stand.attempts | {errand.attempt}
            stand = replace(stand, slot=slot, attempts=begun, places=stand.places | {place.name})
        _quarantine(errand, verdict, place, rows, slot)
        if batch is not None and not _has_landed(errand, place, slot):
            return None
    result = _result(errand, verdict, place)
    _decide(errand, verdict, place, result, stand)
    if batch is not None:
        landed = find_commit(errand.session, errand.table, errand.attempt)
        if landed is None:
            return None
        settle(errand.session, batch, stand, errand.tag(), errand.attempt)
        result = replace(result, _landed=landed)
    return result


def _fence(errand: Errand, slot: int) -> Fence | None:
    return None if errand.asked.batch is None else errand.asked.batch.fence(slot)


def _quarantine_rows(errand: Errand, verdict: Verdict) -> DataFrame:
    return view(verdict.bad, verdict.ground.seen, *_also(verdict.ground))


def _also(base: Ground) -> tuple[str, ...]:
    # A batch that is seen as it came has the column already.
    return () if base.seen.as_it_came else (quote(own.RULES),)


def quarantine_place(
    session: SparkSession, asked: Request, known: Survey, rows: DataFrame, tag: Tag
) -> Place:
    """The quarantine of a table, made or widened where it cannot take the rows yet.

    Raises:
        QuarantineError: It cannot be made or widened, or its name is taken.
        NotDeltaError: There is something else of its name.
    """
    schema = rows.drop(own.RULES).schema
    fit = check_place(session, asked.table, schema, known.quarantine)
    if not fit.missing:
        return Place(asked.table, known.quarantine, fit.columns)
    # Its statements take their tags from the session's settings, which other threads share.
    with aside(session) as other:
        return prepare(other, asked.table, schema, known.quarantine, tag)


def _quarantine(errand: Errand, verdict: Verdict, place: Place, rows: DataFrame, slot: int) -> None:
    version = latest_version(errand.session, errand.table) if errand.known.exists else 0
    labels = labels_of(errand.asked, errand.tag(), verdict.rule, version)
    tag = replace(errand.tag(), step=ROWS)
    send(errand.session, place, rows, labels, tag, _fence(errand, slot))


def _has_landed(errand: Errand, place: Place, slot: int) -> bool:
    """Whether the quarantine has the rows of an attempt that began; False where another has won.

    Raises:
        BatchError: The quarantine remembers a batch of that id from another table.
    """
    batch = errand.asked.batch
    assert batch is not None
    if find_commit(errand.session, place.name, errand.attempt, ROWS) is not None:
        return True
    now = standing(errand.session, errand.table, batch)
    if now.decision is None and now.slot <= slot:
        # Delta skips what it takes for a write of long ago.
        raise BatchError(
            f"The quarantine {place.name} has had batch {batch.id} before, and the history of "
            f"{errand.table} does not know it: the table was made anew. Nothing was written.",
            hint="Give the batch, or the stream, a new id; or rename or drop the quarantine of "
            "the old table.",
            table=str(errand.table),
        )
    return False


def labels_of(asked: Request, tag: Tag, rule: str | None, version: int) -> Labels:
    """What the quarantine says of the rows of a batch.

    Args:
        rule: The rule that Delta named.
        version: The table's version that they were meant for.
    """
    return Labels(
        source=asked.source,
        attempt=str(tag.attempt),
        version=version,
        batch=tag.batch,
        job=tag.job,
        rule=rule,
    )


def send(
    session: SparkSession,
    place: Place,
    rows: DataFrame,
    labels: Labels,
    tag: Tag,
    fence: Fence | None,
) -> None:
    """Append judged rows to a quarantine.

    Raises:
        QuarantineError: It cannot be written.
    """
    write = Frame(labelled(rows, place, labels, own.RULES))
    try:
        commit(session, place.name, write, tag=tag, fence=fence, tries=_TRIES)
    except EngineFailure as error:
        failure = failure_of(error)
        raise QuarantineError(
            f"The quarantine {place.name} cannot be written: Spark says "
            f"{failure.condition or failure.kind}. The batch is in neither {place.source} nor its "
            "quarantine.",
            hint="Check the quarantine's place and your rights there, then write the batch again.",
            table=str(place.source),
        ) from None


def _decide(
    errand: Errand,
    verdict: Verdict,
    place: Place | None,
    result: WriteResult,
    stand: Standing,
) -> None:
    """Make the commit that decides; where it fails, take back what went before."""
    asked, fence = errand.asked, _fence(errand, stand.slot + 1)
    tag = errand.tag(_told(result))
    try:
        if verdict.fate != "batch":
            rows = verdict.good.drop(*asked.keep)
            deliver(errand.session, asked, errand.known, rows, tag, fence)
        elif fence is not None:
            fence_off(errand.session, errand.table, tag, fence)
    except (*EngineFailure, DeltacheckError) as error:
        if place is not None:
            if _take_back(errand, place, stand):
                return
            stand = stand if fence is None else replace(stand, slot=stand.slot + 1)
        violation = violation_of(error)
        if violation is None or not violation.certain or verdict.ground.lacks_mandatory:
            raise
        named = named_rule(violation, verdict.ground)
        rule = verdict.ground.rule(named)
        if rule is not None and rule.action is Action.FAIL:
            raise
        raise _Refused(named, stand) from None


def _take_back(errand: Errand, place: Place, stand: Standing) -> bool:
    """Undo an attempt whose last commit failed; True where that commit is there after all."""
    batch = errand.asked.batch
    if batch is not None:
        if not abandon(errand.session, errand.table, batch, errand.tag(), stand.slot + 1):
            return True
    elif find_commit(errand.session, errand.table, errand.attempt) is not None:
        return True
    remove_attempt(errand.session, place.name, errand.tag())
    return False


def _result(errand: Errand, verdict: Verdict, place: Place | None) -> WriteResult:
    counts, fate = verdict.counts, verdict.fate
    whole = fate == "batch"
    written = {"batch": 0, "clean": counts.rows}.get(fate, counts.rows - counts.bad)
    quarantined = counts.rows if whole else counts.quarantine if place is not None else 0
    return WriteResult(
        ok=written > 0 or quarantined == 0,
        table=str(errand.table),
        route=fate,
        quarantine=None if place is None else str(place.name),
        quarantined=quarantined,
        dropped=0 if whole else counts.drop,
        bad=counts.bad,
        rule=verdict.rule if fate != "clean" else None,
        broken=verdict.broken,
        checks=failures(verdict.checked),
        batch_id=errand.tag().batch,
        _session=errand.session,
        # A batch without an id that is quarantined whole leaves no commit in the table.
        _attempt=None if whole and errand.asked.batch is None else errand.attempt,
        _rows=written,
        _came=counts.rows,
        _checked=verdict.checked,
    )


def _told(result: WriteResult) -> dict[str, object]:
    """What the deciding commit says became of the batch."""
    told = {
        "route": result.route,
        "written": result.written,
        "quarantined": result.quarantined,
        "dropped": result.dropped,
        "bad": result.bad,
        "broken": dict(result.broken),
        "checks": {one.check.name: one.said.told() for one in result._checked},
        "quarantine": result.quarantine,
        "rule": result.rule,
    }
    return {key: value for key, value in told.items() if value not in (None, {})}
