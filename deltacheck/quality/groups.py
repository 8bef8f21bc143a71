"""What a check says of its table: of each group of rows, and of all of them together.

Knows which groups there are by a JSON text of their values, and by a digest of that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction

from deltacheck.quality.figures import Figures
from deltacheck.quality.judge import judge
from deltacheck.quality.results import Outcome, State
from deltacheck.quality.scan import ALL
from deltacheck.quality.trend import Past, looked_back_at, needed, usual
from deltacheck.quality.words import listed, number, percent
from deltacheck.rules.checks import Freshness, RowCount, TableCheck, TableTest, Trend
from deltacheck.rules.quantities import MeasureKind

_SHOWN = 5

History = Mapping[str, Sequence[Past]]
"""Digest of a group to the figures of earlier runs."""


def judge_groups(
    check: TableCheck, found: Mapping[str, Figures], history: History, now: datetime
) -> dict[str, Outcome]:
    """What a check says of each group of rows.

    Args:
        check: Any but one of the quarantine.
        found: Group to its figures.
        history: What a trend is held against.
        now: The time of the run, in UTC.

    Returns:
        Group to its outcome; a group that is gone by its digest.
    """
    test = check.test
    if isinstance(test, Trend):
        return _trends(check, test, found, history, now)
    return {group: judge(test, known, now) for group, known in sorted(found.items())}


def summed_up(check: TableCheck, groups: Mapping[str, Outcome]) -> Outcome:
    """What a check says of its table as a whole: it fails if one group does."""
    if set(groups) == {ALL}:
        return groups[ALL]
    by = listed(group_columns(check))
    if not groups:
        return Outcome(_without_rows(check.test), f"there is no row to group by {by}", 0)
    looked_at = _all_rows(check, groups)
    at_fault = sum(one.failed for one in groups.values())
    bad = [name for name, one in groups.items() if one.state == "failed"]
    if bad:
        message = f"{len(bad):,} of {len(groups):,} groups by {by} fail: "
        return Outcome("failed", message + _worst(check, groups, bad), looked_at, at_fault)
    unjudged = sum(one.state == "unjudged" for one in groups.values())
    if unjudged:
        message = f"{unjudged:,} of {len(groups):,} groups by {by} could not be judged"
        state: State = "unjudged" if unjudged == len(groups) else "passed"
        return Outcome(state, message, looked_at, at_fault)
    message = f"all {len(groups):,} groups by {by} pass"
    return Outcome("passed", message, looked_at, at_fault)


def group_columns(check: TableCheck) -> tuple[str, ...]:
    """The SQL of what a check groups by, the column whose values it counts included."""
    test = check.test
    if isinstance(test, Trend) and counts_values(test):
        return (*check.by, test.measure.of)
    return check.by


def counts_values(test: TableTest) -> bool:
    """Whether a test looks at each value of a column by itself."""
    return isinstance(test, Trend) and test.measure.kind is MeasureKind.SHARES


def digest(group: str) -> str:
    """What the log keeps of a group, which is made of values of rows.

    Of a group that is gone, and so known by its digest alone, it is the same.
    """
    if not group.startswith("{"):
        return group
    return hashlib.sha256(group.encode()).hexdigest()[:16]


def _all_rows(check: TableCheck, groups: Mapping[str, Outcome]) -> int:
    if counts_values(check.test):
        # The rows of an outcome are all those that its share is of.
        whole = {_parent(group, len(check.by)): one.rows for group, one in groups.items()}
        return sum(whole.values())
    return sum(one.rows for one in groups.values())


def _without_rows(test: TableTest) -> State:
    """What a test says where there is not one group to ask."""
    if isinstance(test, Freshness) or (isinstance(test, RowCount) and test.least):
        return "failed"
    return "unjudged" if isinstance(test, Trend) else "passed"


def _worst(check: TableCheck, groups: Mapping[str, Outcome], bad: Sequence[str]) -> str:
    if not check.show_groups:
        first = groups[bad[0]].message
        return first if len(bad) == 1 else f"for example {first}"
    shown = [f"{shown_group(check, name)}: {groups[name].message}" for name in bad[:_SHOWN]]
    more = f"; and {len(bad) - _SHOWN:,} more" if len(bad) > _SHOWN else ""
    return "; ".join(shown) + more


def shown_group(check: TableCheck, group: str) -> str:
    """A group by its values, for a check that may name them.

    >>> from deltacheck.rules.checks import RowCount, TableCheck
    >>> shown_group(TableCheck("c", "row_count", RowCount(), by=("a", "b")), '{"k0":1}')
    'a = 1, b is NULL'
    """
    if not group.startswith("{"):
        return "a group that is gone"
    values = json.loads(group)
    return ", ".join(
        f"{sql} = {values[f'k{place}']}" if f"k{place}" in values else f"{sql} is NULL"
        for place, sql in enumerate(group_columns(check))
    )


def _trends(
    check: TableCheck, test: Trend, found: Mapping[str, Figures], history: History, now: datetime
) -> dict[str, Outcome]:
    judged: dict[str, Outcome] = {}
    totals = _totals(check, found)
    for group, known in sorted(found.items()):
        rows_of_all = totals.get(_parent(group, len(check.by)), 0)
        value = _measured(test, known, rows_of_all)
        past = looked_back_at(history.get(digest(group), ()), test.last, now)
        counted = rows_of_all if counts_values(test) else known.rows
        judged[group] = (
            Outcome("failed", f"{test.measure} is not a finite number", counted)
            if known.undefined
            else _trend(test, value, counted, past)
        )
    amounts = (MeasureKind.ROW_COUNT, MeasureKind.SUM)
    if counts_values(test) or (check.by and test.measure.kind in amounts):
        there = {digest(group) for group in found}
        for group, figures in history.items():
            past = looked_back_at(figures, test.last, now)
            # What was there before and is not any more has none of the rows, which sum up to 0.
            if group not in there and any(past):
                judged[group] = _trend(test, Fraction(0), 0, past)
    return judged


def _totals(check: TableCheck, found: Mapping[str, Figures]) -> dict[str, int]:
    """The rows of the groups that shares are parts of."""
    totals: dict[str, int] = {}
    if counts_values(check.test):
        for group, known in found.items():
            parent = _parent(group, len(check.by))
            totals[parent] = totals.get(parent, 0) + known.rows
    return totals


def _parent(group: str, depth: int) -> str:
    """A group without the column whose values are counted, which is its last.

    >>> _parent('{"k0":"EU","k1":"paid"}', 1)
    '{"k0": "EU"}'
    """
    if not group.startswith("{"):
        return group
    return json.dumps({k: v for k, v in json.loads(group).items() if k != f"k{depth}"})


def _measured(test: Trend, found: Figures, rows_of_all: int) -> Fraction | None:
    """The figure of a trend; None: there is nothing to measure."""
    kind = test.measure.kind
    if kind is MeasureKind.ROW_COUNT:
        return Fraction(found.rows)
    if kind is MeasureKind.SUM:
        return found.value or Fraction(0)
    if kind is MeasureKind.MEAN:
        return found.value
    if kind is MeasureKind.SHARES:
        return Fraction(found.rows, rows_of_all) if rows_of_all else None
    return (found.value or Fraction(0)) / found.rows if found.rows else None


def _trend(test: Trend, value: Fraction | None, counted: int, past: Sequence[Fraction]) -> Outcome:
    if value is None:
        return Outcome("unjudged", f"there is no row to take {test.measure} of", counted)
    shown = percent if test.measure.is_share else number
    told = f"{test.measure} is {shown(value)}"
    if len(past) < needed(test.last):
        earlier = "1 earlier figure" if len(past) == 1 else f"{len(past)} earlier figures"
        message = f"{told}; {earlier}, at least {needed(test.last)} are needed to judge it"
        return Outcome("unjudged", message, counted, figure=value)
    expected = usual(past, test.within, share=test.measure.is_share)
    low, high = expected.low, expected.high
    if test.measure.is_share or test.measure.kind is MeasureKind.ROW_COUNT:
        low = max(low, Fraction(0))
    of_past = f"{len(past)} earlier {'weeks' if test.last.weekly else 'runs'}"
    message = (
        f"{told}; the median of {of_past} is {shown(expected.median)}, "
        f"usual is {shown(low)} to {shown(high)}"
    )
    state: State = "passed" if expected.allows(value) else "failed"
    return Outcome(state, message, counted, figure=value)
