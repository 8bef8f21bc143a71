"""A batch as a whole, before it is written: its checks stop it, quarantine it, or warn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from deltacheck.delta.table import partition_columns
from deltacheck.errors import CheckError, UsageError
from deltacheck.names import quote
from deltacheck.quality.batch import BatchResult, check_batch
from deltacheck.quality.results import Outcome
from deltacheck.rules.checks import BatchTest, BrokenShare, OnFailure, Reconcile, Unique
from deltacheck.writing.deliver import is_dynamic
from deltacheck.writing.judge import Counts, Ground, breaks
from deltacheck.writing.request import Request
from deltacheck.writing.survey import Survey

log = logging.getLogger("deltacheck")


@dataclass(frozen=True)
class Whole:
    """What the checks say of a batch that may go on.

    Attributes:
        results: What each of them says.
        quarantined_by: The first that failed for which the batch goes to quarantine.
    """

    results: tuple[BatchResult, ...] = ()
    quarantined_by: str | None = None


def failures(results: Sequence[BatchResult]) -> dict[str, str]:
    """Check to why it failed, of those that did."""
    return {one.check.name: one.outcome.message for one in results if one.outcome.state == "failed"}


def check_figures(asked: Request, known: Survey) -> None:
    """Whether the checks have what they need: figures of the job, and rules that are known.

    Raises:
        UsageError: One lacks it; nothing was looked at.
    """
    for check in known.checks:
        lacking = _lacking(check.test, asked, known)
        if lacking is not None:
            what, hint = lacking
            raise UsageError(
                f"The check {check.name} of batches for {asked.table} needs {what}; nothing was "
                "written.",
                hint=hint,
                table=str(asked.table),
                rule=check.name,
            )


def _lacking(test: BatchTest, asked: Request, known: Survey) -> tuple[str, str] | None:
    """What a test needs and has not, and what to do about it."""
    if isinstance(test, Reconcile) and test.figure is not None:
        if test.figure in asked.figures:
            return None
        hint = f'Give it with the batch: figures={{"{test.figure}": ...}}.'
        return f"the figure {test.figure}", hint
    if isinstance(test, BrokenShare) and test.rule is not None:
        if test.rule.lower() in {*known.declared, *map(str.lower, known.constraints)}:
            return None
        return f"the rule {test.rule}", "Give the rule with the batch, or name a declared one."
    return None


def check_whole(
    pinned: DataFrame, counts: Counts, base: Ground, asked: Request, known: Survey
) -> Whole:
    """Run the checks of a batch that is pinned with the names of the rules that each row breaks.

    Args:
        counts: Of its rows.

    Raises:
        CheckError: One of them says stop, or a batch without rows was to be quarantined.
    """
    if not known.checks:
        return Whole()
    rest = _rest(pinned.sparkSession, asked, known)
    failed = _failed(base, known)
    return _judged(pinned, counts, _rules(base, known), asked, known, rest=rest, failed=failed)


def check_source(
    pinned: DataFrame,
    counts: Counts,
    rules: Mapping[str, str | None],
    asked: Request,
    known: Survey,
) -> Whole:
    """Run the checks of the pinned source of a write that is the job's own.

    What becomes of its rows is not known, so nobody can tell which of them the table has already.

    Args:
        counts: Of its rows, as far as they are known.
        rules: Key to expression over the source, of the table's rules; None: only the result of
            the write can be held against it.

    Raises:
        CheckError: As for ``check_whole``.
    """
    untold = {
        check.name: "a guarded write may change rows that the table has"
        for check in known.checks
        if isinstance(check.test, Unique) and check.test.in_table
    }
    return _judged(pinned, counts, rules, asked, known, rest=None, untold=untold)


def _judged(
    pinned: DataFrame,
    counts: Counts,
    rules: Mapping[str, str | None],
    asked: Request,
    known: Survey,
    *,
    rest: Callable[[str], str] | None,
    untold: Mapping[str, str] | None = None,
    failed: Mapping[str, str] | None = None,
) -> Whole:
    """Run the checks of a pinned batch; one that cannot be judged is told of, and stops nothing.

    Args:
        rules: Key to expression over the batch, of the table's rules; None: it has none.
        rest: From SQL of the batch to SQL of the rows that the table is to have besides.
        untold: Check that cannot be judged to why.
        failed: Check that fails, whatever its rows say, to why.
    """
    judged = {key: sql for key, sql in rules.items() if sql is not None}
    why = {**_unjudged(known, rules.keys() - judged.keys()), **(untold or {})}
    for name, reason in why.items():
        log.warning("%s: the check %s was not judged, %s", asked.table, name, reason)
    told = {name: Outcome("unjudged", reason, 0) for name, reason in why.items()}
    told |= {name: Outcome("failed", why, counts.rows) for name, why in (failed or {}).items()}
    results = check_batch(
        pinned,
        asked.table,
        [check for check in known.checks if check.name not in told],
        judged,
        asked.figures,
        rest=rest,
    )
    results += tuple(
        BatchResult(check, told[check.name]) for check in known.checks if check.name in told
    )
    faulty = [one for one in results if one.outcome.state == "failed"]
    stopping = [one for one in faulty if one.check.on_failure is OnFailure.FAIL]
    quarantining = [one for one in faulty if one.check.on_failure is OnFailure.QUARANTINE]
    if not stopping and quarantining and not counts.rows:
        # There is nothing that could be quarantined, and a green job would hide that.
        stopping = quarantining
    if stopping:
        raise _stop(stopping, results, counts, asked)
    return Whole(results, quarantining[0].check.name if quarantining else None)


def _failed(base: Ground, known: Survey) -> dict[str, str]:
    """Check of broken rules to why it fails: nobody can tell how many rows break them."""
    left_out = {rule.name.lower(): rule.name for rule in base.left_out}
    why = f"Spark failed to evaluate {', '.join(left_out.values())} on each row"
    return {
        check.name: why
        for check in known.checks
        if isinstance(check.test, BrokenShare)
        and left_out
        and (check.test.rule is None or check.test.rule.lower() in left_out)
    }


def _unjudged(known: Survey, unknown: Set[str]) -> dict[str, str]:
    """Check of broken rules to why it cannot be judged.

    Args:
        unknown: The keys of rules that the batch cannot be held against.
    """
    found = {}
    for check in known.checks:
        if isinstance(check.test, BrokenShare):
            rule = check.test.rule
            lacking = sorted(unknown if rule is None else unknown & {rule.lower()})
            if lacking:
                rules = ", ".join(lacking)
                found[check.name] = f"its rows cannot be held against {rules} before the write"
    return found


def _rules(base: Ground, known: Survey) -> dict[str, str | None]:
    """Key to expression over the pinned batch, of the table's rules; None: it has none.

    Each row says already which it breaks, as the table would hold it; but for those that are
    declared and wait for their migration.
    """
    rules: dict[str, str | None] = {key: rule.expression for key, rule in known.declared.items()}
    rules |= {rule.name.lower(): None for rule in base.unjudged}
    return rules | {rule.name.lower(): f"NOT {breaks(rule.name)}" for rule in base.rules}


def _rest(session: SparkSession, asked: Request, known: Survey) -> Callable[[str], str] | None:
    """From SQL of a batch to SQL of the rows that it leaves in the table; None: it leaves none."""
    table, where = asked.table.sql, asked.replace_where
    if not known.exists or asked.mode == "replace":
        return None
    if asked.mode == "append":
        return lambda batch: table
    if where is not None:
        return lambda batch: f"(SELECT * FROM {table} WHERE (({where}\n) IS NOT TRUE))"
    columns = partition_columns(session, asked.table) if is_dynamic(session, asked) else ()
    if not columns:
        return None
    same = " AND ".join(f"t.{quote(name)} <=> b.{quote(name)}" for name in columns)
    return lambda batch: f"(SELECT t.* FROM {table} AS t LEFT ANTI JOIN {batch} AS b ON {same})"


def _stop(
    stopping: list[BatchResult],
    results: Sequence[BatchResult],
    counts: Counts,
    asked: Request,
) -> CheckError:
    first = stopping[0]
    said = "; ".join(f"{one.check.name}: {one.outcome.message}" for one in stopping)
    return CheckError(
        f"A batch for {asked.table} fails {len(stopping)} "
        f"{'check' if len(stopping) == 1 else 'checks'} ({said}); nothing was written or "
        "quarantined.",
        hint="Look at what the batch was made of; `on_failure: warn` would let it pass.",
        table=str(asked.table),
        rule=first.check.name,
        violators=first.outcome.failed,
        rows=counts.rows,
        by={one.check.name: one.outcome.failed for one in stopping},
        broken=counts.broken,
        bad=counts.bad,
        results=results,
    )
