"""Guard a write of the user's own: MERGE, ``insertInto``, ``writeTo``, anything.

The write is attempted, and Delta judges what it would put into the table. Only once Delta has
refused it are the source rows looked at: those that break a rule by themselves are told apart,
and the batch is quarantined whole, or without them the write is attempted again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession

from deltacheck.delta.commit import Fence, Frame, Tag, commit
from deltacheck.delta.failures import EngineFailure, failure_of, violation_of
from deltacheck.delta.log import quiet_query_loggers
from deltacheck.delta.table import latest_version, read_table
from deltacheck.errors import (
    ExpressionError,
    NotDeltaError,
    QuarantineError,
    UsageError,
)
from deltacheck.names import literal, quote
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.place import Labels, labelled, read_place
from deltacheck.rules.expression import parse_rule
from deltacheck.writing.judge import BatchRule, Ground, batch_rules
from deltacheck.writing.once import remove_attempt
from deltacheck.writing.request import OnQuarantine, Request, check_frame, request
from deltacheck.writing.result import WriteResult
from deltacheck.writing.route import check_names, new_attempt, quarantine_place
from deltacheck.writing.seen import AS_IT_CAME
from deltacheck.writing.survey import Survey, survey
from deltacheck.writing.verdict import Refusal, Verdict, judge_source
from deltacheck.writing.write import quarantined_error, tell

log = logging.getLogger("deltacheck")

_TRIES = 5


def guard(
    df: DataFrame,
    table: str,
    action: Callable[[DataFrame], Any],
    route: Literal["batch", "rows"] = "batch",
    *,
    batch_id: object = None,
    keep: str | Iterable[str] = (),
    quarantine: str | None = None,
    max_bad: str | int | None = None,
    strict: bool = False,
    job: str | None = None,
    on_quarantine: OnQuarantine | None = None,
) -> WriteResult:
    """Do a write of your own; when Delta refuses it for a rule, quarantine its source rows.

    ::

        def merge(rows):
            rows.createOrReplaceTempView("updates")
            rows.sparkSession.sql("MERGE INTO shop.orders t USING updates s ON ...")

        deltacheck.guard(updates, "shop.orders", merge)

    MERGE and UPDATE are judged by Delta on the rows that result, so source rows are never
    judged before. ``broken`` of the result counts those that break a rule by themselves, as
    far as they have its columns; where it is empty, no single row could be blamed.

    Args:
        df: The source rows.
        table: The table that the action writes to, which must be there.
        action: Writes rows in one commit; is given ``df`` without the columns of ``keep``.
        route: What happens on a violation. ``batch``: the source rows are quarantined whole.
            ``rows``: those that break a rule by themselves are quarantined and the action is
            done with the others; where Delta refuses these as well, all are quarantined.
        batch_id: An id under which the batch is quarantined at most once. Whether a successful
            action may run twice is its own affair. Not with ``route="rows"``.
        keep: Columns that go to quarantine and not to the action.
        quarantine, max_bad, strict, job, on_quarantine: As for ``write``.

    Returns:
        What became of the batch; ``written`` is None where the action succeeded.

    Raises:
        BatchQuarantined: See ``strict``.
        FailRuleError: Delta named a ``fail`` rule, or a source row breaks one; nothing was
            quarantined.
        TableNotFoundError: There is no such table.
        UsageError: The arguments contradict each other or the batch.
        Exception: Whatever else the action raises, as it came; and Delta's refusal, with a
            QuarantineError as its cause, where the quarantine cannot be written.
    """
    asked = request(
        table,
        route=route,
        batch_id=batch_id,
        keep=keep,
        quarantine=quarantine,
        max_bad=max_bad,
        strict=strict,
        create=False,
        job=job,
        on_quarantine=on_quarantine,
    )
    asked = replace(asked, source=own.GUARD)
    if asked.batch is not None and asked.route == "rows":
        raise UsageError(
            f'A guarded write to {table} cannot have both a batch_id and route="rows": deltacheck '
            "cannot tell whether your action ran before. Nothing was done.",
            hint='Leave one out; route="batch" quarantines at most once per id.',
            table=table,
        )
    check_frame(df, asked)
    result = _guarded(df, asked, action)
    tell(result, asked)
    if asked.strict and not result.ok:
        raise quarantined_error(result)
    return result


def _guarded(df: DataFrame, asked: Request, action: Callable[[DataFrame], Any]) -> WriteResult:
    session = df.sparkSession
    known = survey(session, asked)
    if (earlier := _earlier(session, asked, known)) is not None:
        return earlier
    refusal = _attempt(df, asked, action)
    if refusal is None:
        return WriteResult(
            ok=True,
            table=str(asked.table),
            route="clean",
            batch_id=None if asked.batch is None else asked.batch.id,
            _session=session,
        )
    with quiet_query_loggers():
        try:
            return _quarantined(df, asked, known, action, refusal)
        except (QuarantineError, NotDeltaError) as problem:
            raise refusal.error from problem


def _attempt(df: DataFrame, asked: Request, action: Callable[[DataFrame], Any]) -> Refusal | None:
    """Do the action; Delta's refusal, or None where it succeeded."""
    try:
        with quiet_query_loggers():
            action(df.drop(*asked.keep))
    except EngineFailure as error:
        violation = violation_of(error)
        if violation is None:
            raise
        return Refusal(error, violation)
    return None


