"""The report as one HTML page: nothing is fetched, and no script is run.

Light and dark as the reader's device has it, and narrow enough for a phone. Behind each plot
is the table that it is drawn from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape

from deltacheck.ledger.quality_log import Line
from deltacheck.report.facts import Day, Holding, Report, TableFacts
from deltacheck.report.plots import Bar, bars

_STYLE = """
:root { color-scheme: light dark; --text: #1d2329; --quiet: #5a6672; --back: #ffffff;
  --card: #f4f6f8; --line: #d5dbe1; --good: #4c7fb0; --bad: #c2453a; --warn: #9a6700;
  --fine: #2d7a46; }
@media (prefers-color-scheme: dark) { :root { --text: #e6eaee; --quiet: #9aa6b2;
  --back: #15191d; --card: #1e242a; --line: #353e47; --good: #6fa3d6; --bad: #ef7f74;
  --warn: #d9a53a; --fine: #6cc58a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 60rem; background: var(--back);
  color: var(--text); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
p { margin: .25rem 0; } .quiet { color: var(--quiet); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .75rem; margin: .5rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0;
  border-bottom: 1px solid var(--line); }
th { color: var(--quiet); font-weight: 600; } .number { text-align: right; white-space: nowrap; }
.day { white-space: nowrap; }
.wrong, .failed, .drifted { color: var(--bad); font-weight: 600; }
.warned, .warn, .pending { color: var(--warn); }
.fine, .passed, .enforced { color: var(--fine); }
.unjudged { color: var(--quiet); }
svg { width: 100%; height: auto; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: var(--quiet); text-anchor: middle; }
svg line { stroke: var(--line); } svg .bar { fill: var(--good); }
svg .marked { fill: var(--warn); } svg .bad { fill: var(--bad); }
svg .mark { fill: var(--bad); font-weight: 700; font-size: 14px; }
details { margin: .25rem 0; } summary { cursor: pointer; color: var(--quiet); }
"""


def page(report: Report) -> str:
    """The page of a report."""
    tables = "".join(_table(one, report.at) for one in report.tables)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>deltacheck: {escape(report.environment)}</title>"
        f"<style>{_STYLE}</style></head><body>"
        f"<h1>Quality of {escape(report.environment)}</h1>"
        f'<p class="quiet">Made {_time(report.at)}. Days are those of UTC.</p>'
        f"{_wrong(report)}{tables}{_runs(report)}</body></html>\n"
    )


def _wrong(report: Report) -> str:
    found = report.wrong_days
    if not found:
        return '<h2>What was wrong</h2><p class="fine">Nothing: no check failed.</p>'
    rows = [
        (_day(day), escape(table), escape(check), escape(why))
        for table, day in found
        for check, why in day.wrong.items()
    ]
    number = len({day.day for _, day in found})
    days = "On 1 day" if number == 1 else f"On {number} days"
    return f"<h2>What was wrong</h2><p>{days} a check failed.</p>" + _grid(
        ("day", "table", "check", "why"), rows
    )


def _table(facts: TableFacts, at: datetime) -> str:
    owners = f'<p class="quiet">Owner: {escape(", ".join(facts.owners))}</p>'
    parts = [
        f"<h2>{escape(facts.table)}</h2>",
        owners if facts.owners else "",
        _came_in(facts),
        _failures(facts),
        _rules(facts),
        _checks(facts.checks),
        _held(facts.held, at),
    ]
    return f"<section>{''.join(parts)}</section>"


def _came_in(facts: TableFacts) -> str:
    if not facts.days:
        return ""
    plot = bars(
        f"Rows that came into {facts.table} each day, and bad ones among them",
        [_bar(day) for day in facts.days],
    )
    rows = [
        (
            _day(day),
            _number(day.batches),
            _number(day.rows),
            _number(day.bad),
            _share(day),
            f'<span class="{day.verdict}">{day.verdict}</span>{_why(day)}',
        )
        for day in reversed(facts.days)
    ]
    columns = ("day", "batches#", "came in#", "rejected or bad#", "share#", "verdict")
    return (
        '<h3>What came in</h3><p class="quiet">Bad rows are red; a day on which a check failed '
        f'is marked.</p><div class="card">{plot}</div>{_behind(columns, rows)}'
    )


def _bar(day: Day) -> Bar:
    return Bar(f"{day.day:%d %b}", day.rows, day.bad, day.verdict == "wrong")


def _share(day: Day) -> str:
    return f'<span class="number">{day.bad / day.rows:.2%}</span>' if day.rows else ""


def _why(day: Day) -> str:
    said = [*day.wrong.items(), *day.warned.items()]
    return "".join(f"<br>{escape(check)}: {escape(why)}" for check, why in said)


def _failures(facts: TableFacts) -> str:
    names = sorted({rule for day in facts.days for rule in day.failed})
    if not names:
        return ""
    plots = "".join(
        f'<p>{escape(name)}</p><div class="card">'
        + bars(
            f"Rows that broke {name} each day",
            [Bar(f"{day.day:%d %b}", day.failed.get(name, 0)) for day in facts.days],
        )
        + "</div>"
        for name in names
    )
    rows = [
        (_day(day), escape(rule), _number(failed))
        for day in reversed(facts.days)
        for rule, failed in day.failed.items()
    ]
    return f"<h3>Rules that were broken</h3>{plots}{_behind(('day', 'rule', 'rows#'), rows)}"


def _rules(facts: TableFacts) -> str:
    if not facts.rules:
        return ""
    rows = [
        (
            escape(rule.rule),
            f"<code>{escape(rule.expression)}</code>",
            f'<span class="{rule.state}">{rule.state}</span>',
            _number(rule.quarantined),
        )
        for rule in facts.rules
    ]
    return "<h3>Rules</h3>" + _grid(("rule", "expression", "state", "quarantined#"), rows)


def _checks(checks: Sequence[Line]) -> str:
    if not checks:
        return ""
    rows = [
        (
            escape(line.rule or ""),
            f'<span class="{line.state}">{line.state}</span>',
            escape(line.message or ""),
            _time(line.at),
        )
        for line in checks
    ]
    return "<h3>Checks, at their last run</h3>" + _grid(("check", "state", "figures", "at"), rows)


def _held(held: Holding, at: datetime) -> str:
    if not held.rows or held.oldest is None:
        return ""
    ages = [(escape(name), _number(rows)) for name, rows in held.ages.items()]
    rules = [(escape(rule or "(no rule)"), _number(rows)) for rule, rows in held.rules.items()]
    plot = bars("Rows held by age", [Bar(name, rows) for name, rows in held.ages.items()])
    days = (at - held.oldest).days
    return (
        f"<h3>Quarantine</h3><p>{held.rows:,} rows are held, the oldest for {days:,} days.</p>"
        f'<div class="card">{plot}</div>{_behind(("held for", "rows#"), ages)}'
        f"{_behind(('rule broken', 'rows#'), rules)}"
    )


def _runs(report: Report) -> str:
    if not report.runs:
        return ""
    rows = [
        (
            _time(run.started),
            escape(run.command),
            escape(run.state or "open"),
            escape(", ".join(run.revisions)),
            escape(", ".join(str(one.table) for one in run.tables)),
        )
        for run in report.runs
    ]
    return "<h2>Last runs</h2>" + _grid(("began", "command", "state", "revisions", "tables"), rows)


def _behind(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The table behind a plot."""
    return f"<details><summary>As a table</summary>{_grid(columns, rows)}</details>"


def _grid(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the name of a column of numbers ends with ``#``."""
    right = [name.endswith("#") for name in columns]
    css = ['class="number"' if one else "" for one in right]
    head = "".join(
        f"<th {how}>{name.removesuffix('#')}</th>" for name, how in zip(columns, css, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td {how}>{cell}</td>" for cell, how in zip(row, css, strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _number(value: int) -> str:
    return f"{value:,}"


def _day(day: Day) -> str:
    return f'<span class="day">{day.day:%a %d %b %Y}</span>'


def _time(moment: datetime) -> str:
    return f'<span class="day">{moment:%Y-%m-%d %H:%M} UTC</span>'
