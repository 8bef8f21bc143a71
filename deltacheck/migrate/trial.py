"""Try the constraints of a run before counting: ALTER's own scan tells whether a table is clean.

A constraint that a table takes needs no count, and no gate speaks against it. What a table
refuses is counted, and held against its gates, before any row of the run moves. Where that
stops the run, the constraints tried by then are dropped again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import SparkSession

from deltacheck.delta.commit import Statement, Tag, commit
from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.delta.table import count_rows, history, latest_version, read_definition
from deltacheck.delta.violators import Violators
from deltacheck.errors import DeltacheckError
from deltacheck.ledger.lock import Lock
from deltacheck.migrate.alter import alterations
from deltacheck.migrate.enforce import alter
from deltacheck.migrate.preflight import Look, counted, hold, is_enforced, with_taken
from deltacheck.migrate.tasks import Task, drop_statement
from deltacheck.names import TableName
from deltacheck.quarantine.move import fence_off
from deltacheck.revisions.operations import AddConstraint


def can_try(tasks: Sequence[Task]) -> bool:
    """Whether a run is one revision that only adds constraints: dropping them takes all back."""
    return len({task.revision for task in tasks}) == 1 and all(
        isinstance(task.operation, AddConstraint) and not task.replaces and not task.superseded
        for task in tasks
    )


def tried(
    session: SparkSession, lock: Lock, tasks: Sequence[Task], looks: Mapping[TableName, Look]
) -> dict[TableName, Look]:
    """The looks after each table was given its new constraints, until it refused one.

    Args:
        tasks: All of the run; they only add constraints.
        looks: What was found, nothing counted yet.

    Raises:
        LockLostError: Another run has taken over.
        ExpressionError: A rule cannot be evaluated on some row.
        FailRuleError, GateError, AppendOnlyError: As for ``hold``.
    """
    found = {
        name: _tried(session, lock, look, [task for task in tasks if task.table == name])
        for name, look in looks.items()
    }
    left = [name for name, look in found.items() if look.found is None and look.new]
    found |= {name: counted(session, found[name], latest_version(session, name)) for name in left}
    for name in left:
        look = found[name]
        assert look.found is not None
        hold(look.table, look.new, look.found, look.gate)
    return found


def _tried(session: SparkSession, lock: Lock, look: Look, tasks: Sequence[Task]) -> Look:
    new = [task for task in tasks if task.key in look.new]
    if not new:
        return look
    # Of the state of the table that the first ALTER reads as well.
    clean = Violators(look.version, count_rows(session, look.name, look.version), 0, {}, {}, {})
    taken: dict[str, float] = {}
    for task in new:
        assert task.key is not None
        if len(alterations(look.table, task)) != 1:
            break
        try:
            taken[task.key] = alter(session, lock, look.table, task)
        except EngineFailure as error:
            # Violators, another writer's commit, or what no count mends: the way that counts
            # first finds out, and tells it.
            if failure_of(error).condition is None:
                # No verdict: the answer may be lost while the statement still runs.
                tag = Tag(run=lock.run, revision=task.revision, step="fence")
                fence_off(session, look.name, tag, lock.fence(), alters=True)
            break
    look = replace(look, taken=taken)
    return replace(look, found=with_taken(look, clean)) if len(taken) == len(new) else look


@contextmanager
def taken_back(
    session: SparkSession, lock: Lock, looks: Mapping[TableName, Look]
) -> Iterator[None]:
    """Drop again what the run has added to tables, if an error ends it here.

    Args:
        looks: What was found before anything was added.
    """
    try:
        yield
    except DeltacheckError as stop:
        told = [_dropped(session, lock, look) for look in looks.values() if look.new]
        stop.message = " ".join([stop.message, *filter(None, told)])
        raise
    except EngineFailure:
        for look in looks.values():
            _dropped(session, lock, look)
        raise


def _dropped(session: SparkSession, lock: Lock, look: Look) -> str:
    """Drop what the run has added to one table; what to tell of it, or nothing."""
    name, left = look.name, [add.name for add in look.new.values()]
    gone: list[str] = []
    try:
        commits = history(session, name, since=look.version)
        ours = {one.tag.get("step") for one in commits if one.tag.get("run") == lock.run}
        table = read_definition(session, name)
        new = look.new.values()
        left = [add.name for add in new if add.name in ours and is_enforced(table, add)]
        if left:
            # For sure, and now: another run may rely on them.
            lock.renew(session)
        while left:
            statement = Statement(drop_statement(name, left[0]))
            commit(session, name, statement, tag=Tag(run=lock.run, step=left[0]), tries=5)
            gone.append(left.pop(0))
    except (DeltacheckError, *EngineFailure):
        return f"{name} may still enforce {', '.join(left)}, tried before and not dropped again."
    if not gone:
        return ""
    one = len(gone) == 1
    return (
        f"{name} had taken {', '.join(gone)} before; {'it was' if one else 'they were'} dropped "
        "again."
    )
