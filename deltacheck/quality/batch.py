"""The checks of a batch as a whole: run on a batch that is pinned, before it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from uuid import uuid4

from pyspark.sql import DataFrame

from deltacheck.delta.violators import UNTOLD
from deltacheck.ledger.journal import now as clock
from deltacheck.names import TableName, quote
from deltacheck.quality.figures import Figures
from deltacheck.quality.gather import gather
from deltacheck.quality.harvest import Said
from deltacheck.quality.judge import judge, outcome_of
from deltacheck.quality.results import Outcome
from deltacheck.quality.scan import ALL, ALWAYS, other_tables, wanted_of_batch
from deltacheck.quality.words import listed, rows
from deltacheck.rules.checks import (
    BatchCheck,
    BrokenShare,
    Columns,
    NullShare,
    Reconcile,
    Requires,
    Unique,
)
from deltacheck.rules.model import Gate
from deltacheck.rules.words import OTHER_TYPE_NAMES


@dataclass(frozen=True)
class BatchResult:
    """What a check says of a batch."""

    check: BatchCheck
    outcome: Outcome

    @property
    def said(self) -> Said:
        """It as the log tells it."""
        check = self.check
        return Said(check.name, check.on_failure.value, check.owner, self.outcome)


def check_batch(
    batch: DataFrame,
    table: TableName,
    checks: Sequence[BatchCheck],
    rules: Mapping[str, str],
    figures: Mapping[str, Fraction],
    *,
    rest: Callable[[str], str] | None,
) -> tuple[BatchResult, ...]:
    """Run the checks of a batch, in as few passes over it as can be. Writes nothing.

    Args:
        batch: It should be pinned: each pass reads it.
        table: The table that it is for.
        rules: Key to expression over the batch, of the table's rules.
        figures: The figures that the job gives with it, for all checks that name one.
        rest: From SQL of the batch to SQL of the rows that the table is to have besides; None:
            there are none.

    Raises:
        TableError: A table that the batch is held against cannot be read at all.
    """
    there = {one.name.lower(): one.dataType.simpleString() for one in batch.schema.fields}
    with _view(batch) as source:
        besides = None if rest is None else rest(source)
        parts = [
            part for check in checks for part in wanted_of_batch(check, source, besides, rules)
        ]
        others = [other for check in checks for other in other_tables(check.test)]
        found = gather(batch.sparkSession, table, parts, others)
    results = []
    for check in checks:
        if isinstance(check.test, Columns):
            said = judge_columns(check.test, there)
        elif check.name in found.problems:
            said = Outcome("failed", found.problems[check.name], 0)
        else:
            known = found.figures[check.name][ALL]
            said = judge_batch(check, known, clock(), table=table, given=figures)
        results.append(BatchResult(check, said))
    return tuple(results)


@contextmanager
def _view(batch: DataFrame) -> Iterator[str]:
    """The batch under a name that SQL can use, for a while."""
    name = f"_deltacheck_batch_{uuid4().hex}"
    batch.selectExpr("*", f"{UNTOLD} AS {ALWAYS}").createOrReplaceTempView(name)
    try:
        yield quote(name)
    finally:
        batch.sparkSession.catalog.dropTempView(name)


def judge_batch(
    check: BatchCheck,
    found: Figures,
    now: datetime,
    *,
    table: TableName,
    given: Mapping[str, Fraction],
) -> Outcome:
    """What a check says of a batch.

    Args:
        check: Any but one of the batch's columns.
        table: The table that the batch is for.
        given: The figures that the job gave with the batch.
    """
    test = check.test
    if isinstance(test, NullShare):
        return _limited(test.most, f"have no {test.column}", found)
    if isinstance(test, BrokenShare):
        what = "any rule" if test.rule is None else test.rule
        return _limited(test.most, f"break {what}", found)
    if isinstance(test, Requires):
        if not found.rows:
            return outcome_of(False, f"{test.table} has no row", found)
        if test.fresh is None:
            return outcome_of(True, f"{test.table} has {rows(found.rows)}", found)
        fresh = judge(test.fresh, found, now)
        return replace(fresh, message=f"of {test.table}, {fresh.message}")
    if isinstance(test, Reconcile) and test.figure is not None:
        return judge(test, replace(found, other=given[test.figure]), now)
    assert not isinstance(test, Columns), "columns are looked at without a scan"
    said = judge(test, found, now)
    return _also_in(test, said, found, table) if isinstance(test, Unique) else said


def judge_columns(test: Columns, there: Mapping[str, str]) -> Outcome:
    """What a check says of a batch's columns.

    Args:
        there: Column, in lower case, to its type as Spark spells it.
    """
    wrong = []
    for name, wanted in test.types.items():
        found = there.get(name.lower())
        if found is None:
            wrong.append(f"{name} is missing")
        elif _type(found) != _type(wanted):
            wrong.append(f"{name} is {found}, not {wanted}")
    message = "; ".join(wrong) or f"all {len(test.types)} columns are as expected"
    return Outcome("failed" if wrong else "passed", message, 0)


def _type(text: str) -> str:
    """A type in one spelling.

    >>> _type("Decimal( 10, 2 )"), _type("array<INTEGER>"), _type("decimal")
    ('decimal(10,2)', 'array<int>', 'decimal(10,0)')
    """
    bare = re.sub(r"\s+", "", text.lower())
    spelled = re.sub(r"\b[a-z_]+\b", lambda word: OTHER_TYPE_NAMES.get(word[0], word[0]), bare)
    return re.sub(r"\bdecimal\b(?!\()", "decimal(10,0)", spelled)


def _limited(most: Gate, what: str, found: Figures) -> Outcome:
    allowed = most.allows(found.failed, found.rows)
    held = "at most" if allowed else "more than"
    message = f"{found.failed:,} of {rows(found.rows)} {what}, {held} {most}"
    return outcome_of(allowed, message, found)


def _also_in(test: Unique, within: Outcome, found: Figures, table: TableName) -> Outcome:
    if not found.taken:
        return within
    taken = f"{listed(test.columns)} of {found.taken:,} of {rows(found.rows)} is in {table} already"
    message = f"{within.message}; {taken}" if found.failed else taken
    return Outcome("failed", message, found.rows, max(found.failed, found.taken))
