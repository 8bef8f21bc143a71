"""Whether a figure is like those before it.

The rule: a figure is unusual if it lies further from the median of the figures before it than
so many spreads, where the spread is the median distance of those figures from their median.
So one odd day among them changes little. The spread counts as at least 1% of the median, and
for a share as at least half a percentage point, so that a figure that never moved may.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction
from statistics import median

from deltacheck.rules.quantities import Window

ENOUGH = 5
"""How many figures there must be to judge by, where the window has as many."""

_LEAST_SPREAD = Fraction(1, 100)
_LEAST_SPREAD_OF_SHARES = Fraction(1, 200)


@dataclass(frozen=True)
class Past:
    """A figure of an earlier run.

    Attributes:
        at: When it was found.
    """

    at: datetime
    value: Fraction


@dataclass(frozen=True)
class Usual:
    """What is usual.

    Attributes:
        within: How many spreads are allowed.
    """

    median: Fraction
    spread: Fraction
    within: Fraction

    @property
    def low(self) -> Fraction:
        """The least usual figure."""
        return self.median - self.within * self.spread

    @property
    def high(self) -> Fraction:
        """The greatest usual figure."""
        return self.median + self.within * self.spread

    def allows(self, value: Fraction) -> bool:
        """Whether a figure is usual."""
        return self.low <= value <= self.high


def needed(window: Window) -> int:
    """How many figures there must be to judge by."""
    return min(ENOUGH, window.count)


def usual(values: Sequence[Fraction], within: Fraction, *, share: bool = False) -> Usual:
    """What some figures make usual.

    >>> found = usual([Fraction(x) for x in (98, 100, 100, 103, 900)], Fraction(4))
    >>> int(found.median), int(found.spread), found.allows(Fraction(108))
    (100, 2, True)

    Args:
        values: At least one figure.
        within: How many spreads are allowed.
        share: Whether they are shares of rows.
    """
    middle = Fraction(median(values))
    spread = Fraction(median(abs(value - middle) for value in values))
    least = _LEAST_SPREAD * abs(middle)
    if share:
        least = max(least, _LEAST_SPREAD_OF_SHARES)
    return Usual(middle, max(spread, least), within)


def looked_back_at(history: Iterable[Past], window: Window, now: datetime) -> list[Fraction]:
    """The figures of a window, oldest first.

    Of the last runs, each counts; of the same weekday of the last weeks, the last of each day.
    Days are those of UTC.

    Args:
        history: Figures of earlier runs, in any order.
        now: The time of this run, in UTC.
    """
    earlier = sorted((one for one in history if one.at < now), key=lambda one: one.at)
    if not window.weekly:
        return [one.value for one in earlier[-window.count :]]
    today = _day(now)
    days = {today - timedelta(weeks=back) for back in range(1, window.count + 1)}
    last = {_day(one.at): one.value for one in earlier if _day(one.at) in days}
    return list(last.values())


def _day(moment: datetime) -> date:
    return moment.astimezone(timezone.utc).date()
