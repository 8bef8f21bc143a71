"""Write a batch; what breaks a rule goes to quarantine, and the job goes on.

The first attempt is the plain write: a clean batch costs one Delta commit and nothing else.
Only Delta's own invariant violation is routed; any other error passes through as it came.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from pyspark.sql import DataFrame

from deltacheck.delta.commit import USER_METADATA
from deltacheck.delta.failures import EngineFailure, cannot_evaluate, violation_of
from deltacheck.delta.log import quiet_query_loggers
from deltacheck.errors import BatchQuarantined, UsageError
from deltacheck.ledger.journal import now
from deltacheck.writing.logged import BatchLog
from deltacheck.writing.once import earlier, find_commit, standing
from deltacheck.writing.request import Figure, OnQuarantine, Request, Rules, check_frame, request
from deltacheck.writing.result import WriteResult
from deltacheck.writing.route import Errand, deliver_as_is, new_attempt, repeated, route
from deltacheck.writing.survey import Survey, looks_first, survey
from deltacheck.writing.telling import announce, stops_told
from deltacheck.writing.verdict import Refusal
from deltacheck.writing.watch import Watched, not_looked_at, watch
from deltacheck.writing.whole import check_figures

log = logging.getLogger("deltacheck")


def write(
    df: DataFrame,
    table: str,
    mode: Literal["append", "overwrite", "replace"] = "append",
    route: Literal["batch", "rows"] = "batch",
    *,
    batch_id: object = None,
    partition_by: str | Iterable[str] | None = None,
    replace_where: str | None = None,
    options: Mapping[str, object] | None = None,
    rules: Rules | None = None,
    checks: Mapping[str, object] | None = None,
    figures: Mapping[str, Figure] | None = None,
    keep: str | Iterable[str] = (),
    quarantine: str | None = None,
    max_bad: str | int | None = None,
    gate: str | int | None = None,
    strict: bool = False,
    create: bool = True,
    job: str | None = None,
    on_quarantine: OnQuarantine | None = None,
) -> WriteResult:
    """Write a batch to a table; what breaks a rule goes to quarantine.

    Args:
        df: The batch.
        table: The table, by name or path.
        mode: ``append``; ``overwrite`` the table, or the rows of ``replace_where``, or with
            the option ``partitionOverwriteMode=dynamic`` the partitions that the batch has;
            ``replace`` the table, whose columns are then those of the batch and whose rules
            stay.
        route: What happens to a batch with bad rows: ``batch``: it is quarantined whole;
            ``rows``: its good rows are written and its bad rows quarantined.
        batch_id: An id under which the batch is written once, however often it is retried.
            Without one, a retry after a crash is the caller's business.
        partition_by: The columns that partition a table which this write makes or replaces.
        replace_where: SQL for the rows that an overwrite replaces; every row of the batch must
            be one of them.
        options: Options of the DataFrame writer; a ``userMetadata`` of yours is kept beside
            deltacheck's own.
        rules: Rules for this batch, by name: a SQL expression, or what a file in
            ``constraints/`` may say about a rule. They may read columns of ``keep``, and may
            change what happens to rows that break one of the table's own rules.
        checks: Checks of this batch as a whole, by name: what a file in ``constraints/`` may
            say under ``batch:``. One of the same name as a declared one takes its place. A
            batch that has checks is pinned and looked at before it is written.
        figures: Figures that checks hold the batch against, by name: ``{"total": 1250.5}``.
        keep: Columns of the batch that go to quarantine with its rows, and not to the table.
        quarantine: Where bad rows go; default: where the table's recorded rules say, else
            ``<table>_quarantine``.
        max_bad: With ``route="rows"``: a number of rows, ``"5%"`` or ``"1/3"``; if more are
            bad, the whole batch is quarantined after all.
        gate: A number of rows, ``"5%"`` or ``"1/3"``; if more are bad, the write fails and
            nothing is written anywhere. Default: the table's own gate, where it has one.
        strict: Raise BatchQuarantined after a batch of which no row was written has been
            quarantined.
        create: Whether to make a table that is not there.
        job: A name for the job, kept with quarantined rows and in the table's history.
        on_quarantine: Called with the result after rows have been quarantined, and again where a
            batch is ``repeated``: whoever was to call it first may have died. What it raises is
            raised.

    Returns:
        What became of the batch.

    Raises:
        BatchQuarantined: See ``strict``.
        GateError: More rows are bad than a gate allows; nothing was written.
        FailRuleError: A row breaks a ``fail`` rule; nothing was written.
        CheckError: The batch fails a check that says stop; nothing was written.
        TableNotFoundError: See ``create``.
        BatchError: The table had the batch before, and its history no longer says what became
            of it.
        UsageError: The arguments contradict each other or the batch.
        DeclarationError: A rule, a check or a gate is malformed.
        QuarantineError: Rows that Delta cannot refuse were to be quarantined, and cannot be.
        PySparkException, Py4JJavaError: Whatever else Spark or Delta raises, as it came and
            with nothing written. Its text may hold values of rows. Delta's refusal of the
            batch is raised, with a QuarantineError as its cause, where the quarantine cannot
            be written.
    """
    asked = request(
        table,
        mode=mode,
        route=route,
        batch_id=batch_id,
        partition_by=partition_by,
        replace_where=replace_where,
        options=options,
        rules=rules,
        checks=checks,
        figures=figures,
        keep=keep,
        quarantine=quarantine,
        max_bad=max_bad,
        gate=gate,
        strict=strict,
        create=create,
        job=job,
        on_quarantine=on_quarantine,
    )
    result = perform(df, asked)
    if asked.strict and not result.ok:
        raise quarantined_error(result)
    return result


def perform(df: DataFrame, asked: Request) -> WriteResult:
    """Write a batch as asked, and tell who wants to know.

    Raises:
        DeltacheckError, PySparkException, Py4JJavaError: As for ``write``, without ``strict``.
    """
    check_frame(df, asked)
    session = df.sparkSession
    if asked.user_metadata is None:
        # The option that carries our tag would hide what the session says.
        asked = replace(asked, user_metadata=session.conf.get(USER_METADATA, None))
    with quiet_query_loggers():
        known = survey(session, asked)
        check_figures(asked, known)
        if known.exists:
            _check_kept(df, asked)
        errand = Errand(session, df, asked, known, new_attempt())
        logged = BatchLog(session, asked, known, errand.attempt, now())
        with stops_told(asked, known), logged.stops():
            result = _perform(errand)
        logged.add(result)
    if not known.exists and (asked.batch is not None or result.route != "batch"):
        log.warning("%s was not there and has been made; no rule guards it yet", asked.table)
    tell(result, asked, known)
    return result


def _perform(errand: Errand) -> WriteResult:
    asked, known = errand.asked, errand.known
    if looks_first(asked, known):
        stand = None
        if asked.batch is not None and known.exists:
            # What was decided stays decided, whatever rows a retry would be judged by.
            stand = earlier(errand.session, asked.table, asked.batch)
            if stand.decision is not None:
                return repeated(errand, stand)
        return route(errand, stand=stand)
    refusal = None
    try:
        watched = _watched(errand)
    except EngineFailure as error:
        violation = violation_of(error)
        if violation is None:
            raise
        refusal = Refusal(error, violation)
    # Outside of the handler, so that no error of ours carries Delta's, which tells values.
    if refusal is not None:
        return route(errand, refusal)
    landed = None
    if asked.batch is not None:
        landed = find_commit(errand.session, asked.table, errand.attempt)
        if landed is None:
            stand = standing(errand.session, asked.table, asked.batch)
            return route(errand, stand=stand) if stand.decision is None else repeated(errand, stand)
    return WriteResult(
        ok=True,
        table=str(asked.table),
        route="clean",
        broken=watched.broken(),
        batch_id=errand.tag().batch,
        _session=errand.session,
        _attempt=errand.attempt,
        _came=watched.rows_seen(),
        _landed=landed,
    )


def _watched(errand: Errand) -> Watched:
    """Write a batch as it came, and have its warn rules counted if they can be."""
    watched = watch(errand.session, errand.df, errand.asked, errand.known)
    try:
        deliver_as_is(errand, watched.rows)
    except EngineFailure as error:
        if not watched.rules or violation_of(error) is not None or not cannot_evaluate(error):
            raise
    else:
        return watched
    # Nothing was written, and a warning must not stop a job.
    deliver_as_is(errand)
    not_looked_at(errand.table, watched.rules.values())
    return Watched(errand.df)


def _check_kept(df: DataFrame, asked: Request) -> None:
    if not asked.keep:
        return
    there = {name.lower() for name in df.sparkSession.table(asked.table.sql).columns}
    for name in asked.keep:
        if name.lower() in there:
            raise UsageError(
                f"{asked.table} has a column {name}, so it cannot be kept for quarantine alone; "
                "nothing was written.",
                hint="Rename the column of the batch, or take it out of keep.",
                table=str(asked.table),
            )


def tell(result: WriteResult, asked: Request, known: Survey) -> None:
    """Log what became of a batch, and tell those who want to know of it."""
    message = _message(result)
    if message is None:
        return
    log.warning("%s", message)
    if result.quarantined and asked.on_quarantine is not None:
        asked.on_quarantine(result)
    announce(result, asked, known, message)


def _message(result: WriteResult) -> str | None:
    """What became of a batch; None: it was written as it came, or that was told before."""
    counts = ", ".join(f"{rule}: {_rows(rows)}" for rule, rows in result.broken.items())
    checks = "; ".join(f"{check}: {why}" for check, why in result.checks.items())
    why = "; ".join(filter(None, (counts, checks)))
    why = why or f"{result.rule or 'a rule'}, which no row breaks by itself"
    if result.quarantined:
        what = (
            "bad rows of a batch are quarantined" if result.ok else "nothing of a batch is written"
        )
        where = f"{_rows(result.quarantined)} in {result.quarantine}"
        return f"{result.table}: {what}, {where}; {why}"
    if result.repeated:
        return None
    if result.dropped:
        return f"{result.table}: a batch was written without {_rows(result.dropped)}; {why}"
    if result.broken or result.checks:
        return f"{result.table}: a batch was written, with warnings; {why}"
    return None


def quarantined_error(result: WriteResult) -> BatchQuarantined:
    """The error that ``strict`` asks for."""
    return BatchQuarantined(
        f"{result.table} has nothing of the batch: {_rows(result.quarantined)} are in "
        f"{result.quarantine}.",
        hint="Look at them with `deltacheck quarantine show`.",
        result=result,
        table=result.table,
        rule=result.rule,
        violators=result.quarantined,
        rows=result.quarantined,
    )


def _rows(number: int) -> str:
    return f"{number} row" if number == 1 else f"{number} rows"
