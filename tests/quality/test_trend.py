"""What is usual: a plain rule that one odd day among the figures cannot bend."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from fractions import Fraction
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from deltacheck.quality.trend import ENOUGH, Past, looked_back_at, needed, usual
from deltacheck.rules.quantities import Window

MONDAY = datetime(2026, 3, 2, 6, tzinfo=timezone.utc)

figures = st.fractions(min_value=-1000, max_value=1000, max_denominator=100)
several = st.lists(figures, min_size=1, max_size=15)
spreads = st.fractions(min_value=Fraction(1, 10), max_value=10, max_denominator=10)


def past(*values: int, start: datetime, every: timedelta = timedelta(days=1)) -> list[Past]:
    """Figures of earlier runs, the last of them just before ``start``."""
    first = start - every * len(values)
    return [Past(first + every * place, Fraction(v)) for place, v in enumerate(values)]


def allows(values: list[int], value: int) -> bool:
    """Whether a figure is usual after others, with the usual number of spreads."""
    return usual([Fraction(v) for v in values], Fraction(4)).allows(Fraction(value))


def test_half_a_file_and_doubled_orders_are_unusual() -> None:
    days = [1010, 985, 1003, 940, 1052, 998, 1021]

    assert allows(days, 1060)
    assert not allows(days, 500)
    assert not allows(days, 2000)


def test_a_bad_day_among_the_figures_hides_no_other() -> None:
    """Its figure counts as one of many, however far off it is."""
    assert not allows([1010, 985, 500, 940, 1052, 998, 1021], 500)


def test_a_figure_that_never_moved_may_move_a_little() -> None:
    """By four times one percent, or two percentage points of a share."""
    never = [Fraction(0)] * 7

    assert allows([100] * 7, 104)
    assert not allows([100] * 7, 105)
    assert usual(never, Fraction(4), share=True).allows(Fraction(2, 100))
    assert not usual(never, Fraction(4), share=True).allows(Fraction(21, 1000))
    assert not usual(never, Fraction(4)).allows(Fraction(1, 1000))


@given(several, spreads)
def test_the_median_is_always_usual(values: list[Fraction], within: Fraction) -> None:
    found = usual(values, within)

    assert found.allows(found.median)
    assert found.low <= found.median <= found.high


@given(several, spreads, st.randoms(use_true_random=False))
def test_the_order_of_the_figures_does_not_matter(
    values: list[Fraction], within: Fraction, random: Random
) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)

    assert usual(shuffled, within) == usual(values, within)


@given(several, spreads, figures, st.fractions(min_value=Fraction(1, 100), max_value=100))
def test_cents_or_euros_the_verdict_is_the_same(
    values: list[Fraction], within: Fraction, value: Fraction, factor: Fraction
) -> None:
    """It does not depend on the unit, as long as it is one unit."""
    scaled = usual([one * factor for one in values], within)

    assert scaled.allows(value * factor) == usual(values, within).allows(value)


@given(several, spreads, figures, st.fractions(min_value=0, max_value=1))
def test_what_lies_nearer_to_the_median_than_a_usual_figure_is_usual(
    values: list[Fraction], within: Fraction, value: Fraction, part: Fraction
) -> None:
    found = usual(values, within)
    nearer = found.median + (value - found.median) * part

    assert not found.allows(value) or found.allows(nearer)


@given(st.lists(figures, min_size=3, max_size=9), st.data())
def test_fewer_than_half_of_the_figures_cannot_move_the_median_out_of_the_others(
    good: list[Fraction], data: st.DataObject
) -> None:
    bad = data.draw(st.lists(st.sampled_from([-(10**9), 10**9]), max_size=len(good) - 1))

    found = usual([*good, *map(Fraction, bad)], Fraction(4))

    assert min(good) <= found.median <= max(good)


def test_the_last_runs_are_looked_back_at() -> None:
    history = past(1, 2, 3, 4, 5, start=MONDAY)

    assert looked_back_at(reversed(history), Window(3, weekly=False), MONDAY) == [3, 4, 5]


def test_a_run_of_this_moment_or_later_is_not_history() -> None:
    now = [Past(MONDAY, Fraction(9)), Past(MONDAY + timedelta(hours=1), Fraction(9))]

    assert looked_back_at(now, Window(3, weekly=False), MONDAY) == []


def test_the_same_weekday_of_the_last_weeks_is_looked_back_at_by_its_last_run() -> None:
    """Other weekdays, this day, and weeks before the window do not count."""
    daily = past(*range(40), start=MONDAY)
    later = [Past(MONDAY - timedelta(weeks=1) + timedelta(hours=5), Fraction(777))]

    found = looked_back_at([*daily, *later], Window(3, weekly=True), MONDAY)

    # Day 40 is today; weeks ago were days 33, 26 and 19.
    assert found == [19, 26, 777]


def test_days_are_those_of_utc() -> None:
    """Whatever zone a time comes in."""
    zone = timezone(timedelta(hours=-10))
    sunday_there = (MONDAY - timedelta(weeks=1)).astimezone(zone)

    assert sunday_there.weekday() == 6
    found = looked_back_at([Past(sunday_there, Fraction(5))], Window(3, weekly=True), MONDAY)
    assert found == [5]


def test_a_short_window_needs_all_of_its_figures() -> None:
    assert needed(Window(3, weekly=True)) == 3
    assert needed(Window(14, weekly=False)) == ENOUGH == 5
