"""What the report says, as values: from states, log lines, quarantined rows and runs.

Pure: it is given what was read, and knows neither Spark nor HTML. Holds no value of a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Literal

from deltacheck.ledger.journal import Run
from deltacheck.ledger.quality_log import BATCH, CHECK, RULE, Line
from deltacheck.migrate.status import RuleStatus
from deltacheck.quarantine.listing import Held

AGES: tuple[tuple[str, timedelta | None], ...] = (
    ("up to a day", timedelta(days=1)),
    ("up to a week", timedelta(days=7)),
    ("up to a month", timedelta(days=30)),
    ("longer", None),
)
"""How long rows have been held: a name, and the longest time."""

Verdict = Literal["fine", "warned", "wrong"]


@dataclass(frozen=True)
class Day:
    """What happened to one table on one day, by UTC.

    Attributes:
        batches: Wrapped writes.
        rows: Rows that came in with them.
        bad: Rows of them that broke a rule, or were in a batch that was quarantined whole.
        failed: Rule to the rows that broke it.
        wrong: Check to why it failed, at its last run of the day; those that are only to warn
            apart in ``warned``.
    """

    day: date
    batches: int = 0
    rows: int = 0
    bad: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)
    warned: Mapping[str, str] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """Whether anything was wrong with it."""
        if self.wrong:
            return "wrong"
        return "warned" if self.warned or self.bad else "fine"


@dataclass(frozen=True)
class Holding:
    """What a table's quarantine holds.

    Attributes:
        ages: Name of an age to the rows held for so long.
        rules: Rule to the rows that broke it; by an empty name those that broke none.
    """

    rows: int = 0
    oldest: datetime | None = None
    ages: Mapping[str, int] = field(default_factory=dict)
    rules: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TableFacts:
    """What is known of one table.

    Attributes:
        rules: How things stand with its rules.
        days: Oldest first; days on which nothing happened are left out.
        checks: The last outcome of each check.
    """

    table: str
    owners: tuple[str, ...]
    rules: tuple[RuleStatus, ...]
    days: tuple[Day, ...]
    checks: tuple[Line, ...]
    held: Holding


@dataclass(frozen=True)
class Report:
    """All that the report says.

    Attributes:
        at: When it was made, in UTC.
        runs: The last runs of upgrade and downgrade, newest first.
    """

    environment: str
    at: datetime
    tables: tuple[TableFacts, ...]
    runs: tuple[Run, ...] = ()

    @property
    def wrong_days(self) -> tuple[tuple[str, Day], ...]:
        """The days on which something was wrong with a table, newest first."""
        found = [
            (one.table, day) for one in self.tables for day in one.days if day.verdict == "wrong"
        ]
        return tuple(sorted(found, key=lambda pair: pair[1].day, reverse=True))


def report_of(
    environment: str,
    at: datetime,
    *,
    rules: Iterable[RuleStatus],
    lines: Iterable[Line],
    held: Iterable[Held],
    runs: Sequence[Run] = (),
    most_runs: int = 20,
) -> Report:
    """Put a report together.

    Args:
        at: Now, in UTC.
        rules: The rules of all tables, as ``status`` tells them.
        lines: The quality log, and wrapped writes that are not in it yet.
        held: What the quarantines hold.
        runs: The runs of the journal, oldest first.
        most_runs: How many of them are told.
    """
    by_table: dict[str, list[Line]] = {}
    for line in lines:
        by_table.setdefault(line.table, []).append(line)
    statuses: dict[str, list[RuleStatus]] = {}
    for rule in rules:
        statuses.setdefault(rule.table, []).append(rule)
    waiting: dict[str, list[Held]] = {}
    for one in held:
        waiting.setdefault(one.table, []).append(one)
    names = sorted({*by_table, *statuses, *waiting})
    return Report(
        environment,
        at,
        tuple(
            _table(
                name,
                statuses.get(name, []),
                sorted(by_table.get(name, []), key=lambda line: line.at),
                waiting.get(name, []),
                at,
            )
            for name in names
        ),
        tuple(reversed(runs[-most_runs:])),
    )


def _table(
    name: str,
    rules: Sequence[RuleStatus],
    lines: Sequence[Line],
    held: Sequence[Held],
    at: datetime,
) -> TableFacts:
    owners = [rule.owner for rule in rules] + [line.owner or "" for line in lines]
    last = {
        line.rule: line
        for line in lines
        if line.kind == CHECK and line.group is None and line.rule is not None
    }
    return TableFacts(
        table=name,
        owners=tuple(dict.fromkeys(owner for owner in owners if owner)),
        rules=tuple(rules),
        days=_days(lines),
        checks=tuple(last.values()),
        held=_holding(held, at),
    )


def _days(lines: Iterable[Line]) -> tuple[Day, ...]:
    by_day: dict[date, list[Line]] = {}
    for line in lines:
        by_day.setdefault(line.at.date(), []).append(line)
    return tuple(_day(day, some) for day, some in sorted(by_day.items()))


def _day(day: date, lines: Sequence[Line]) -> Day:
    batches = [line for line in lines if line.kind == BATCH]
    failed: dict[str, int] = {}
    checks: dict[str, Line] = {}
    for line in lines:
        if line.rule is None:
            continue
        if line.kind == RULE and line.source != CHECK and line.failed:
            failed[line.rule] = failed.get(line.rule, 0) + line.failed
        elif line.kind == CHECK and line.group is None:
            checks[line.rule] = line
    bad = [line for line in checks.values() if line.state == "failed"]
    return Day(
        day=day,
        batches=len(batches),
        rows=sum(line.rows or 0 for line in batches),
        # Of a batch that was quarantined whole the log does not know how many rows were bad.
        bad=sum((line.rows if line.failed is None else line.failed) or 0 for line in batches),
        failed=failed,
        wrong={str(x.rule): x.message or "" for x in bad if x.action != "warn"},
        warned={str(x.rule): x.message or "" for x in bad if x.action == "warn"},
    )


def _holding(held: Iterable[Held], at: datetime) -> Holding:
    rows = [one for one in held if one.state == "held" and one.note != "restored"]
    ages = {name: 0 for name, _ in AGES}
    rules: dict[str, int] = {}
    for one in rows:
        # All rows of a group came with one run or batch: the oldest tells their age.
        ages[_age(at - one.oldest)] += one.rows
        for rule in one.rules or ("",):
            rules[rule] = rules.get(rule, 0) + one.rows
    oldest = min((one.oldest for one in rows), default=None)
    return Holding(sum(one.rows for one in rows), oldest, ages, rules)


def _age(length: timedelta) -> str:
    return next(name for name, longest in AGES if longest is None or length <= longest)
