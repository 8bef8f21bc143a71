"""Guard a write of the user's own: MERGE, ``insertInto``, ``writeTo``, anything.

The write is attempted, and Delta judges what it would put into the table. Only once Delta has
refused it are the source rows looked at: those that break a rule by themselves are told apart,
and the batch is quarantined whole, or without them the write is attempted again. Before that
only checks of the batch as a whole look at the source, where there are some.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession

from deltacheck.delta.commit import Fence, Tag
from deltacheck.delta.failures import EngineFailure, violation_of
from deltacheck.delta.log import quiet_query_loggers
from deltacheck.delta.table import latest_version
from deltacheck.delta.warehouse import exclusive
from deltacheck.errors import (
    BatchError,
    NotDeltaError,
    QuarantineError,
    UsageError,
)
from deltacheck.ledger.journal import now
from deltacheck.names import literal, quote
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.place import read_place
from deltacheck.rules.checks import Unique
from deltacheck.rules.model import Action
from deltacheck.writing.judge import Counts, check_given
from deltacheck.writing.logged import BatchLog
from deltacheck.writing.once import ROWS, find_commit, remove_attempt
from deltacheck.writing.request import Figure, OnQuarantine, Request, Rules, check_frame, request
from deltacheck.writing.result import WriteResult
from deltacheck.writing.route import check_names, labels_of, new_attempt, quarantine_place, send
from deltacheck.writing.source import expressions, verdict_of_checks, verdict_of_refusal
from deltacheck.writing.survey import Survey, survey
from deltacheck.writing.telling import stops_told
from deltacheck.writing.verdict import Refusal, Verdict, pin
from deltacheck.writing.whole import Whole, check_figures, check_source, failures
from deltacheck.writing.write import quarantined_error, tell

log = logging.getLogger("deltacheck")


def guard(
    df: DataFrame,
    table: str,
    action: Callable[[DataFrame], Any],
    route: Literal["batch", "rows"] = "batch",
    *,
    batch_id: object = None,
    rules: Rules | None = None,
    checks: Mapping[str, object] | None = None,
    figures: Mapping[str, Figure] | None = None,
    keep: str | Iterable[str] = (),
    quarantine: str | None = None,
    max_bad: str | int | None = None,
    gate: str | int | None = None,
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
        route: What happens on a violation. ``batch``: the source rows are quarantined whole,
            those that break only ``drop`` rules included. ``rows``: those that break a rule by
            themselves are quarantined or dropped and the action is done with the others;
            where Delta refuses these as well, all are quarantined.
        batch_id: An id under which the batch is quarantined at most once. Whether a successful
            action may run twice is its own affair. Not with ``route="rows"``.
        rules: What becomes of rows that break one of the table's constraints, as for ``write``.
            A rule of another name can only warn: Delta refuses no row for it.
        checks: Checks of the source rows as a whole, as for ``write``, but for
            ``unique_in_table``: what the action does to rows that the table has is its own
            affair. The source is then pinned and looked at before the action.
        figures: Figures that checks hold the source rows against, as for ``write``.
        keep: Columns that go to quarantine and not to the action.
        gate: A number of rows, ``"5%"`` or ``"1/3"``; if more break a rule by themselves the
            write fails, and nothing is quarantined. Default: the table's own gate.
        quarantine, max_bad, strict, job, on_quarantine: As for ``write``.

    Returns:
        What became of the batch; ``written`` is None where the action succeeded.

    Raises:
        BatchQuarantined: See ``strict``.
        GateError: See ``gate``.
        FailRuleError: Delta named a ``fail`` rule, or a source row breaks one; nothing was
            quarantined.
        CheckError: The source rows fail a check that says stop; the action was not tried.
        BatchError: The batch was quarantined before, and has been purged since.
        TableNotFoundError: There is no such table.
        UsageError: The arguments contradict each other, the batch or the table.
        Exception: Whatever else the action raises, as it came; and Delta's refusal, as it came
            where it was of another table or there is no source row to quarantine, and with a
            QuarantineError as its cause where the quarantine cannot be written.
    """
    asked = request(
        table,
        route=route,
        batch_id=batch_id,
        rules=rules,
        checks=checks,
        figures=figures,
        keep=keep,
        quarantine=quarantine,
        max_bad=max_bad,
        gate=gate,
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
    _check_checks(asked)
    check_frame(df, asked)
    with quiet_query_loggers():
        known = survey(df.sparkSession, asked)
        check_figures(asked, known)
    logged = BatchLog(df.sparkSession, asked, known, new_attempt(), now())
    with stops_told(asked, known), logged.stops():
        result = _guarded(df, asked, known, action)
    logged.add(result)
    tell(result, asked, known)
    if asked.strict and not result.ok:
        raise quarantined_error(result)
    return result


def _guarded(
    df: DataFrame, asked: Request, known: Survey, action: Callable[[DataFrame], Any]
) -> WriteResult:
    session = df.sparkSession
    with quiet_query_loggers():
        _check_rules(asked, known)
        if (earlier := _earlier(session, asked, known)) is not None:
            return earlier
        whole, came = Whole(), None
        if known.checks:
            df = pin(df)
            came = df.count()
            rules = expressions(df, asked, known)
            whole = check_source(df, Counts(came), rules, asked, known)
            if whole.quarantined_by is not None:
                check_names(df, asked)
                return _set_aside(session, asked, known, verdict_of_checks(df, asked, known, whole))
        refusal = _attempt(df, asked, action)
        if refusal is None:
            return WriteResult(
                ok=True,
                table=str(asked.table),
                route="clean",
                checks=failures(whole.results),
                batch_id=asked.batch_id,
                _session=session,
                _came=came,
                _checked=whole.results,
            )
        try:
            return _quarantined(df, asked, known, action, refusal, whole)
        except (QuarantineError, NotDeltaError) as problem:
            raise refusal.error from problem


def _check_checks(asked: Request) -> None:
    for check in asked.checks.values():
        if isinstance(check.test, Unique) and check.test.in_table:
            raise UsageError(
                f"The check {check.name} of a guarded write to {asked.table} asks for rows that "
                "the table has already, which an action may change; nothing was done.",
                hint="Check that the batch is `unique`, or write it by deltacheck.write.",
                table=str(asked.table),
                rule=check.name,
            )


def _check_rules(asked: Request, known: Survey) -> None:
    check_given(known, asked)
    for rule in known.declared.values():
        if rule.on_violation is Action.WARN and rule.gate is not None:
            log.warning(
                "%s: the gate of the rule %s is not held, a guarded write makes its own rows",
                asked.table,
                rule.name,
            )
    for rule in asked.rules.values():
        if rule.on_violation is not Action.WARN and not known.enforces(rule):
            raise UsageError(
                f"{asked.table} does not enforce the rule {rule.name}, so Delta refuses no row of "
                "a guarded write for it; nothing was done.",
                hint="Add it by a migration, or filter the batch by deltacheck.judge before.",
                table=str(asked.table),
                rule=rule.name,
            )


def _attempt(df: DataFrame, asked: Request, action: Callable[[DataFrame], Any]) -> Refusal | None:
    """Do the action; Delta's refusal, or None where it succeeded."""
    try:
        with exclusive(df.sparkSession):
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
    whole: Whole,
) -> WriteResult:
    session = df.sparkSession
    check_names(df, asked)
    verdict = replace(verdict_of_refusal(df, asked, known, refusal), checked=whole.results)
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
    return _set_aside(session, asked, known, verdict)


