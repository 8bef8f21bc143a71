"""What the report says, as values: from states, log lines, quarantined rows and runs.

Pure: it is given what was read, and knows neither Spark nor HTML. Holds no value of a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Literal, TypeVar

from deltacheck.ledger.journal import Run
from deltacheck.ledger.quality_log import BATCH, CHECK, GUARD, HARVEST, RULE, WRITE, Line
from deltacheck.migrate.logged import SOURCE as UPGRADE
from deltacheck.migrate.status import RuleStatus
from deltacheck.names import TableName
from deltacheck.quarantine.listing import Held

AGES: tuple[tuple[str, timedelta | None], ...] = (
    ("up to a day", timedelta(days=1)),
    ("up to a week", timedelta(days=7)),
    ("up to a month", timedelta(days=30)),
    ("longer", None),
)
"""How long rows have been held: a name, and the longest time."""

Verdict = Literal["fine", "warned", "wrong"]

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Day:
    """What happened to one table on one day, by UTC.

    Attributes:
        batches: Wrapped writes; of a batch that was tried again the last try, here and below.
        rows: Rows that came in with them.
        bad: Rows of them that broke a rule that is more than a warning; of a batch that a check
            of it as a whole stopped, all.
        failed: Rule to the rows that broke it; None: nobody could count them.
        stopped: Batches of which no row was written to the table.
        checks: Check or gate to what it said when it was last run on that day; of those that
            look at each batch, to the last failure.
        stops: Why a gate, a rule or a check stopped batches or upgrades.
    """

    day: date
    batches: int = 0
    rows: int = 0
    bad: int = 0
    stopped: int = 0
    failed: Mapping[str, int | None] = field(default_factory=dict)
    checks: Mapping[str, Line] = field(default_factory=dict)
    stops: tuple[str, ...] = ()

    @property
    def wrong(self) -> dict[str, str]:
        """Check to why it failed; those that only warn are apart in ``warned``."""
        return {
            name: line.message or ""
            for name, line in self.checks.items()
            if line.state == "failed" and line.action != "warn"
        }

    @property
    def warned(self) -> dict[str, str]:
        """Check that only warns to why it did."""
        return {
            name: line.message or ""
            for name, line in self.checks.items()
            if line.state == "failed" and line.action == "warn"
        }

    @property
    def verdict(self) -> Verdict:
        """Whether anything was wrong with it."""
        if self.wrong or self.stops:
            return "wrong"
        return "warned" if self.warned or self.bad or self.failed else "fine"


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
        counted: Rule that Delta does not enforce to the last count of the rows that break it.
        actions: Rule to what happens to rows of a batch that break it.
        held: None: its quarantine could not be looked at.
        problem: Why something of it could not be looked at.
        gaps: What the log lacks, since the table's history had been cleaned up before.
    """

    table: str
    owners: tuple[str, ...]
    rules: tuple[RuleStatus, ...]
    days: tuple[Day, ...]
    checks: tuple[Line, ...]
    counted: Mapping[str, Line]
    actions: Mapping[str, str]
    held: Holding | None
    problem: str = ""
    gaps: tuple[str, ...] = ()

    @property
    def batches(self) -> int:
        """Wrapped writes of all days."""
        return sum(day.batches for day in self.days)

    @property
    def rows(self) -> int:
        """Rows that came in with them."""
        return sum(day.rows for day in self.days)

    @property
    def bad(self) -> int:
        """Bad rows among them."""
        return sum(day.bad for day in self.days)

    @property
    def failing(self) -> tuple[Line, ...]:
        """Checks that failed when they were last run, and not only to warn."""
        return tuple(x for x in self.checks if x.state == "failed" and x.action != "warn")

    def calendar(self, until: date) -> tuple[Day, ...]:
        """Each day from the first on which something happened, and those of nothing too."""
        if not self.days:
            return ()
        known = {one.day: one for one in self.days}
        first, last = self.days[0].day, max(until, self.days[-1].day)
        dates = [first + timedelta(days=number) for number in range((last - first).days + 1)]
        return tuple(known.get(one, Day(one)) for one in dates)


