"""The operations that lead from what the migrations add up to, to what is declared.

A function of two values: it reads no file and no table. Promises that running its result
on the state gives the declared state, that rules which say the same in other words give
nothing, and that a new rule is there before the one whose place it takes goes, but where a
name passes to another kind of constraint or to the NOT NULL of another column: a table has
each name once.
"""

from __future__ import annotations

from collections.abc import Mapping

from deltacheck.errors import DeclarationError
from deltacheck.names import TableName
from deltacheck.revisions.operations import (
    AddConstraint,
    Operation,
    RenameTable,
    ReplaceConstraint,
    column_key,
)
from deltacheck.revisions.state import Managed, moved
from deltacheck.rules.expression import same_rule
from deltacheck.rules.model import Action, Kind, Rule, TableRules


def difference(
    rules: Mapping[TableName, TableRules], state: Mapping[TableName, Mapping[str, Managed]]
) -> tuple[Operation, ...]:
    """What a new migration has to do.

    Only enforced rules count: a ``warn`` rule is never a constraint. A changed action or
    gate alone gives nothing, since it concerns later batches.

    Args:
        rules: What ``constraints/`` declares.
        state: What the migrations add up to (``state_after``).

    Returns:
        Renamed tables first; then table by table, as declared: for a constraint of another
        kind or column a drop and an add, and then, in the order of the rules, new and
        changed ones, each renamed one's old name right after it; then what is declared no
        more; in the end all of tables that are declared no more.

    Raises:
        DeclarationError: Two tables are said to be renamed from one.
    """
    renames = _renames(rules, state)
    current = {table: dict(constraints) for table, constraints in state.items()}
    for rename in renames:
        current[rename.new] = moved(current.pop(rename.old), rename.new)
    operations: list[Operation] = [*renames]
    for table, declared in rules.items():
        operations += _on_table(declared, current.pop(table, {}))
    for constraints in current.values():
        operations += [managed.added.reverse() for managed in constraints.values()]
    return tuple(operations)


def _renames(
    rules: Mapping[TableName, TableRules], state: Mapping[TableName, Mapping[str, Managed]]
) -> list[RenameTable]:
    """Those that the migrations do not know yet, each once its new name is free."""
    waiting = {old: new for old in state if (new := _new_name(old, rules, state)) is not None}
    taken = set(state)
    result: list[RenameTable] = []
    while free := [old for old, new in waiting.items() if new not in taken]:
        for old in free:
            result.append(RenameTable(old, waiting.pop(old)))
            taken.discard(old)
    return result


def _new_name(
    old: TableName,
    rules: Mapping[TableName, TableRules],
    state: Mapping[TableName, Mapping[str, Managed]],
) -> TableName | None:
    """The table that says it is renamed from ``old``, if one does.

    ``renamed_from`` may stay in a file for ever, so a table that the migrations know by its
    new name comes second, and one without constraints does not count where ``old`` is
    declared anew: what is there can as well be the new table's.
    """
    claims = [
        declared
        for table, declared in rules.items()
        if declared.renamed_from == old
        and table != old
        and (old not in rules or any(rule.enforced for rule in declared.rules))
    ]
    new = [declared for declared in claims if declared.table not in state]
    if len(new) > 1:
        first, second = new[:2]
        raise DeclarationError(
            f"{first.table} and {second.table} both say that they are renamed from {old}; "
            "nothing was done.",
            hint="A table has one new name: remove renamed_from from the other.",
            table=str(second.table),
            path=None if second.origin is None else second.origin.path,
            line=None if second.origin is None else second.origin.line,
        )
    chosen = new or claims
    return chosen[0].table if len(chosen) == 1 else None


def _on_table(declared: TableRules, there: dict[str, Managed]) -> list[Operation]:
    wanted = {rule.key: rule for rule in declared.rules if rule.enforced}
    first: list[Operation] = []
    then: list[Operation] = []
    gone = {key: managed.added for key, managed in there.items() if key not in wanted}
    for key, rule in wanted.items():
        new = _constraint(declared, rule)
        old = there[key].added if key in there else None
        if old is None:
            then.append(new)
            renamed = gone.pop((rule.renamed_from or "").lower(), None)
            if renamed is not None:
                then.append(renamed.reverse())
        elif old.kind is not new.kind or column_key(old.column) != column_key(new.column):
            first += [old.reverse(), new]
        elif new.kind is Kind.CHECK and not same_rule(old.expression, new.expression):
            then.append(ReplaceConstraint(new, old))
    return [*first, *then, *(added.reverse() for added in gone.values())]


def _constraint(declared: TableRules, rule: Rule) -> AddConstraint:
    return AddConstraint(
        table=declared.table,
        name=rule.name,
        kind=rule.kind,
        expression=rule.expression,
        column=rule.column,
        violators="fail" if rule.on_violation is Action.FAIL else "quarantine",
        gate=rule.gate,
    )
