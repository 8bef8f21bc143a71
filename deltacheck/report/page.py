"""The report as one HTML page: nothing is fetched, and no script is run.

Light and dark as the reader's device has it, and narrow enough for a phone. Behind each plot
is the table that it is drawn from. What the page says stands in ``templates/``; here is what a
template cannot say in a few words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from deltacheck.report.facts import Day, Report, TableFacts
from deltacheck.report.plots import Column, Plot, bars, plot

SHOWN_WRONG = 10
"""So many wrong days are told at once; earlier ones have to be opened."""


def page(report: Report) -> str:
    """The page of a report."""
    return _templates().get_template("page.html").render(report=report)


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("deltacheck.report"),
        # Names and messages are people's own: whatever is in them is text.
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(
        number=_number, count=_count, broke=_broke, share=_share, day=_day, time=_time
    )
    found.globals.update(
        shown_wrong=SHOWN_WRONG,
        came_in=came_in,
        bad_share=bad_share,
        broken=broken,
        standing=standing,
        fate=fate,
        bars=bars,
        ago=_ago,
    )
    return found


def came_in(facts: TableFacts, days: Sequence[Day]) -> Plot:
    """The rows of each day, and the bad ones among them."""
    top = _count(max(day.rows for day in days), "row")
    return plot(
        f"Rows that came into {facts.table}",
        top,
        _columns(days, lambda day: day.rows, _told, part=lambda day: day.bad, marked=True),
    )


def bad_share(facts: TableFacts, days: Sequence[Day]) -> Plot:
    """The share of bad rows of each day."""
    shares = [day.bad / day.rows if day.rows else 0.0 for day in days]
    by_day = dict(zip((day.day for day in days), shares, strict=True))
    return plot(
        f"Share of bad rows of {facts.table}",
        f"{max(shares) * 100:.2f} %",
        _columns(
            days,
            lambda day: by_day[day.day],
            lambda day: f"{_day(day.day)}: {by_day[day.day] * 100:.2f} %",
            part=lambda day: by_day[day.day],
        ),
    )


def broken(facts: TableFacts, rule: str, days: Sequence[Day]) -> Plot:
    """The rows of each day that broke a rule."""
    became = fate(facts, rule)
    rows = {day.day: day.failed.get(rule, 0) for day in days}
    return plot(
        f"Rows that broke {rule}{f' ({became})' if became else ''}",
        _count(max(known or 0 for known in rows.values()), "row"),
        _columns(
            days,
            lambda day: rows[day.day] or 0,
            lambda day: f"{_day(day.day)}: {_broke(rows[day.day])}",
            part=lambda day: rows[day.day] or 0,
        ),
    )


def fate(facts: TableFacts, rule: str) -> str:
    """What became of rows that broke a rule, as far as the log tells."""
    return _FATES.get(facts.actions.get(rule, ""), "")


_FATES = {
    "quarantine": "quarantined",
    "drop": "dropped",
    "fail": "not written",
    "warn": "written, with a warning",
}


def standing(days: Sequence[Day], check: str) -> list[tuple[Day, str, str]]:
    """What a check said on each day: the day, a state (``none`` where it was not run), a sign."""
    found = []
    for day in days:
        line = day.checks.get(check)
        state = "none" if line is None else line.state
        if check in day.warned:
            state = "warned"
        found.append((day, state, _SIGNS[state]))
    return found


_SIGNS = {"passed": "✓", "failed": "✗", "warned": "!", "unjudged": "?", "none": "·"}


def _columns(
    days: Sequence[Day],
    value: Callable[[Day], float],
    told: Callable[[Day], str],
    *,
    part: Callable[[Day], float],
    marked: bool = False,
) -> list[Column]:
    return [
        Column(
            label=str(day.day.day),
            told=told(day),
            value=value(day),
            part=part(day),
            marked=marked and day.verdict == "wrong",
            unit=f"{day.day:%b}" if place == 0 or day.day.day == 1 else "",
        )
        for place, day in enumerate(days)
    ]


def _told(day: Day) -> str:
    bad = f", {day.bad:,} of them bad" if day.bad else ""
    reasons = [*day.wrong, *("stopped" for _ in day.stops)]
    wrong = f"; wrong: {', '.join(reasons)}" if reasons else ""
    return f"{_day(day.day)}: {_count(day.rows, 'row')}{bad}{wrong}"


def _number(value: int) -> str:
    return f"{value:,}"


def _count(value: int, what: str) -> str:
    """A number of things in words.

    >>> _count(1, "row"), _count(2400, "row"), _count(2, "batch")
    ('1 row', '2,400 rows', '2 batches')
    """
    more = "es" if what.endswith("ch") else "s"
    return f"{value:,} {what}" if value == 1 else f"{value:,} {what}{more}"


def _broke(rows: int | None) -> str:
    """The rows that broke a rule, in words.

    >>> _broke(1), _broke(None)
    ('1 row', 'rows that nobody could count')
    """
    return "rows that nobody could count" if rows is None else _count(rows, "row")


def _share(part: int, whole: int) -> str:
    """A share in percent; nothing of nothing is none.

    >>> _share(1, 8), _share(0, 0)
    ('12.50 %', '')
    """
    return f"{part / whole * 100:.2f} %" if whole else ""


def _ago(length: timedelta) -> str:
    """A time span, in the largest unit that it has.

    >>> _ago(timedelta(days=2, hours=3)), _ago(timedelta(minutes=50)), _ago(timedelta(hours=1))
    ('2 days', 'less than an hour', '1 hour')
    """
    hours = int(length.total_seconds()) // 3600
    if hours >= 24:
        return _count(hours // 24, "day")
    return _count(hours, "hour") if hours else "less than an hour"


def _day(day: date) -> str:
    return f"{day:%a} {day.day} {day:%b %Y}"


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"
