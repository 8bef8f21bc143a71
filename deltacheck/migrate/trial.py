"""Try the constraints of a run before counting: ALTER's own scan tells whether a table is clean.

A constraint that a table takes needs no count, and no gate speaks against it. What a table
refuses is counted, and held against its gates, before any row of the run moves. Where the run
is stopped before a row has moved, the constraints tried by then are dropped again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from deltacheck.delta.commit import Statement, Tag, back_off, commit
from deltacheck.delta.failures import (
    EngineFailure,
    cannot_evaluate,
    is_conflict,
    needs_another_look,
)
from deltacheck.delta.table import (
    Commit,
    Definition,
    count_rows,
    history,
    latest_version,
    read_definition,
)
from deltacheck.delta.violators import Violators
from deltacheck.ledger.lock import Lock
from deltacheck.migrate.alter import alterations
from deltacheck.migrate.enforce import alter
from deltacheck.migrate.outlook import FEATURE_OF_CHECKS
from deltacheck.migrate.preflight import Look, counted, hold_all, is_enforced, with_taken
from deltacheck.migrate.tasks import Task, drop_statement
from deltacheck.names import TableName
from deltacheck.quarantine.move import fence_off
from deltacheck.revisions.operations import AddConstraint

_TRIES = 5
_PROTOCOL = ("delta.minReaderVersion", "delta.minWriterVersion", "delta.feature.")


def can_try(tasks: Sequence[Task]) -> bool:
    """Whether a run is one revision that only adds constraints, so that they can be dropped."""
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
    hold_all(found.values())
    return found


def _tried(session: SparkSession, lock: Lock, look: Look, tasks: Sequence[Task]) -> Look:
    new = [task for task in tasks if task.key in look.new]
    if not new:
        return look
    # As they are now: Delta has made up that state for the ALTERs then. Where others wrote since
    # the look, `enforce` counts again.
    clean = Violators(look.version, count_rows(session, look.name), 0, {}, {}, {})
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
            if not _is_verdict(error):
                # The answer may be lost while the statement still runs.
                tag = Tag(run=lock.run, revision=task.revision, step="fence")
                fence_off(session, look.name, tag, lock.fence(), alters=True)
            break
    look = replace(look, taken=taken)
    return replace(look, found=with_taken(look, clean)) if len(taken) == len(new) else look


def _is_verdict(error: BaseException) -> bool:
    """Whether a failed ALTER has surely ended."""
    return needs_another_look(error) or cannot_evaluate(error)


def take_back(session: SparkSession, lock: Lock, looks: Iterable[Look]) -> list[str]:
    """Drop again what the run has added to tables, before any of their rows has moved.

    Args:
        looks: What was found before anything was added.

    Returns:
        What to tell of it, a sentence for each table that was changed.

    Raises:
        DeltacheckError, PySparkException, Py4JJavaError: A table may still have what was added.
    """
    return [told for look in looks if look.new for told in _dropped(session, lock, look)]


def _dropped(session: SparkSession, lock: Lock, look: Look) -> list[str]:
    name = look.name
    commits = history(session, name, since=look.version)
    table = read_definition(session, name)
    ours = [
        add.name
        for key, add in look.new.items()
        if _was_added_by(commits, key, lock.run) and is_enforced(table, add)
    ]
    for rule in ours:
        _drop(session, lock, name, rule)
    if not ours:
        return []
    it = "it was" if len(ours) == 1 else "they were"
    told = f"{name} had taken {', '.join(ours)} before; {it} dropped again."
    if _protocol(table) != _protocol(look.table):
        told += f" It keeps {FEATURE_OF_CHECKS}, which came with the first constraint."
    return [told]


def _protocol(table: Definition) -> dict[str, str]:
    return {key: value for key, value in table.properties.items() if key.startswith(_PROTOCOL)}


def _was_added_by(commits: Sequence[Commit], key: str, run: str) -> bool:
    """Whether the last commit about a constraint is an ADD of this run; newest first."""
    for one in commits:
        about = one.parameters.get("name", "").strip('"').lower()
        if about == key and one.operation in ("ADD CONSTRAINT", "DROP CONSTRAINT"):
            return one.operation == "ADD CONSTRAINT" and one.tag.get("run") == run
    return False


def _drop(session: SparkSession, lock: Lock, name: TableName, rule: str) -> None:
    statement = Statement(drop_statement(name, rule))
    for left in range(_TRIES - 1, -1, -1):
        # For sure, and each time: a run that has taken over may rely on it.
        lock.renew(session)
        try:
            commit(session, name, statement, tag=Tag(run=lock.run, step=rule))
            return
        except EngineFailure as error:
            if not left or not is_conflict(error):
                raise
            back_off(_TRIES - left)


def untaken(looks: Iterable[Look]) -> str:
    """What to tell of tables whose constraints could not be dropped again."""
    names = ", ".join(str(look.name) for look in looks if look.new)
    return (
        f"Of {names} some may still enforce a rule of the revision that was tried and not dropped "
        "again; `deltacheck status` shows it."
    )


def kept(looks: Iterable[Look]) -> list[str]:
    """What to tell of constraints that stay, since rows of the run have moved already."""
    return [
        f"{look.name} enforces {', '.join(look.new[key].name for key in look.taken)} already."
        for look in looks
        if look.taken
    ]
