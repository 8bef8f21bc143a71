"""Looking at a whole project: its rules, its migrations, and what could not be read.

Reads the files once more, for comments that silence findings; touches nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from deltacheck.errors import DeclarationError, DeltacheckError, HistoryError
from deltacheck.lint.finding import Finding, Lint, Severity
from deltacheck.lint.migrations import after, not_undone
from deltacheck.lint.places import Place, Source
from deltacheck.lint.registry import (
    BROKEN_HISTORY,
    CONSTRAINT_LINTS,
    MALFORMED,
    MIGRATION_LINTS,
)
from deltacheck.lint.subjects import Constraint, ConstraintKey, Migration
from deltacheck.names import TableName, split_path
from deltacheck.revisions.graph import History, Revision
from deltacheck.revisions.state import Managed, state_after
from deltacheck.rules.expression import same_rule
from deltacheck.rules.model import Rule, TableRules

Columns = Mapping[TableName, Mapping[str, str]]
"""The Spark types of tables' columns, by column; nested fields as ``address.zip``."""

_Subject = TypeVar("_Subject")

_read = lru_cache(maxsize=1024)(Source.read)


def lint_project(
    rules: Mapping[TableName, TableRules],
    history: History | None = None,
    *,
    problems: Iterable[DeltacheckError] = (),
    applied: Mapping[str, str] | None = None,
    columns: Columns | None = None,
) -> tuple[Finding, ...]:
    """Look for everything that ``deltacheck lint`` knows.

    Args:
        rules: What ``constraints/`` declares, as far as it is sound.
        history: The migrations, if they make a history.
        problems: What could not be read (see ``survey_rules``, ``load_history``).
        applied: The checksums that migrations had when they were applied, by revision.
        columns: The types of the tables' columns, where known; without them lints that need
            a type look only at what the rules themselves say.

    Returns:
        The findings in the order of files and lines, without those that a comment
        silences. What could not be read cannot be silenced.
    """
    applied = applied or {}
    columns = columns or {}
    _read.cache_clear()
    standing = {} if history is None else _standing(history)
    found = [_problem(problem) for problem in problems]
    for declared in rules.values():
        found += _about_rules(declared, standing, columns.get(declared.table, {}))
    if history is not None:
        found += _about_migrations(history, applied)
        for managed in standing.values():
            rule = _declared(rules, managed)
            if managed.revision not in applied and (
                rule is None or not _same(rule, managed.added.expression)
            ):
                types = columns.get(managed.added.table, {})
                found += _about_migrated(managed, history.get(managed.revision), types)
    # A rule set's findings are the same for each table that uses it.
    distinct = {replace(finding, table=None): finding for finding in reversed(found)}
    return tuple(sorted(distinct.values(), key=_order))


