"""From figures to outcomes: what each test says of some rows.

Pure, so that each sentence can be tried without a table. A message says the figures and what
they were held against, never a value of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from deltacheck.quality.figures import Figures
from deltacheck.quality.results import Outcome, State
from deltacheck.quality.words import age, listed, number, rows
from deltacheck.rules.checks import (
    Freshness,
    QuarantineLimits,
    Reconcile,
    References,
    RowCount,
    TableTest,
    Unique,
)
from deltacheck.rules.quantities import MeasureKind


@dataclass(frozen=True)
class Held:
    """What a quarantine holds.

    Attributes:
        oldest: Since when the oldest row is held; None: there is none.
    """

    rows: int
    oldest: datetime | None = None


def judge(test: TableTest, found: Figures, now: datetime) -> Outcome:
    """What a test says of some rows; one of a trend or a quarantine is judged elsewhere.

    Args:
        now: The time of the run, in UTC.
    """
    if isinstance(test, RowCount):
        return _row_count(test, found)
    if isinstance(test, Unique):
        return _unique(test, found)
    if isinstance(test, References):
        return _references(test, found)
    if isinstance(test, Freshness):
        return _freshness(test, found, now)
    assert isinstance(test, Reconcile), "trends and quarantines are judged elsewhere"
    return _reconcile(test, found)


def judge_quarantine(test: QuarantineLimits, held: Held, now: datetime) -> Outcome:
    """What limits say of a quarantine."""
    waited = timedelta() if held.oldest is None else max(now - held.oldest, timedelta())
    too_many = test.rows is not None and held.rows > test.rows
    too_long = test.oldest is not None and waited > test.oldest.length
    parts = [f"{rows(held.rows)} held"]
    if test.rows is not None:
        parts[0] += f", more than {number(test.rows)}" if too_many else f" of {number(test.rows)}"
    if test.oldest is not None and held.oldest is not None:
        over = f", more than {test.oldest}" if too_long else ""
        parts.append(f"the oldest for {age(waited)}{over}")
    state: State = "failed" if too_many or too_long else "passed"
    return Outcome(state, "; ".join(parts), held.rows, figure=Fraction(held.rows))


def _row_count(test: RowCount, found: Figures) -> Outcome:
    few = test.least is not None and found.rows < test.least
    many = test.most is not None and found.rows > test.most
    held = [
        f"fewer than {number(test.least)}" if few and test.least is not None else "",
        f"more than {number(test.most)}" if many and test.most is not None else "",
    ]
    against = "".join(held) or _limits(test)
    return outcome_of(
        not few and not many, f"{rows(found.rows)}, {against}", found, Fraction(found.rows)
    )


def _limits(test: RowCount) -> str:
    if test.most is None:
        return f"at least {number(test.least or 0)}"
    if test.least is None:
        return f"at most {number(test.most)}"
    return f"within {number(test.least)} to {number(test.most)}"


def _unique(test: Unique, found: Figures) -> Outcome:
    columns = listed(test.columns)
    nulls = _nulls(found, "not counted")
    if not found.failed:
        return outcome_of(True, f"{columns} unique in {rows(found.rows)}{nulls}", found)
    values = "1 value" if found.values == 1 else f"{found.values:,} values"
    message = (
        f"{found.failed:,} of {rows(found.rows)} share {columns} with another ({values}){nulls}"
    )
    return outcome_of(False, message, found)


def _references(test: References, found: Figures) -> Outcome:
    columns = listed(test.columns)
    at_fault = found.failed + (0 if test.nulls else found.nulls)
    nulls = _nulls(found, "let pass" if test.nulls else "refused")
    message = (
        f"{found.failed:,} of {rows(found.rows)} have a {columns} that {test.table} has not{nulls}"
        if found.failed
        else f"every {columns} of {rows(found.rows)} is in {test.table}{nulls}"
    )
    state: State = "failed" if at_fault else "passed"
    return Outcome(state, message, found.rows, at_fault)


def _nulls(found: Figures, what: str) -> str:
    return f"; NULL in {rows(found.nulls)}, {what}" if found.nulls else ""


def _freshness(test: Freshness, found: Figures, now: datetime) -> Outcome:
    if found.latest is None:
        message = f"none of {rows(found.rows)} has a {test.column} up to now"
        return outcome_of(False, message, found)
    old = max(now - found.latest, timedelta())
    fresh = old <= test.max_age.length
    against = f"at most {test.max_age}" if fresh else f"more than {test.max_age}"
    hours = Fraction(int(old.total_seconds()), 3600)
    message = f"the newest {test.column} of {rows(found.rows)} is {age(old)} old, {against}"
    return outcome_of(fresh, message, found, hours)


def _reconcile(test: Reconcile, found: Figures) -> Outcome:
    other = test.other
    theirs = f"the figure {test.figure}" if other is None else f"{other.measure} of {other.table}"
    if found.undefined:
        return outcome_of(False, f"{test.measure} or {theirs} is not a finite number", found)
    # Nothing adds up to nothing. Rows are counted for every check.
    counted = test.measure.kind is MeasureKind.ROW_COUNT
    ours = Fraction(found.rows) if counted else found.value or Fraction(0)
    against = found.other or Fraction(0)
    apart = abs(ours - against)
    agree = test.tolerance.allows(ours, against)
    message = f"{test.measure} is {number(ours)}, {theirs} is {number(against)}"
    if apart:
        held = "within" if agree else "more than"
        message += f": {number(apart)} apart, {held} {test.tolerance}"
    return outcome_of(agree, message, found, ours)


def outcome_of(
    passed: bool, message: str, found: Figures, figure: Fraction | None = None
) -> Outcome:
    """What a test says of rows that were looked at."""
    return Outcome("passed" if passed else "failed", message, found.rows, found.failed, figure)