def _earlier(session: SparkSession, asked: Request, known: Survey) -> WriteResult | None:
    """What became of a batch that was quarantined before under its id."""
    if asked.batch is None or read_place(session, asked.table, known.quarantine) is None:
        return None
    place = known.quarantine
    mine = f"{quote(own.BATCH)} = {literal(asked.batch.id)} AND {quote(own.SOURCE)} = '{own.GUARD}'"
    rows = session.sql(
        f"SELECT rule, count(*) AS rows, max({quote(own.RULE)}) AS named FROM "
        f"(SELECT explode(array_append({quote(own.RULES)}, '')) AS rule, {quote(own.RULE)} "
        f"FROM {place.sql} WHERE {mine}) GROUP BY rule"
    ).collect()
    counts = {row["rule"]: row["rows"] for row in rows}
    if not counts:
        return None
    total = counts.pop("")
    return WriteResult(
        ok=False,
        table=str(asked.table),
        route="batch",
        quarantine=str(place),
        quarantined=total,
        rule=rows[0]["named"],
        broken=counts,
        batch_id=asked.batch.id,
        repeated=True,
        _session=session,
        _rows=0,
    )


def _quarantined(
    df: DataFrame,
    asked: Request,
    known: Survey,
    action: Callable[[DataFrame], Any],
    refusal: Refusal,
) -> WriteResult:
    session = df.sparkSession
    check_names(df, asked)
    table = read_table(session, asked.table)
    rules = batch_rules(known, table)
    there = frozenset(name.lower() for name in df.columns)
    judged = tuple(rule for rule in rules if rule.enforced and _can_judge(rule, there))
    base = Ground(table, AS_IT_CAME, judged, tuple(rule for rule in rules if rule not in judged))
    verdict = judge_source(df, base, asked, refusal)
    if verdict.fate == "rows":
        tag = Tag(attempt=new_attempt(), job=asked.job)
        sent = verdict.counts.quarantine > 0
        if sent:
            _send(session, asked, known, verdict, tag)
        again: Refusal | None = refusal
        try:
            again = _attempt(verdict.good, asked, action)
        finally:
            if sent and again is not None:
                remove_attempt(session, known.quarantine, tag)
        if again is None:
            return _told(session, asked, known, verdict)
        log.warning("%s refused the other rows of a guarded batch as well", asked.table)
        verdict = replace(verdict, fate="batch")
    batch = None if asked.batch is None else asked.batch.id
    tag = Tag(attempt=new_attempt(), batch=batch, job=asked.job)
    _send(session, asked, known, verdict, tag)
    return _told(session, asked, known, verdict)


def _can_judge(rule: BatchRule, columns: frozenset[str]) -> bool:
    try:
        read = parse_rule(rule.sql).columns
    except ExpressionError:
        return False
    return all(path[0].lower() in columns for path in read)


def _send(session: SparkSession, asked: Request, known: Survey, verdict: Verdict, tag: Tag) -> None:
    rows = verdict.bad
    place = quarantine_place(session, asked, known, rows, tag)
    labels = Labels(
        source=own.GUARD,
        attempt=str(tag.attempt),
        version=latest_version(session, asked.table),
        batch=tag.batch,
        job=asked.job,
        rule=verdict.rule,
    )
    fence = None if tag.batch is None else Fence(f"deltacheck-guard/{tag.batch}", 1)
    write = Frame(labelled(rows, place, labels, own.RULES))
    try:
        commit(session, place.name, write, tag=tag, fence=fence, tries=_TRIES)
    except EngineFailure as error:
        raise QuarantineError(
            f"The quarantine {place.name} cannot be written: Spark says "
            f"{failure_of(error).condition or failure_of(error).kind}. {asked.table} and its "
            "quarantine are as they were.",
            hint="Check the quarantine's place and your rights there, then do the write again.",
            table=str(asked.table),
        ) from None


def _told(session: SparkSession, asked: Request, known: Survey, verdict: Verdict) -> WriteResult:
    whole, counts = verdict.fate == "batch", verdict.counts
    return WriteResult(
        ok=not whole and counts.rows > counts.bad,
        table=str(asked.table),
        route=verdict.fate,
        quarantine=str(known.quarantine) if whole or counts.quarantine else None,
        quarantined=counts.rows if whole else counts.quarantine,
        dropped=0 if whole else counts.drop,
        rule=verdict.rule,
        broken=verdict.broken,
        batch_id=None if asked.batch is None else asked.batch.id,
        _session=session,
        _rows=0 if whole else None,
    )
