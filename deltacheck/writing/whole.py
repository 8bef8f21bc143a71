"""A batch as a whole, before it is written: its checks stop it, quarantine it, or warn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from deltacheck.errors import CheckError, UsageError
from deltacheck.quality.batch import BatchResult, check_batch
from deltacheck.rules.checks import BatchTest, BrokenShare, OnFailure, Reconcile
from deltacheck.writing.request import Request
from deltacheck.writing.survey import Survey


@dataclass(frozen=True)
class Whole:
    """What the checks say of a batch that may go on.

    Attributes:
        results: What each of them says.
        quarantined_by: The first that failed for which the batch goes to quarantine.
    """

    results: tuple[BatchResult, ...] = ()
    quarantined_by: str | None = None


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
        if test.rule.lower() in known.declared:
            return None
        return f"the rule {test.rule}", "Give the rule with the batch, or name a declared one."
    return None


def check_whole(pinned: DataFrame, asked: Request, known: Survey) -> Whole:
    """Run the checks of a batch that is pinned.

    Raises:
        CheckError: One of them says stop, or a batch without rows was to be quarantined.
    """
    if not known.checks:
        return Whole()
    results = check_batch(
        pinned,
        asked.table,
        known.checks,
        {key: rule.expression for key, rule in known.declared.items()},
        asked.figures,
        exists=known.exists,
    )
    failed = [one for one in results if one.outcome.state == "failed"]
    stopping = [one for one in failed if one.check.on_failure is OnFailure.FAIL]
    quarantining = [one for one in failed if one.check.on_failure is OnFailure.QUARANTINE]
    if not stopping and quarantining and not pinned.take(1):
        # There is nothing that could be quarantined, and a green job would hide that.
        stopping = quarantining
    if stopping:
        raise _stop(stopping, results, asked)
    return Whole(results, quarantining[0].check.name if quarantining else None)


def _stop(
    stopping: list[BatchResult], results: Sequence[BatchResult], asked: Request
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
        rows=first.outcome.rows,
        results=results,
    )
