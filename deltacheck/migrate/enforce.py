"""Bring one table to the constraints of one revision: move violators, ALTER, read back.

On a table that others write to, ALTER's own scan has the last word: a late violator or a
concurrent commit makes the cycle run again, a bounded number of times.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.commit import Statement, Tag, back_off, commit
from deltacheck.delta.failures import (
    EngineFailure,
    failure_of,
    is_conflict,
    new_constraint_violators,
)
from deltacheck.delta.table import count_rows, history, latest_version, read_table
from deltacheck.delta.violators import Violators
from deltacheck.errors import BusyTableError, ConstraintError, LockLostError
from deltacheck.ledger.lock import Lock
from deltacheck.migrate.preflight import TEMPORARY, Look, count_new, hold, is_enforced
from deltacheck.migrate.results import Found, Step, StepState
from deltacheck.migrate.tasks import Task, add_statement, drop_statement
from deltacheck.names import TableName
from deltacheck.quarantine.move import Attempt, move, settle
from deltacheck.quarantine.place import Place, prepare
from deltacheck.revisions.operations import AddConstraint
from deltacheck.rules.expression import same_rule

TRIES = 20
"""How often the cycle runs on a table that others write to."""


@dataclass
class Work:
    """One table in the course of a run.

    Attributes:
        look: What was found before anything changed.
        deadline: When, on the monotonic clock in seconds, to stop trying; None: never.
        moved: Rows moved so far.
        attempts: How many moves were tried so far.
        fresh: Whether nothing of ours has changed the table since it was looked at.
        found: Rule key to the violators found by the run, those already moved included.
        gone: Rule key to the violators already moved.
    """

    session: SparkSession
    environment: Environment
    lock: Lock
    look: Look
    deadline: float | None = None
    moved: int = 0
    attempts: int = 0
    fresh: bool = True
    found: dict[str, Found] = field(default_factory=dict)
    gone: dict[str, Found] = field(default_factory=dict)

    @property
    def name(self) -> TableName:
        """The table."""
        return self.look.table.name


def enforce(work: Work, tasks: Sequence[Task]) -> list[Step]:
    """Do the tasks of one revision on one table.

    Args:
        tasks: All of the same revision and table.

    Returns:
        A step for each task, in order.

    Raises:
        BusyTableError: Other writers won again and again.
        GateError, FailRuleError: Late violators are more than the rules allow.
        LockLostError: Another run has taken over.
        ConstraintError: What was read back is not what was asked for.
    """
    decided = [task for task in tasks if not task.superseded]
    seconds: dict[str | None, float] = {}
    for number in range(TRIES):
        table = read_table(work.session, work.name)
        wanted = {
            task.want.key: task.want
            for task in decided
            if task.want is not None and not is_enforced(table, task.want)
        }
        if number or not work.fresh:
            work.look = replace(work.look, table=table)
        try:
            _move_violators(work, wanted, tasks[0].revision, known=_known(work, wanted, number))
            for task in decided:
                started = time.monotonic()
                _alter(work, task)
                seconds[task.key] = seconds.get(task.key, 0.0) + time.monotonic() - started
            break
        except EngineFailure as error:
            # A late violator, or another writer's commit: look again. All else is an error.
            if new_constraint_violators(error) is None and not is_conflict(error):
                raise _refused(work, tasks[0].revision, error) from None
        finally:
            work.fresh = False
        if work.deadline is not None and time.monotonic() > work.deadline:
            raise _busy(work, number + 1)
        back_off(number)
    else:
        raise _busy(work, TRIES)
    _read_back(work, decided)
    return [_step(work, task, seconds.get(task.key, 0.0)) for task in tasks]


def _known(work: Work, wanted: Mapping[str, AddConstraint], number: int) -> bool:
    """Whether the count made before the run still serves: it is of now, or it found none.

    A row that came since is found by ALTER's own scan.
    """
    found = work.look.found
    if number or found is None or not set(wanted) <= set(found.false):
        return False
    return work.fresh or not any(found.of(key) for key in wanted)


def _move_violators(
    work: Work, wanted: Mapping[str, AddConstraint], revision: str, *, known: bool
) -> None:
    if not wanted:
        return
    work.lock.ensure()
    found = work.look.found if known else None
    if found is None:
        version = latest_version(work.session, work.name)
        found = count_new(work.session, work.name, version, wanted)
        assert found is not None
        hold(work.look.table, wanted, found, work.moved)
    for key in wanted:
        gone = work.gone.get(key, Found(0, 0))
        work.found[key] = Found(gone.false + found.false[key], gone.null + found.null[key])
    if not any(found.of(key) for key in wanted):
        return
    work.attempts += 1
    attempt = Attempt(
        id=f"{work.lock.run}/{revision}/{work.name.name}/{work.attempts}",
        run=work.lock.run,
        revision=revision,
        rules={add.name: add.expression for add in wanted.values()},
        named={add.name: add.expression for key, add in work.look.new.items() if key not in wanted},
    )
    schema = work.look.table.schema
    place = prepare(work.session, work.name, schema, work.look.quarantine, attempt.tag)
    _move(work, place, attempt, found)


def _move(work: Work, place: Place, attempt: Attempt, found: Violators) -> None:
    work.lock.ensure()
    try:
        work.moved += move(work.session, place, attempt, found.version, work.lock.fence)
        work.gone |= {key: work.found[key] for key in found.false if key in work.found}
    except EngineFailure as error:
        if is_conflict(error):
            # The DELETE is known not to have happened: its copy goes.
            settle(work.session, place, [attempt], since=found.version, fence=work.lock.fence)
        raise
    except LockLostError:
        # The DELETE was skipped, so its rows are still in the table.
        settle(work.session, place, [attempt], since=found.version, fence=work.lock.fence)
        raise


def _alter(work: Work, task: Task) -> None:
    """Make the table's constraint what the task wants; goes on from any half-way state."""
    table = read_table(work.session, work.name)
    assert task.rule is not None
    there = table.constraint(task.rule)
    stand_in = task.rule.lower() + TEMPORARY
    statements = []
    if task.want is None:
        if there is not None:
            statements = [drop_statement(work.name, task.rule)]
    elif there is None:
        if not is_enforced(table, task.want):
            statements = [add_statement(work.name, task.rule, task.want.expression)]
    elif not same_rule(there, task.want.expression):
        # Never a moment without either: a stand-in holds while the name changes hands.
        if table.constraint(stand_in) is None:
            statements = [add_statement(work.name, stand_in, task.want.expression)]
        statements += [
            drop_statement(work.name, task.rule),
            add_statement(work.name, task.rule, task.want.expression),
        ]
    if table.constraint(stand_in) is not None or len(statements) == 3:
        statements.append(drop_statement(work.name, stand_in))
    for statement in statements:
        work.lock.ensure()
        tag = Tag(run=work.lock.run, revision=task.revision, step=task.rule)
        commit(work.session, work.name, Statement(statement), tag=tag)


