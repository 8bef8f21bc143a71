"""Run the checks of tables: look once, judge, and write what came of it to the quality log.

Touches nothing but the log, into which it also takes the passes of wrapped writes before the
tables' history forgets them, and where asked for a table of keys at fault. A table's checks, and
the counts of the rows that break its rules which Delta does not enforce there, are of one version
of it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Literal

from deltacheck.config import Environment
from deltacheck.delta.commit import Tag
from deltacheck.delta.failures import EngineFailure
from deltacheck.delta.table import Definition, Table, at_version, read_table
from deltacheck.errors import LedgerError, NotDeltaError, TableError, TableNotFoundError
from deltacheck.ledger.journal import now as clock
from deltacheck.ledger.quality_log import (
    CHECK,
    RULE,
    Figure,
    Line,
    Series,
    append_lines,
    harvested,
    log_name,
    read_figures,
    trim_log,
)
from deltacheck.ledger.tables import refused_as
from deltacheck.ledger.upkeep import TRIM, compact, compact_where_many
from deltacheck.names import TableName, split_path
from deltacheck.quality.described import described
from deltacheck.quality.gather import Gathered, gather, problem_of
from deltacheck.quality.groups import History, digest, judge_groups, shown_group, summed_up
from deltacheck.quality.judge import Held, judge_quarantine
from deltacheck.quality.keys import Fault, open_keys, write_keys
from deltacheck.quality.passes import gaps, look_back
from deltacheck.quality.results import Checked, CheckResult, Group, Outcome, RuleCount, TableGate
from deltacheck.quality.scan import ALL, Wanted, other_tables, violators, wanted
from deltacheck.quality.trend import Past
from deltacheck.quarantine.holding import Desk, holding
from deltacheck.quarantine.holding import Selection as Rows
from deltacheck.quarantine.listing import count_held
from deltacheck.rules.checks import BatchCheck, OnFailure, QuarantineLimits, TableCheck, Trend
from deltacheck.rules.expression import same_rule
from deltacheck.rules.model import Kind, Rule, RuleSet, TableRules
from deltacheck.rules.selection import Selection

SOURCE = "check"
"""What the log calls a run of checks."""

ANY = ""
"""What stands for all of a table's rules together."""

MISSING = "there is no such table"
"""Why the checks fail of a table that is not there."""

GATE_OF, TABLE_GATE = "gate of {}", "gate of the table"
"""What the log calls the gate of a rule, and that of a table: no check can be called so."""


@dataclass(frozen=True)
class Asked:
    """What is to be looked at of one table.

    Attributes:
        table: None: it could not be looked at.
        watched: Rules that Delta does not enforce on it.
        version: Of the table, that was looked at; None: none was.
        problem: Why it could not be looked at.
    """

    declared: TableRules
    table: Table | None
    checks: tuple[TableCheck, ...]
    watched: tuple[Rule, ...]
    version: int | None = None
    problem: str = ""

    @property
    def name(self) -> TableName:
        """The table."""
        return self.declared.table

    def wanted(self) -> list[Wanted]:
        """What is asked of it, quarantines apart."""
        assert self.version is not None, "nothing can be asked of it"
        source = at_version(self.name, self.version)
        rules = {rule.key: rule.expression for rule in self.declared.rules}
        parts = [part for check in self.checks for part in wanted(check, source, rules)]
        parts += [violators(one.name, [one.expression], source) for one in self.watched]
        if self.gated:
            parts.append(violators(ANY, [one.expression for one in self.gated], source))
        return parts

    @property
    def gated(self) -> tuple[Rule, ...]:
        """The rules that the table's gate is for: those that an upgrade has still to add."""
        if self.declared.gate is None:
            return ()
        return tuple(rule for rule in self.watched if rule.enforced and rule.gate is None)

    def unseen(self, problem: str) -> Gathered:
        """What is found where nothing could be looked at."""
        names = [one.name for one in self.checks] + [one.name for one in self.watched]
        return Gathered({}, dict.fromkeys([*names, ANY] if self.gated else names, problem))