def failed(findings: Iterable[Finding]) -> bool:
    """Whether a finding is an error."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def _order(finding: Finding) -> tuple[str, int, int, str, str, str]:
    return (
        str(finding.path or ""),
        finding.line or 0,
        finding.column or 0,
        finding.code,
        finding.rule or "",
        finding.message,
    )


def _problem(problem: DeltacheckError) -> Finding:
    code, name = BROKEN_HISTORY if isinstance(problem, HistoryError) else MALFORMED
    finding = Finding(
        code,
        name,
        Severity.ERROR,
        " ".join(problem.message.split()),
        " ".join(problem.hint.split()),
        table=problem.table,
        rule=problem.rule,
    )
    if isinstance(problem, HistoryError):
        path = problem.paths[0] if problem.paths else None
        return replace(finding, path=path, line=1 if path else None)
    if isinstance(problem, DeclarationError):
        return replace(finding, path=problem.path, line=problem.line, column=problem.column)
    return finding


def _standing(history: History) -> dict[ConstraintKey, Managed]:
    """The constraints that the migrations add up to."""
    return {
        (table, key): managed
        for table, constraints in state_after(history.revisions).items()
        for key, managed in constraints.items()
    }


def _declared(rules: Mapping[TableName, TableRules], managed: Managed) -> Rule | None:
    table = rules.get(managed.added.table)
    return None if table is None else table.rule(managed.added.name)


def _same(rule: Rule, expression: str) -> bool:
    return rule.expression == expression or same_rule(rule.expression, expression)


@dataclass(frozen=True)
class _Spot:
    """Where findings belong, and what they are about."""

    source: Source
    place: Place | None = None
    path: Path | None = None
    table: str | None = None
    rule: str | None = None
    revision: str | None = None


def _found(lints: Iterable[Lint[_Subject]], subject: _Subject, spot: _Spot) -> Iterator[Finding]:
    """What lints find, without those that comments at the spot silence."""
    ignored = frozenset() if spot.place is None else spot.source.ignored(spot.place)
    for lint in lints:
        if ignored is not None and lint.code not in ignored:
            for remark in lint.look(subject):
                yield Finding(
                    lint.code,
                    lint.name,
                    lint.severity,
                    remark.message,
                    remark.remedy,
                    path=spot.path,
                    line=spot.place.line if spot.place else None,
                    column=spot.place.column if spot.place else None,
                    table=spot.table,
                    rule=spot.rule,
                    revision=spot.revision,
                )


def _about_rules(
    declared: TableRules, standing: Mapping[ConstraintKey, Managed], types: Mapping[str, str]
) -> Iterator[Finding]:
    never_null = frozenset(
        ".".join(split_path(rule.column)).lower()
        for rule in declared.rules
        if rule.enforced and rule.column
    )
    subjects = [
        Constraint(
            table=declared.table,
            name=rule.name,
            kind=rule.kind,
            text=rule.declared or rule.expression,
            stored=rule.expression,
            enforced=rule.enforced,
            never_null=never_null,
            types={column.lower(): kind for column, kind in types.items()},
            spellings={column.lower(): column for column in types},
        )
        for rule in declared.rules
    ]
    for rule, subject in zip(declared.rules, subjects, strict=True):
        managed = standing.get((declared.table, rule.key))
        others = [one for one in subjects if one.enforced and one is not subject]
        subject = replace(
            subject,
            limited=frozenset().union(*(one.limits for one in others)),
            elsewhere=None if managed is None else managed.added.name,
        )
        spot = _Spot(Source(""), table=str(declared.table), rule=rule.name)
        if rule.origin is not None:
            source = _read(rule.origin.path)
            place = source.entry(rule.origin.line, rule.origin.column)
            spot = replace(spot, source=source, place=place, path=rule.origin.path)
        yield from _found(CONSTRAINT_LINTS, subject, spot)


def _about_migrated(
    managed: Managed, revision: Revision, types: Mapping[str, str]
) -> Iterator[Finding]:
    added = managed.added
    subject = Constraint(
        table=added.table,
        name=added.name,
        kind=added.kind,
        text=added.expression,
        stored=added.expression,
        types={column.lower(): kind for column, kind in types.items()},
        spellings={column.lower(): column for column in types},
    )
    spot = _spot(revision, table=str(added.table), rule=added.name)
    place = spot.source.call(added.name)
    yield from _found(CONSTRAINT_LINTS, subject, replace(spot, place=place))


def _about_migrations(history: History, applied: Mapping[str, str]) -> Iterator[Finding]:
    state: dict[ConstraintKey, str] = {}
    for revision in history.revisions:
        subject = Migration(revision, state, applied.get(revision.revision))
        spot = _spot(revision)
        for lint in MIGRATION_LINTS:
            wanted = spot.source.function("downgrade") if lint.look is not_undone else None
            place = wanted or (Place(1, 1) if revision.path else None)
            yield from _found([lint], subject, replace(spot, place=place))
        state = after(state, revision.upgrade)


def _spot(revision: Revision, *, table: str | None = None, rule: str | None = None) -> _Spot:
    source = Source("") if revision.path is None else _read(revision.path)
    return _Spot(source, path=revision.path, table=table, rule=rule, revision=revision.revision)
