"""Bring one table to the constraints of one revision: move violators, ALTER, read back.

On a table that others write to, ALTER's own scan has the last word: a late violator or a
concurrent commit makes the cycle run again, a bounded number of times. Nothing of a try is
left behind by the next: an attempt whose rows could not be moved is settled first.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.commit import Statement, Tag, back_off, commit
from deltacheck.delta.failures import (
    EngineFailure,
    failure_of,
    is_generated_value,
    needs_another_look,
)
from deltacheck.delta.session import REPEATED_FIRST
from deltacheck.delta.table import (
    Commit,
    Definition,
    count_rows,
    history,
    latest_version,
    read_definition,
    read_table,
)
from deltacheck.delta.violators import Violators
from deltacheck.errors import BusyTableError, ConstraintError, QuarantineError
from deltacheck.ledger.journal import Touched
from deltacheck.ledger.lock import Lock, announced
from deltacheck.migrate.alter import alterations
from deltacheck.migrate.preflight import Look, count_new, gated, hold, is_enforced
from deltacheck.migrate.results import Found, Step
from deltacheck.migrate.tasks import Task, add_statement, drop_statement
from deltacheck.names import TableName
from deltacheck.quarantine.move import Attempt, fence_off, held_of, move, settle
from deltacheck.revisions.operations import AddConstraint
from deltacheck.rules.expression import parse_rule

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
        unsettled: Attempts that began and are not settled, with the version before them.
        version: The table's version when the run was last done with it.
        alone: Whether nobody else committed to the table from the look until then.
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
    unsettled: dict[str, tuple[Attempt, int]] = field(default_factory=dict)
    version: int | None = None
    alone: bool = False

    @property
    def name(self) -> TableName:
        """The table."""
        return self.look.name


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
        QuarantineError: The quarantine cannot be written.
        ConstraintError: What was read back is not what was asked for.
    """
    decided = [task for task in tasks if not task.superseded]
    seconds: dict[str | None, float] = dict(work.look.taken.items())
    for number in range(TRIES):
        try:
            settle_left(work)
            if decided:
                _once(work, decided, seconds, first=number == 0)
            break
        except EngineFailure as error:
            # A late violator, or another writer's commit: look again. All else is an error.
            if not needs_another_look(error):
                raise _refused(work, tasks[0].revision, error) from None
        finally:
            work.fresh = False
        if work.deadline is not None and time.monotonic() > work.deadline:
            raise _busy(work, number + 1)
        back_off(number)
    else:
        raise _busy(work, TRIES)
    if decided:
        _read_back(work, decided)
    return [_step(work, task, seconds.get(task.key, 0.0)) for task in tasks]


def _once(
    work: Work, tasks: Sequence[Task], seconds: dict[str | None, float], *, first: bool
) -> None:
    table = read_definition(work.session, work.name)
    wanted = {
        task.want.key: task.want
        for task in tasks
        if task.want is not None and not is_enforced(table, task.want)
    }
    work.look = replace(work.look, table=table)
    _move_violators(work, wanted, tasks[0].revision, first=first)
    for task in tasks:
        took = alter(work.session, work.lock, table, task)
        seconds[task.key] = seconds.get(task.key, 0.0) + took


def announcement(look: Look, version: int | None = None) -> Touched:
    """What the journal is told of a table before a run touches it.

    Args:
        version: The table's version now; by default that of the look.
    """
    if version is None:
        version = look.version
    return Touched(look.name, version, look.id, look.quarantine)


def settle_left(work: Work) -> None:
    """Settle the attempts of earlier tries; their statements have returned.

    Raises:
        PySparkException, Py4JJavaError: Whatever Spark or Delta raises.
    """
    for name, (attempt, since) in list(work.unsettled.items()):
        done = settle(
            work.session,
            work.name,
            work.look.quarantine,
            [attempt],
            since=since,
            fence=work.lock.fence,
        )
        work.moved += done[name].rows
        del work.unsettled[name]