@dataclass(frozen=True)
class CheckRun:
    """One run of ``deltacheck check``.

    Attributes:
        tables: Those that it looked at.
        states: State to the number of checks that were in it.
    """

    run: str
    at: datetime
    tables: tuple[str, ...]
    states: Mapping[str, int]


@dataclass(frozen=True)
class Report:
    """All that the report says.

    Attributes:
        at: When it was made, in UTC.
        days: How many days back it looks.
        runs: The last runs of upgrade and downgrade, newest first.
        check_runs: The last runs of checks, newest first.
    """

    environment: str
    at: datetime
    days: int
    tables: tuple[TableFacts, ...]
    runs: tuple[Run, ...] = ()
    check_runs: tuple[CheckRun, ...] = ()

    @property
    def wrong_days(self) -> tuple[tuple[TableFacts, Day], ...]:
        """The days on which something was wrong with a table, newest first."""
        found = [(one, day) for one in self.tables for day in one.days if day.verdict == "wrong"]
        return tuple(sorted(found, key=lambda pair: pair[1].day, reverse=True))


def report_of(
    environment: str,
    at: datetime,
    *,
    rules: Iterable[RuleStatus],
    lines: Iterable[Line],
    held: Iterable[Held],
    runs: Sequence[Run] = (),
    problems: Mapping[str, str] | None = None,
    days: int = 30,
    most_runs: int = 20,
) -> Report:
    """Put a report together.

    Args:
        at: Now, in UTC.
        rules: The rules of all tables, as ``status`` tells them.
        lines: The quality log, and wrapped writes that are not in it yet.
        held: What the quarantines hold.
        runs: The runs of the journal, oldest first.
        problems: Table to why something of it could not be looked at.
        days: How many days back the report looks, today among them.
        most_runs: How many runs are told.
    """
    since = at.date() - timedelta(days=days - 1)
    problems = problems or {}
    declared = [*(rule.table for rule in rules), *problems, *(one.table for one in held)]
    spelled = _spelled([*declared, *(line.table for line in lines)])
    known = [
        replace(line, table=spelled[line.table])
        for line in lines
        if line.environment == environment and line.at.date() >= since
    ]
    told = sorted((line for line in known if line.kind != HARVEST), key=lambda line: line.at)
    by_table = _grouped(told, lambda line: line.table)
    gaps = _grouped((x for x in known if x.kind == HARVEST and x.message), lambda x: x.table)
    statuses = _grouped(rules, lambda rule: rule.table)
    waiting = _grouped(held, lambda one: one.table)
    names = sorted({*by_table, *statuses, *waiting, *problems, *gaps})
    return Report(
        environment=environment,
        at=at,
        days=days,
        tables=tuple(
            _table(
                name,
                statuses.get(name, []),
                by_table.get(name, []),
                # Of a table with a problem nobody may have counted what is held.
                _holding(waiting.get(name, []), at)
                if name in waiting or name not in problems
                else None,
                problems.get(name, ""),
                # Two who read the same history at once say the same of it.
                tuple(dict.fromkeys(line.message or "" for line in gaps.get(name, []))),
            )
            for name in names
        ),
        runs=tuple(reversed(runs[-most_runs:])),
        check_runs=_check_runs(told)[:most_runs],
    )


def _spelled(names: Iterable[str]) -> dict[str, str]:
    """Each table's name to how the first spells it that is the same: jobs know no declaration."""
    first: dict[TableName, str] = {}
    return {name: first.setdefault(TableName.parse(name), name) for name in names}


def _grouped(things: Iterable[Thing], key: Callable[[Thing], str]) -> dict[str, list[Thing]]:
    found: dict[str, list[Thing]] = {}
    for one in things:
        found.setdefault(key(one), []).append(one)
    return found


