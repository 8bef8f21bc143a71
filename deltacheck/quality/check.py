"""Run the checks of tables: look once, judge, and write what came of it to the quality log.

Touches nothing but the log, into which it also takes the passes of wrapped writes before the
tables' history forgets them, and where asked for a table of keys at fault. A table's checks, and
the counts of the rows that break its rules which Delta does not enforce there, are of one version
of it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Literal

from deltacheck.config import Environment
from deltacheck.delta.commit import Tag
from deltacheck.delta.table import Definition, at_version, latest_version, read_definition
from deltacheck.errors import TableNotFoundError
from deltacheck.ledger.journal import compact_journal
from deltacheck.ledger.journal import now as clock
from deltacheck.ledger.quality_log import (
    CHECK,
    RULE,
    Line,
    Series,
    append_lines,
    log_exists,
    read_figures,
    trim_log,
)
from deltacheck.names import TableName, split_path
from deltacheck.quality.described import described
from deltacheck.quality.gather import Gathered, gather
from deltacheck.quality.groups import History, digest, judge_groups, shown_group, summed_up
from deltacheck.quality.judge import Held, judge_quarantine
from deltacheck.quality.keys import Fault, open_keys, write_keys
from deltacheck.quality.passes import unlogged
from deltacheck.quality.results import Checked, CheckResult, Group, Outcome, RuleCount, TableGate
from deltacheck.quality.scan import ALL, Wanted, other_tables, violators, wanted
from deltacheck.quality.trend import Past
from deltacheck.quarantine.holding import Desk, holding
from deltacheck.quarantine.holding import Selection as Rows
from deltacheck.quarantine.listing import count_held
from deltacheck.rules.checks import QuarantineLimits, TableCheck, Trend
from deltacheck.rules.expression import same_rule
from deltacheck.rules.model import Kind, Rule, RuleSet, TableRules
from deltacheck.rules.selection import Selection

SOURCE = "check"
"""What the log calls a run of checks."""

ANY = ""
"""What stands for all of a table's rules together."""

TRIM = "trim"
"""What a commit says of itself that deletes old lines of the log, or puts small files together."""