def _read_back(work: Work, tasks: Sequence[Task]) -> None:
    table = read_table(work.session, work.name)
    work.look = replace(work.look, table=table)
    for task in tasks:
        assert task.rule is not None
        there = task.want is not None and is_enforced(table, task.want)
        gone = task.want is None and table.constraint(task.rule) is None
        if not there and not gone:
            raise ConstraintError(
                f"{work.name} does not read back the constraint {task.rule} as it was asked for; "
                f"it has {table.constraint(task.rule) or 'none of that name'}.",
                hint="Another writer may have changed it: run `deltacheck status`, then the same "
                "command again.",
                table=str(work.name),
                rule=task.rule,
            )


def _step(work: Work, task: Task, seconds: float) -> Step:
    violators = None if task.key is None or task.want is None else work.found.get(task.key)
    if task.superseded:
        return replace(planned(work.look, task), state="skipped")
    state: StepState = "dropped" if task.want is None else "enforced"
    return replace(
        planned(work.look, task), state=state, violators=violators, seconds=round(seconds, 3)
    )


def planned(look: Look | None, task: Task) -> Step:
    """A task as a step that is still to be done."""
    statements: tuple[str, ...] = ()
    violators = None
    note = "superseded by a later revision of this run" if task.superseded else ""
    if task.table is not None and task.rule is not None and not task.superseded:
        if task.want is None:
            statements = (drop_statement(task.table, task.rule),)
        else:
            statements = (add_statement(task.table, task.rule, task.want.expression),)
            if look is not None and look.found is not None and task.want.key in look.found.false:
                key = task.want.key
                violators = Found(look.found.false[key], look.found.null[key])
    return Step(
        revision=task.revision,
        operation=task.kind,
        table=None if task.table is None else str(task.table),
        rule=task.rule,
        expression=None if task.want is None else task.want.expression,
        state="skipped" if task.superseded else "planned",
        violators=violators,
        statements=statements,
        note=note,
    )


def rows_now(work: Work) -> int:
    """How many rows the table has now."""
    return count_rows(work.session, work.name, latest_version(work.session, work.name))


def _busy(work: Work, tries: int) -> BusyTableError:
    recent = history(work.session, work.name, limit=tries + 20)
    others: dict[str, int] = {}
    for entry in recent:
        if not entry.tag:
            others[entry.operation] = others.get(entry.operation, 0) + 1
    who = ", ".join(f"{n} {operation}" for operation, n in sorted(others.items())) or "none seen"
    moved = (
        f"{work.moved} rows were moved to {work.look.quarantine} and stay there; "
        if (work.moved)
        else "no row was moved; "
    )
    return BusyTableError(
        f"{work.name} was written to by others during each of {tries} tries (among its last "
        f"commits: {who}); {moved}the revision is not applied.",
        hint="Run the same command again at a quieter hour, or give it longer.",
        table=str(work.name),
    )


def _refused(work: Work, revision: str, error: BaseException) -> ConstraintError:
    failure = failure_of(error)
    return ConstraintError(
        f"{work.name} refused a change of revision {revision}: Spark says "
        f"{failure.condition or failure.kind}. "
        + (
            f"{work.moved} rows were moved to {work.look.quarantine} and stay there."
            if work.moved
            else "No row was moved."
        ),
        hint="Correct the cause, then run the same command again; it goes on here.",
        table=str(work.name),
    )