def _set_aside(
    session: SparkSession, asked: Request, known: Survey, verdict: Verdict
) -> WriteResult:
    """Quarantine a batch whole; with an id, unless it has been before."""
    batch = asked.batch_id
    tag = Tag(attempt=new_attempt(), batch=batch, job=asked.job)
    _send(session, asked, known, verdict, tag)
    if batch is not None and _is_skipped(session, known, tag):
        # Another attempt was first, or its rows were purged after that.
        if (earlier := _earlier(session, asked, known)) is not None:
            return earlier
        raise BatchError(
            f"Batch {batch} of a guarded write to {asked.table} was quarantined before, and its "
            "rows have been purged since. Nothing was written or quarantined.",
            hint="Give the batch a new id.",
            table=str(asked.table),
        )
    return _told(session, asked, known, verdict)


def _send(session: SparkSession, asked: Request, known: Survey, verdict: Verdict, tag: Tag) -> None:
    place = quarantine_place(session, asked, known, verdict.bad, tag)
    labels = labels_of(asked, tag, verdict.rule, latest_version(session, asked.table))
    fence = None if tag.batch is None else Fence(f"deltacheck-guard/{tag.batch}", 1)
    send(session, place, verdict.bad, labels, replace(tag, step=ROWS), fence)


def _is_skipped(session: SparkSession, known: Survey, tag: Tag) -> bool:
    return find_commit(session, known.quarantine, str(tag.attempt), ROWS) is None


def _told(session: SparkSession, asked: Request, known: Survey, verdict: Verdict) -> WriteResult:
    whole, counts = verdict.fate == "batch", verdict.counts
    return WriteResult(
        ok=not whole and counts.rows > counts.bad,
        table=str(asked.table),
        route=verdict.fate,
        quarantine=str(known.quarantine) if whole or counts.quarantine else None,
        quarantined=counts.rows if whole else counts.quarantine,
        dropped=0 if whole else counts.drop,
        bad=counts.bad,
        rule=verdict.rule,
        broken=verdict.broken,
        checks=failures(verdict.checked),
        batch_id=asked.batch_id,
        _session=session,
        _rows=0 if whole else None,
        _came=counts.rows,
        _checked=verdict.checked,
    )