@dataclass(frozen=True)
class Asked:
    """What is to be looked at of one table.

    Attributes:
        watched: Rules that Delta does not enforce on it.
    """

    declared: TableRules
    definition: Definition
    version: int
    checks: tuple[TableCheck, ...]
    watched: tuple[Rule, ...]

    @property
    def name(self) -> TableName:
        """The table."""
        return self.declared.table

    def wanted(self) -> list[Wanted]:
        """What is asked of it, quarantines apart."""
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
        return tuple(rule for rule in self.watched if rule.enforced)


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
        keep: For how long the log keeps its lines; None: for good. Where it is given, the files
            of deltacheck's own tables are put together as well.
        keys: A table for the keys for which checks fail; None: they are not written.

    Raises:
        NotDeltaError: A table is a view or not Delta.
        TableError: A table cannot be read.
        LedgerError: The log, or the table for keys, cannot be used; nothing was looked at.
    """
    at = clock() if now is None else now
    run = uuid.uuid4().hex
    log_exists(on.session, environment)
    if keys is not None:
        open_keys(on.session, environment, keys)
    tables: list[_Table] = []
    missing: list[str] = []
    for name in sorted(rules, key=str):
        if not _is_asked_for(selection, rules[name]):
            continue
        on.progress(f"Checking {name}")
        base = Line(at, environment.name, str(name), CHECK, "", source=SOURCE, run=run)
        try:
            asked = _asked(on, rules[name], selection)
        except TableNotFoundError:
            # Rules may be declared ahead of their table; a check of it cannot pass.
            if any(selection.has_rule(rules[name], one) for one in rules[name].checks):
                missing.append(str(name))
            continue
        tables.append(_look_at(on, environment, asked, base))
    lines = [line for table in tables for line in table.lines]
    append_lines(on.session, environment, lines, Tag(run=run, step=SOURCE))
    faults = [fault for table in tables for fault in table.faults]
    written = keys is not None and write_keys(on.session, environment, keys, faults, at, run)
    if keep is not None:
        tag = Tag(run=run, step=TRIM)
        trim_log(on.session, environment, at - keep, tag)
        compact_journal(on.session, environment, tag)
    return Checked(
        environment=environment.name,
        run=run,
        at=at,
        checks=tuple(one for table in tables for one in table.checks),
        rules=tuple(one for table in tables for one in table.rules),
        gates=tuple(table.gate for table in tables if table.gate is not None),
        missing=tuple(missing),
        selection=selection,
        keys=str(keys) if written else None,
    )


@dataclass(frozen=True)
class _Table:
    """What came of looking at one table."""

    checks: tuple[CheckResult, ...]
    rules: tuple[RuleCount, ...]
    gate: TableGate | None
    lines: tuple[Line, ...]
    faults: tuple[Fault, ...]


def _look_at(on: Desk, environment: Environment, asked: Asked, base: Line) -> _Table:
    written = unlogged(on.session, environment, asked.declared, base)
    others = [other for check in asked.checks for other in other_tables(check.test)]
    found = gather(on.session, asked.name, asked.wanted(), others)
    past = _history(on, environment, asked, base.at)
    checks = tuple(
        _result(on, asked, check, found, past.get(check.name, {}), base.at)
        for check in asked.checks
    )
    rules = tuple(_count(asked, rule, found) for rule in asked.watched)
    lines = [line for result in checks for line in _lines_of_check(result, asked, base)]
    lines += [_line_of_rule(counted, asked, base) for counted in rules]
    faults = tuple(
        Fault(asked.name, asked.version, one.check)
        for one in checks
        if one.state == "failed" and one.check.name not in found.problems
    )
    return _Table(checks, rules, _gate(asked, found), (*written, *lines), faults)


def _is_asked_for(selection: Selection, declared: TableRules) -> bool:
    return selection.has_table(declared.table) and (
        any(selection.has_rule(declared, one) for one in declared.checks)
        or any(selection.has_rule(declared, one) for one in declared.rules)
    )


def _asked(on: Desk, declared: TableRules, selection: Selection) -> Asked:
    checks = tuple(one for one in declared.checks if selection.has_rule(declared, one))
    table = read_definition(on.session, declared.table)
    watched = tuple(
        rule
        for rule in declared.rules
        if selection.has_rule(declared, rule) and not _enforces(table, rule)
    )
    return Asked(declared, table, latest_version(on.session, table.name), checks, watched)


def _enforces(table: Definition, rule: Rule) -> bool:
    """Whether Delta refuses violators of a rule on this table, under whatever name."""
    if rule.kind is Kind.NOT_NULL and rule.column is not None:
        path = tuple(part.lower() for part in split_path(rule.column))
        if path in {tuple(part.lower() for part in column) for column in table.not_null}:
            return True
    return any(same_rule(text, rule.expression) for text in table.constraints.values())


def _history(
    on: Desk, environment: Environment, asked: Asked, at: datetime
) -> dict[str, dict[str, list[Past]]]:
    """Check to the history that it is held against."""
    series: dict[str, Series] = {}
    for check in asked.checks:
        if isinstance(check.test, Trend):
            last = check.test.last
            weeks = timedelta(weeks=last.count, days=1) if last.weekly else timedelta()
            runs = 0 if last.weekly else last.count
            name = str(asked.name)
            series[check.name] = Series(name, check.name, described(check), runs, at - weeks)
    known = read_figures(on.session, environment, series.values())
    history: dict[str, dict[str, list[Past]]] = {}
    for name, one in series.items():
        groups = history.setdefault(name, {})
        for figure in known[one]:
            groups.setdefault(figure.group, []).append(Past(figure.at, Fraction(figure.value)))
    return history


def _result(
    on: Desk, asked: Asked, check: TableCheck, found: Gathered, history: History, at: datetime
) -> CheckResult:
    if isinstance(check.test, QuarantineLimits):
        groups = {ALL: judge_quarantine(check.test, _held(on, asked.name), at)}
    elif check.name in found.problems:
        groups = {ALL: Outcome("failed", found.problems[check.name], 0)}
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
    figures = {} if problem else found.figures[rule.name]
    rows = sum(one.rows for one in figures.values())
    failed = sum(one.failed for one in figures.values())
    return RuleCount(
        table=str(asked.name),
        rule=rule.name,
        expression=rule.expression,
        state=state,
        action=rule.on_violation.value,
        rows=rows,
        failed=failed,
        gate=None if rule.gate is None else str(rule.gate),
        gated=rule.gate is not None and not rule.gate.allows(failed, rows),
        note=problem,
        owner=rule.owner or asked.declared.owner,
    )


def _gate(asked: Asked, found: Gathered) -> TableGate | None:
    gate = asked.declared.gate
    if gate is None or ANY not in found.figures:
        return None
    (one,) = found.figures[ANY].values()
    return TableGate(
        table=str(asked.name),
        rows=one.rows,
        failed=one.failed,
        gate=str(gate),
        gated=not gate.allows(one.failed, one.rows),
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
    return replace(
        base,
        rule=result.check.name,
        expression=result.expression,
        action=result.check.on_failure.value,
        state=outcome.state,
        rows=outcome.rows,
        passed=outcome.rows - outcome.failed,
        failed=outcome.failed,
        figure=None if outcome.figure is None else float(outcome.figure),
        group=group,
        group_name=name,
        version=asked.version,
        message=outcome.message,
        owner=result.owner or None,
    )


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
