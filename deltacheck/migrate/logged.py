"""Put into the quality log what an upgrade found, and the writes that its tables tell of.

Done after the run, beside its journal: a log that cannot be written or read undoes nothing, and
is told by a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime

from deltacheck.delta.commit import Tag
from deltacheck.errors import ViolationError
from deltacheck.ledger.quality_log import CHECK, RULE, Line, append_lines, warned_where_unlogged
from deltacheck.migrate.results import RunResult
from deltacheck.migrate.run import Scene
from deltacheck.names import TableName
from deltacheck.quality.check import TABLE_GATE
from deltacheck.quality.passes import gaps, harvest
from deltacheck.rules.checks import OnFailure
from deltacheck.rules.model import TableRules

SOURCE = "upgrade"
"""What the log calls a run of migrations."""


def log_run(scene: Scene, result: RunResult, at: datetime) -> RunResult:
    """Log how many rows each new rule found, and the wrapped writes to the tables concerned.

    Args:
        result: What the run did, until it was stopped where it was.
        at: When the run began (UTC).

    Returns:
        The result, with a note of what the tables' histories no longer tell.
    """
    if result.run is None or result.dry_run:
        return result
    lines: list[Line] = []
    with _warning(scene):
        lines += _written(scene, result, at)
        _append(scene, [*lines, *_found(scene, result, at)], result.run)
    return replace(result, notes=(*result.notes, *gaps(lines)))


@contextmanager
def stops_logged(scene: Scene, at: datetime) -> Iterator[None]:
    """Log the rule or the gate that stops a run, and let it."""
    try:
        yield
    except ViolationError as stop:
        if stop.table is not None:
            with _warning(scene):
                _append(scene, list(_stopped(scene, at, stop.table, stop)), None)
        raise


def _stopped(scene: Scene, at: datetime, table: str, stop: ViolationError) -> Iterator[Line]:
    """The line of the rule that stops a run; or those of all rules of a gate, and of the gate."""
    rows = int(stop.rows)
    lines = [_line(scene, at, table, rule, rows, failed) for rule, failed in stop.by.items()]
    if stop.rule is None:
        gate = _line(scene, at, table, TABLE_GATE, rows, stop.violators)
        lines.append(replace(gate, kind=CHECK, action=OnFailure.FAIL.value))
    yield from lines[:-1]
    yield replace(lines[-1], message=stop.message)


def _found(scene: Scene, result: RunResult, at: datetime) -> Iterator[Line]:
    rows = {table.table: table.before for table in result.tables}
    for step in result.steps:
        if step.table is None or step.rule is None or step.violators is None:
            continue
        line = _line(scene, at, step.table, step.rule, rows[step.table], step.violators.total)
        yield replace(line, run=result.run, revision=step.revision, expression=step.expression)


def _line(scene: Scene, at: datetime, table: str, rule: str, rows: int, failed: int) -> Line:
    declared = scene.rules.get(TableName.parse(table))
    known = None if declared is None else declared.rule(rule)
    owners = [one.owner for one in (known, declared) if one is not None and one.owner]
    return Line(
        at,
        scene.environment.name,
        table,
        RULE,
        "failed" if failed else "passed",
        rule=rule,
        expression=None if known is None else known.expression,
        action=None if known is None else known.on_violation.value,
        rows=rows,
        passed=rows - failed,
        failed=failed,
        source=SOURCE,
        owner=next(iter(owners), None),
    )


def _written(scene: Scene, result: RunResult, at: datetime) -> tuple[Line, ...]:
    names = [TableName.parse(table.table) for table in result.tables]
    # By the names that the migrations have for them, as the lines of the run itself.
    declared = [replace(scene.rules.get(name, TableRules(name, ())), table=name) for name in names]
    base = Line(at, scene.environment.name, "", RULE, "", source=SOURCE)
    # A later statement of a migration may have dropped one.
    return harvest(scene.session, scene.environment, declared, base).of_tables_there()


def _append(scene: Scene, lines: Sequence[Line], run: str | None) -> None:
    append_lines(scene.session, scene.environment, lines, Tag(run=run, step=SOURCE))


def _warning(scene: Scene) -> AbstractContextManager[None]:
    environment = scene.environment
    return warned_where_unlogged(environment, environment.name, "what the run found")
