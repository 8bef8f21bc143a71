"""What migrations add up to: which constraints the tables have after them.

The one place where a drop or a replacement learns what had been added before, so that it
can be reversed. Promises that a chain which passes here never adds a name twice and never
drops or replaces what is not there. Knows nothing of files and of tables as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from deltacheck.errors import HistoryError
from deltacheck.names import TableName
from deltacheck.revisions.operations import (
    AddConstraint,
    DropConstraint,
    Execute,
    Operation,
    RenameTable,
    ReplaceConstraint,
    column_key,
)
from deltacheck.revisions.revision import Revision, paths_of
from deltacheck.rules.model import Kind


@dataclass(frozen=True)
class Managed:
    """A constraint that the migrations have put on a table.

    Attributes:
        added: As it was added, or as a later replacement or renaming left it.
        revision: The revision that added it or last changed its expression.
    """

    added: AddConstraint
    revision: str


State = dict[TableName, dict[str, Managed]]
"""By table, and within it by the rule's name in lower case. Tables without any are absent."""


def moved(constraints: Mapping[str, Managed], table: TableName) -> dict[str, Managed]:
    """The same constraints on a table that has taken another name."""
    return {
        key: replace(managed, added=replace(managed.added, table=table))
        for key, managed in constraints.items()
    }


def state_after(revisions: Iterable[Revision]) -> State:
    """The constraints that tables have when ``revisions`` have run, in this order.

    Raises:
        HistoryError: One adds a name that is there, or drops or replaces one that is not.
    """
    state: State = {}
    for revision in revisions:
        _run(revision, "upgrade", revision.upgrade, state)
    return state


def resolved(revisions: Iterable[Revision]) -> tuple[Revision, ...]:
    """The same revisions, their drops and replacements told what had been added before.

    Args:
        revisions: From base to head.

    Raises:
        HistoryError: As for :func:`state_after`; the downgrades are held to it as well.
    """
    state: State = {}
    result = []
    for revision in revisions:
        upgrade = _run(revision, "upgrade", revision.upgrade, state)
        after = {table: dict(constraints) for table, constraints in state.items()}
        downgrade = _run(revision, "downgrade", revision.downgrade, after)
        result.append(replace(revision, upgrade=upgrade, downgrade=downgrade))
    return tuple(result)


def _run(
    revision: Revision, way: str, operations: Iterable[Operation], state: State
) -> tuple[Operation, ...]:
    """Carry ``operations`` out on ``state``, in place, and return them resolved."""
    where = f"{revision.file}, {way}()"
    return tuple(_step(revision, where, operation, state) for operation in operations)


def _step(revision: Revision, where: str, operation: Operation, state: State) -> Operation:
    if isinstance(operation, AddConstraint):
        there = state.get(operation.table, {}).get(operation.key)
        if there is not None:
            raise HistoryError(
                f"{where} adds {operation.name} on {operation.table}, which revision "
                f"{there.revision} has put there already; nothing was done.",
                hint="Use op.replace_check to change its expression, or take another name.",
                paths=paths_of(revision),
            )
        state.setdefault(operation.table, {})[operation.key] = Managed(operation, revision.revision)
        return operation
    if isinstance(operation, DropConstraint):
        there = _there(revision, where, "drops", operation, state)
        if there.added.kind is not operation.kind:
            raise _other_kind(revision, where, there.added)
        if column_key(operation.column) != column_key(there.added.column):
            raise HistoryError(
                f"{where} drops {operation.name} on {operation.table} as a NOT NULL of "
                f"{operation.column}, but it is one of {there.added.column}; nothing was done.",
                hint=f"Name the column {there.added.column}.",
                paths=paths_of(revision),
            )
        del state[operation.table][operation.key]
        if not state[operation.table]:
            del state[operation.table]
        return replace(operation, added=there.added)
    if isinstance(operation, ReplaceConstraint):
        there = _there(revision, where, "replaces", operation, state)
        if there.added.kind is not Kind.CHECK:
            raise _other_kind(revision, where, there.added)
        state[operation.table][operation.key] = Managed(operation.added, revision.revision)
        return replace(operation, previous=there.added)
    if isinstance(operation, RenameTable):
        _rename(revision, where, operation, state)
    else:
        assert isinstance(operation, Execute)  # no effect on what deltacheck manages
    return operation


def _there(
    revision: Revision,
    where: str,
    verb: str,
    operation: DropConstraint | ReplaceConstraint,
    state: State,
) -> Managed:
    constraints = state.get(operation.table, {})
    if operation.key not in constraints:
        has = ", ".join(managed.added.name for managed in constraints.values())
        raise HistoryError(
            f"{where} {verb} {operation.name} on {operation.table}, which no earlier revision "
            "has added; nothing was done.",
            hint=f"At this point the migrations give {operation.table}: {has or 'no constraint'}.",
            paths=paths_of(revision),
        )
    return constraints[operation.key]


def _other_kind(revision: Revision, where: str, added: AddConstraint) -> HistoryError:
    if added.kind is Kind.NOT_NULL:
        call = f'op.drop_not_null("{added.table}", "{added.column}", name="{added.name}")'
    else:
        call = f'op.drop_check("{added.table}", "{added.name}")'
    return HistoryError(
        f"{where} takes {added.name} on {added.table} for the other kind of constraint; "
        "nothing was done.",
        hint=f"Drop it with {call}.",
        paths=paths_of(revision),
    )


def _rename(revision: Revision, where: str, operation: RenameTable, state: State) -> None:
    if operation.old not in state or operation.new in state:
        table = operation.new if operation.new in state else operation.old
        problem = (
            "already has constraints of its own" if table in state else "has no constraint to carry"
        )
        raise HistoryError(
            f"{where} renames {operation.old} to {operation.new}, but {table} {problem} at this "
            "point; nothing was done.",
            hint="op.rename_table is for a table that took its constraints along to a new name.",
            paths=paths_of(revision),
        )
    state[operation.new] = moved(state.pop(operation.old), operation.new)