def _move_violators(
    work: Work, wanted: Mapping[str, AddConstraint], revision: str, *, first: bool
) -> None:
    if not wanted:
        return
    work.lock.ensure()
    before, past = work.moved, _past(work, wanted)
    found = _known(work, wanted) if first else None
    if found is None:
        version = latest_version(work.session, work.name)
        found = count_new(work.session, work.name, version, wanted)
        assert found is not None
        hold(work.look.table, wanted, found, work.look.gate, moved=before, past=past)
    _note(work, wanted, found)
    if not any(found.of(key) for key in wanted):
        return
    if work.look.id is None:
        # They came late: whoever settles this run must be able to tell this table from another
        # of its name.
        work.look = replace(work.look, id=read_table(work.session, work.name).id)
        work.lock.record(announced([announcement(work.look, found.version)]))
    attempt = _attempt(work, wanted, revision)
    work.lock.ensure()
    work.unsettled[attempt.id] = (attempt, found.version)
    done = move(
        work.session,
        work.name,
        work.look.quarantine,
        attempt,
        found.version,
        work.lock.fence,
    )
    del work.unsettled[attempt.id]
    work.moved += done.rows
    if done.version is None:
        return
    if done.version != found.version:
        # Others committed between the count and the DELETE: judge what was really moved.
        found = count_new(work.session, work.name, done.version, wanted)
        assert found is not None
        _note(work, wanted, found)
        look = work.look
        hold(look.table, wanted, found, look.gate, moved=before, past=past, now=done.rows)
    for key in wanted:
        work.gone[key] = _plus(work.gone.get(key), found, key)


def _attempt(work: Work, wanted: Mapping[str, AddConstraint], revision: str) -> Attempt:
    # Violators of a "fail" rule are never moved: late ones stay, and stop the run.
    moving = {add.name: add.expression for add in wanted.values() if add.violators != "fail"}
    work.attempts += 1
    return Attempt(
        id=f"{work.lock.run}/{revision}/{work.name}/{work.attempts}",
        run=work.lock.run,
        revision=revision,
        rules=moving,
        named={
            add.name: add.expression
            for add in {**work.look.new, **wanted}.values()
            if add.name not in moving
        },
    )


def _known(work: Work, wanted: Mapping[str, AddConstraint]) -> Violators | None:
    """The count made before the run, if it still serves: it is of now, or it found none.

    A row that came since is found by ALTER's own scan.
    """
    found = work.look.found
    if found is None or not set(wanted) <= set(found.false):
        return None
    if any(found.of(key) for key in wanted) and (
        not work.fresh or latest_version(work.session, work.name) != found.version
    ):
        return None
    return found


def _past(work: Work, wanted: Mapping[str, AddConstraint]) -> dict[str, int]:
    """How many of the rows moved so far broke the rules of each gate."""
    if not work.moved:
        return {}
    groups = {one.key: [add.name for add in one.members] for one in gated(wanted)}
    return held_of(work.session, work.look.quarantine, work.lock.run, groups)


def _note(work: Work, wanted: Mapping[str, AddConstraint], found: Violators) -> None:
    """Report the violators of a rule: those of now and those moved, or what was seen at first.

    At first includes rows that went with an earlier revision of the run for another rule.
    """
    seen = work.look.found
    for key in wanted:
        now = _plus(work.gone.get(key), found, key)
        if seen is not None and key in seen.false:
            now = Found(max(now.false, seen.false[key]), max(now.null, seen.null[key]))
        work.found[key] = now


def _plus(gone: Found | None, found: Violators, key: str) -> Found:
    past = Found(0, 0) if gone is None else gone
    return Found(past.false + found.false[key], past.null + found.null[key])


def alter(session: SparkSession, lock: Lock, table: Definition, task: Task) -> float:
    """Issue the statements of one task.

    Returns:
        The seconds that they took.

    Raises:
        LockLostError: Another run has taken over.
        PySparkException, Py4JJavaError: Whatever Spark or Delta raises.
    """
    started = time.monotonic()
    # Delta names a rule twice in its scan (NOT rule OR rule IS NULL).
    pattern = task.want is not None and parse_rule(task.want.expression).is_pattern
    conf = {REPEATED_FIRST: "true"} if pattern else {}
    for statement in alterations(table, task):
        lock.ensure()
        tag = Tag(run=lock.run, revision=task.revision, step=task.rule)
        commit(session, table.name, Statement(statement, conf), tag=tag)
    return time.monotonic() - started