def run_checks(
    on: Desk,
    environment: Environment,
    rules: RuleSet,
    selection: Selection,
    *,
    now: datetime | None = None,
    keep: timedelta | None = None,
    keys: TableName | None = None,
) -> Checked:
    """Run the checks that are asked for, and log what came of them.

    Args:
        on: What to work with.
        rules: The declarations of all tables.
        selection: Which tables, checks and rules are asked for.
        now: The time of the run, in UTC; default: the clock's.
        keep: For how long the log keeps its lines of the tables asked for; None: for good. Where
            it is given, the files of deltacheck's own tables are put together, else where they
            are many.
        keys: A table for the keys for which checks fail; None: they are not written.

    Raises:
        NotDeltaError: A table is a view or not Delta; nothing was looked at.
        LedgerError: The log, or the table for keys, cannot be used; nothing was looked at.
    """
    at = clock() if now is None else now
    run = uuid.uuid4().hex
    seen = harvested(on.session, environment)
    if keys is not None:
        open_keys(on.session, environment, keys)
    wanted = [
        _asked(on, rules[name], selection)
        for name in sorted(rules, key=str)
        if is_asked_for(selection, rules[name])
    ]
    past = _history(on, environment, wanted, at)
    tables: list[_Table] = []
    for asked in wanted:
        # Rules may be declared ahead of their table; a check of it cannot pass.
        if asked.problem != MISSING or asked.checks:
            on.progress(f"Checking {asked.name}")
            base = Line(at, environment.name, str(asked.name), CHECK, "", source=SOURCE, run=run)
            tables.append(_look_at(on, environment, asked, base, seen, past[asked.name]))
    lines = [line for table in tables for line in table.lines]
    unwritten: list[LedgerError] = []
    with _kept_for_the_end(unwritten, environment, "It was not logged what the checks found"):
        append_lines(on.session, environment, lines, Tag(run=run, step=SOURCE))
    written = False
    if keys is not None:
        faults = [fault for table in tables for fault in table.faults]
        with _kept_for_the_end(unwritten, environment, "No keys were written"):
            written = write_keys(on.session, environment, keys, faults, at, run)
    trim = Tag(run=run, step=TRIM)
    if keep is None:
        compact_where_many(on.session, environment, trim)
    else:
        about = None if selection.everything else [str(asked.name) for asked in wanted]
        with _kept_for_the_end(unwritten, environment, "The log was not trimmed"):
            trim_log(on.session, environment, at - keep, trim, about)
            compact(on.session, environment, trim)
    return Checked(
        environment=environment.name,
        run=run,
        at=at,
        checks=tuple(one for table in tables for one in table.checks),
        rules=tuple(one for table in tables for one in table.rules),
        gates=tuple(table.gate for table in tables if table.gate is not None),
        missing=tuple(one.name for one in tables if one.problem == MISSING),
        problems={one.name: one.problem for one in tables if one.problem not in ("", MISSING)},
        gaps=gaps(lines),
        selection=selection,
        keys=str(keys) if written else None,
        unwritten=tuple(unwritten),
    )


@contextmanager
def _kept_for_the_end(
    problems: list[LedgerError], environment: Environment, what: str
) -> Iterator[None]:
    """Keep what cannot be written from hiding what the checks found.

    Args:
        problems: Gets the error.
        what: What is then missing, as the beginning of a sentence.
    """
    place, left = log_name(environment), "The tables were left untouched."
    hint = "Check your rights there; then run the checks again."
    try:
        with refused_as(place, f"{what}, for {place} could not be written", left, hint):
            yield
    except LedgerError as error:
        problems.append(error)


@dataclass(frozen=True)
class _Table:
    """What came of looking at one table.

    Attributes:
        problem: Why it could not be looked at.
    """

    name: str
    problem: str
    checks: tuple[CheckResult, ...]
    rules: tuple[RuleCount, ...]
    gate: TableGate | None
    lines: tuple[Line, ...]
    faults: tuple[Fault, ...]


def _look_at(
    on: Desk,
    environment: Environment,
    asked: Asked,
    base: Line,
    seen: Mapping[str, int],
    past: Mapping[str, History],
) -> _Table:
    if asked.table is None:
        return _judged(on, asked, asked.unseen(asked.problem), past, base)
    written: tuple[Line, ...] = ()
    others = [other for check in asked.checks for other in other_tables(check.test)]
    try:
        passes = look_back(on.session, environment, asked.table, asked.declared, base, seen)
        asked, written = replace(asked, version=passes.version), passes.lines
        found = gather(on.session, asked.name, asked.wanted(), others)
    except (TableError, *EngineFailure) as error:
        asked = replace(asked, problem=problem_of(error, asked.name))
        found = asked.unseen(asked.problem)
    table = _judged(on, asked, found, past, base)
    return replace(table, lines=(*written, *table.lines))