def _table(
    name: str,
    rules: Sequence[RuleStatus],
    lines: Sequence[Line],
    held: Holding | None,
    problem: str,
    gaps: tuple[str, ...],
) -> TableFacts:
    owners = [rule.owner for rule in rules] + [line.owner or "" for line in lines]
    of_rules = [line for line in lines if line.kind == RULE]
    return TableFacts(
        table=name,
        owners=tuple(dict.fromkeys(owner for owner in owners if owner)),
        rules=tuple(rules),
        days=_days(lines),
        checks=tuple(_last_checks(lines).values()),
        counted={
            line.rule or "": line
            for line in of_rules
            if line.source == CHECK and line.message is None
        },
        actions={line.rule or "": line.action for line in of_rules if line.action},
        held=held,
        problem=problem,
        gaps=gaps,
    )


def _last_checks(lines: Iterable[Line]) -> dict[str, Line]:
    """Check to the last of its lines that is about all groups together."""
    return {line.rule or "": line for line in lines if _is_check(line)}


def _is_check(line: Line) -> bool:
    # The gate of an upgrade is asked once: that it stopped one is no state of the table.
    return line.kind == CHECK and line.group is None and line.source != UPGRADE


def _checks_of_day(lines: Iterable[Line]) -> dict[str, Line]:
    """As ``_last_checks``; but that a batch fails is not undone by another that passes."""
    lines = list(lines)
    failures = [x for x in lines if x.source in (WRITE, GUARD) and x.state == "failed"]
    return {**_last_checks(lines), **_last_checks(failures)}


def _days(lines: Sequence[Line]) -> tuple[Day, ...]:
    # That a rule held, or that somebody counted the rows which break it, is no event by itself.
    events = [line for line in lines if line.kind != RULE or _was_broken(line)]
    by_day = _grouped(events, lambda line: line.at.date().isoformat())
    repeated = _repeated(lines)
    return tuple(_day(some, repeated) for _, some in sorted(by_day.items()))


def _was_broken(line: Line) -> bool:
    """Whether a line is of a rule that rows of a batch or of an upgraded table broke."""
    return line.kind == RULE and line.source != CHECK and line.state == "failed"


def _repeated(lines: Iterable[Line]) -> frozenset[str | None]:
    """The attempts at batches that were tried again, by the same id."""
    tries = _grouped((x for x in lines if x.kind == BATCH and x.batch), lambda x: x.batch or "")
    return frozenset(line.run for some in tries.values() for line in some[:-1])


def _day(lines: Sequence[Line], repeated: frozenset[str | None]) -> Day:
    came = [line for line in lines if line.run not in repeated]
    batches = [line for line in came if line.kind == BATCH]
    refused = {x.run for x in came if _is_check(x) and x.state == "failed" and x.action != "warn"}
    failed: dict[str, int | None] = {}
    for line in came:
        if _was_broken(line) and line.rule is not None:
            counts = [one for one in (failed.get(line.rule), line.failed) if one is not None]
            failed[line.rule] = sum(counts) if counts else None
    return Day(
        day=lines[0].at.date(),
        batches=len(batches),
        rows=sum(line.rows or 0 for line in batches),
        bad=sum(_bad(line, refused) for line in batches if line.state == "failed"),
        stopped=sum(line.message is not None for line in batches),
        failed=failed,
        checks=_checks_of_day(lines),
        stops=tuple(
            line.message
            for line in lines
            if line.message and (line.kind != CHECK or line.source == UPGRADE)
        ),
    )


def _bad(line: Line, refused: Container[str | None]) -> int:
    """The bad rows of a batch that failed: all, where a check of it as a whole refused it."""
    return (line.rows if line.run in refused else line.failed or line.rows) or 0


def _check_runs(lines: Iterable[Line]) -> tuple[CheckRun, ...]:
    by_run = _grouped((x for x in lines if x.source == CHECK and x.run), lambda x: x.run or "")
    found = [
        CheckRun(
            run=run,
            at=some[0].at,
            tables=tuple(dict.fromkeys(line.table for line in some)),
            states=Counter(
                line.state for line in some if line.kind == CHECK and line.group is None
            ),
        )
        for run, some in by_run.items()
    ]
    return tuple(sorted(found, key=lambda one: one.at, reverse=True))


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