def _read_back(work: Work, tasks: Sequence[Task]) -> None:
    table = read_definition(work.session, work.name)
    work.look = replace(work.look, table=table)
    since = None if work.look.found is None else work.look.found.version
    commits = history(work.session, work.name, limit=1 if since is None else None, since=since)
    work.version = commits[0].version if commits else since
    work.alone = bool(commits) and all(one.tag.get("run") == work.lock.run for one in commits)
    if work.look.found is not None and work.look.taken and not work.alone:
        # Rows of a trial are counted without holding on to the version of the look. Delta may
        # have cleaned up its log meanwhile; then that count is as good as can be had.
        with suppress(*EngineFailure):
            rows = count_rows(work.session, work.name, work.look.found.version)
            work.look = replace(work.look, found=replace(work.look.found, rows=rows))
    for task in tasks:
        assert task.rule is not None
        if alterations(table, task):
            raise ConstraintError(
                f"{work.name} does not read back the constraint {task.rule} as it was asked for; "
                f"it has {table.constraint(task.rule) or 'none of that name'}.",
                hint="Another writer may have changed it: run `deltacheck status`, then the same "
                "command again.",
                table=str(work.name),
                rule=task.rule,
            )


def _step(work: Work, task: Task, seconds: float) -> Step:
    plan = planned(work.look, task)
    if task.superseded:
        return replace(plan, state="skipped")
    found = None if task.key is None or task.want is None else work.found.get(task.key)
    return replace(
        plan,
        state="dropped" if task.want is None else "enforced",
        # What was tried and taken was not counted.
        violators=found or plan.violators,
        seconds=round(seconds, 3),
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
    """How many rows the table has when the run is done with it."""
    found, version = work.look.found, work.version
    if found is not None and work.alone and not work.moved:
        # ALTER changes no row.
        return found.rows
    if version is None:
        version = latest_version(work.session, work.name)
    return count_rows(work.session, work.name, version)


def _busy(work: Work, tries: int) -> BusyTableError | QuarantineError:
    try:
        settle_left(work)
    except EngineFailure as error:
        return _unsettled(work, error)
    since = history(work.session, work.name, since=work.look.version)
    won = Counter(_writer(one) for one in since if one.tag.get("run") != work.lock.run)
    who = ", ".join(f"{commits} {writer}" for writer, commits in won.most_common()) or "none seen"
    moved = (
        f"{work.moved} rows were moved to {work.look.quarantine} and stay there; "
        if work.moved
        else "no row was moved; "
    )
    return BusyTableError(
        f"{work.name} was written to by others during each of {tries} tries (commits since "
        f"the run began: {who}); {moved}the revision is not applied.",
        hint="Run the same command again at a quieter hour, or give it longer.",
        table=str(work.name),
    )


def _writer(one: Commit) -> str:
    job = one.tag.get("job")
    engine = one.engine or "an unknown engine"
    return f"{one.operation} by {engine}" + (f", job {job}" if job else "")


def _unsettled(work: Work, error: BaseException) -> QuarantineError:
    failure = failure_of(error)
    return QuarantineError(
        f"A copy in {work.look.quarantine} of rows of {work.name} could not be settled: Spark "
        f"says {failure.condition or failure.kind}. The rows are still in {work.name}; until the "
        "copy is settled they show in both.",
        hint="Run the same command again: it settles the copy first.",
        table=str(work.name),
    )


def _moved_so_far(work: Work) -> str:
    moved = (
        f"{work.moved} rows were moved to {work.look.quarantine} and stay there."
        if work.moved
        else "No row was moved."
    )
    if work.unsettled:
        moved += " A move that was under way may have ended or not: the next run settles it."
    return moved


def _refused(work: Work, revision: str, error: BaseException) -> ConstraintError:
    failure = failure_of(error)
    # Nothing is left half done where that can be helped; else the next run settles it.
    with suppress(*EngineFailure):
        if work.unsettled:
            # The answer to a statement may be lost while the statement still runs.
            tag = Tag(run=work.lock.run, revision=revision, step="fence")
            fence_off(work.session, work.name, tag, work.lock.fence())
            settle_left(work)
    hint = "Correct the cause, then run the same command again; it goes on here."
    if is_generated_value(error):
        hint = (
            "A row that was to stay has a value in a generated column that is not what the column "
            "is generated as in UTC, so Delta cannot write its file anew. With deletion vectors "
            "it need not: set delta.enableDeletionVectors to true on the table, then run the same "
            "command again; it goes on here."
        )
    return ConstraintError(
        f"{work.name} refused a change of revision {revision}: Spark says "
        f"{failure.condition or failure.kind}. " + _moved_so_far(work),
        hint=hint,
        table=str(work.name),
    )