def _judged(
    on: Desk, asked: Asked, found: Gathered, past: Mapping[str, History], base: Line
) -> _Table:
    checks = tuple(
        _result(on, asked, check, found, past.get(check.name, {}), base.at)
        for check in asked.checks
    )
    rules = tuple(_count(asked, rule, found) for rule in asked.watched)
    gate = _gate(asked, found)
    lines = [line for result in checks for line in _lines_of_check(result, asked, base)]
    lines += [_line_of_rule(counted, asked, base) for counted in rules]
    gates = [(GATE_OF.format(one.rule), one) for one in rules if one.gate is not None]
    lines += [_line_of_gate(name, one, asked, base) for name, one in gates]
    if gate is not None:
        lines.append(_line_of_gate(TABLE_GATE, gate, asked, base))
    faults = tuple(
        Fault(asked.name, asked.version, one.check)
        for one in checks
        if one.state == "failed"
        and one.check.name not in found.problems
        and asked.version is not None
    )
    return _Table(str(asked.name), asked.problem, checks, rules, gate, tuple(lines), faults)


def is_asked_for(selection: Selection, declared: TableRules) -> bool:
    """Whether something of a table is asked for; of its batches, what they passed."""
    parts: list[Rule | TableCheck | BatchCheck] = [*declared.rules, *declared.checks]
    return selection.has_table(declared.table) and any(
        selection.has_rule(declared, one) for one in [*parts, *declared.batch]
    )


def _asked(on: Desk, declared: TableRules, selection: Selection) -> Asked:
    checks = tuple(one for one in declared.checks if selection.has_rule(declared, one))
    rules = tuple(one for one in declared.rules if selection.has_rule(declared, one))
    try:
        table = read_table(on.session, declared.table)
    except NotDeltaError:
        raise
    except TableNotFoundError:
        return Asked(declared, None, checks, (), problem=MISSING)
    except (TableError, *EngineFailure) as error:
        return Asked(declared, None, checks, rules, problem=problem_of(error, declared.table))
    watched = tuple(rule for rule in rules if not _enforces(table, rule))
    return Asked(declared, table, checks, watched)


def _enforces(table: Definition, rule: Rule) -> bool:
    """Whether Delta refuses violators of a rule on this table, under whatever name."""
    column = rule.column if rule.kind is Kind.NOT_NULL else None
    if column is not None and table.requires(split_path(column)):
        return True
    return any(same_rule(text, rule.expression) for text in table.constraints.values())


def _history(
    on: Desk, environment: Environment, wanted: Iterable[Asked], at: datetime
) -> dict[TableName, dict[str, History]]:
    """Table to check to the history that it is held against."""
    series: dict[TableName, dict[str, Series]] = {}
    for asked in wanted:
        about = series.setdefault(asked.name, {})
        for check in asked.checks:
            if isinstance(check.test, Trend):
                last = check.test.last
                weeks = timedelta(weeks=last.count, days=1) if last.weekly else timedelta()
                runs = 0 if last.weekly else last.count
                name = str(asked.name)
                about[check.name] = Series(name, check.name, described(check), runs, at - weeks)
    every = [one for about in series.values() for one in about.values()]
    known = read_figures(on.session, environment, every)
    return {
        name: {check: _by_group(known[one]) for check, one in about.items()}
        for name, about in series.items()
    }


def _by_group(figures: Iterable[Figure]) -> dict[str, list[Past]]:
    groups: dict[str, list[Past]] = {}
    for figure in figures:
        groups.setdefault(figure.group, []).append(Past(figure.at, Fraction(figure.value)))
    return groups


def _result(
    on: Desk, asked: Asked, check: TableCheck, found: Gathered, history: History, at: datetime
) -> CheckResult:
    if check.name in found.problems:
        groups = {ALL: Outcome("failed", found.problems[check.name], 0)}
    elif isinstance(check.test, QuarantineLimits):
        groups = {ALL: _quarantine(on, asked.name, check.test, at)}
    else:
        groups = judge_groups(check, found.figures[check.name], history, at)
    declared = asked.declared
    return CheckResult(
        table=str(asked.name),
        check=check,
        expression=described(check),
        outcome=summed_up(check, groups),
        groups=tuple(
            Group(digest(group), shown_group(check, group) if check.show_groups else None, one)
            for group, one in groups.items()
            if group != ALL
        ),
        tags=tuple(dict.fromkeys((*declared.tags, *check.tags))),
        owner=check.owner or declared.owner,
    )


def _quarantine(on: Desk, table: TableName, test: QuarantineLimits, at: datetime) -> Outcome:
    try:
        return judge_quarantine(test, _held(on, table), at)
    except (TableError, *EngineFailure) as error:
        return Outcome("failed", problem_of(error, table), 0)


def _held(on: Desk, table: TableName) -> Held:
    """What the table's quarantine holds; rows that a RESTORE has brought back are not held."""
    rows = [
        one
        for one in count_held(holding(on, table), Rows())
        if one.state == "held" and one.note != "restored"
    ]
    oldest = min((one.oldest for one in rows), default=None)
    return Held(sum(one.rows for one in rows), oldest)


def _count(asked: Asked, rule: Rule, found: Gathered) -> RuleCount:
    problem = found.problems.get(rule.name, "")
    state: Literal["warn", "pending"] = "pending" if rule.enforced else "warn"
    rows, failed = _sums(found, rule.name)
    return RuleCount(
        table=str(asked.name),
        rule=rule.name,
        expression=rule.expression,
        state=state,
        action=rule.on_violation.value,
        rows=rows,
        failed=failed,
        gate=None if rule.gate is None else str(rule.gate),
        # A gate that cannot be judged does not hold.
        gated=rule.gate is not None and (bool(problem) or not rule.gate.allows(failed, rows)),
        note=problem,
        owner=rule.owner or asked.declared.owner,
    )


def _sums(found: Gathered, name: str) -> tuple[int, int]:
    """Rows looked at under a name, and those that failed; none where nobody could look."""
    figures = {} if name in found.problems else found.figures[name]
    parts = figures.values()
    return sum(one.rows for one in parts), sum(one.failed for one in parts)


def _gate(asked: Asked, found: Gathered) -> TableGate | None:
    gate = asked.declared.gate
    if gate is None or not asked.gated:
        return None
    problem = found.problems.get(ANY, "")
    rows, failed = _sums(found, ANY)
    return TableGate(
        table=str(asked.name),
        rows=rows,
        failed=failed,
        gate=str(gate),
        gated=bool(problem) or not gate.allows(failed, rows),
        note=problem,
        owner=asked.declared.owner,
    )


def _lines_of_check(result: CheckResult, asked: Asked, base: Line) -> Iterator[Line]:
    """A line for the table as a whole, and one for each group where there are groups."""
    yield _line(result, asked, base, result.outcome)
    for group in result.groups:
        yield _line(result, asked, base, group.outcome, group=group.key, name=group.name)


def _line(
    result: CheckResult,
    asked: Asked,
    base: Line,
    outcome: Outcome,
    *,
    group: str | None = None,
    name: str | None = None,
) -> Line:
    line = replace(
        base,
        rule=result.check.name,
        expression=result.expression,
        action=result.check.on_failure.value,
        group=group,
        group_name=name,
        version=asked.version,
        owner=result.owner or None,
    )
    return outcome.told_in(line)


def _line_of_rule(counted: RuleCount, asked: Asked, base: Line) -> Line:
    return replace(
        base,
        rule=counted.rule,
        kind=RULE,
        expression=counted.expression,
        action=counted.action,
        state="failed" if counted.failed or counted.note else "passed",
        rows=counted.rows,
        passed=counted.rows - counted.failed,
        failed=counted.failed,
        version=asked.version,
        message=counted.note or None,
        owner=counted.owner or None,
    )


def _line_of_gate(name: str, gate: RuleCount | TableGate, asked: Asked, base: Line) -> Line:
    """A gate is told as a check is: it holds or it does not."""
    return replace(
        base,
        rule=name,
        expression=f"gate: {gate.gate}",
        action=OnFailure.FAIL.value,
        state="failed" if gate.gated else "passed",
        rows=gate.rows,
        passed=gate.rows - gate.failed,
        failed=gate.failed,
        version=asked.version,
        message=gate.told,
        owner=gate.owner or None,
    )
