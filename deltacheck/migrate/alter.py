"""Which statements make a table's constraint what a task wants, from whatever state it is in.

A value from values: knows no Spark.
"""

from __future__ import annotations

from deltacheck.delta.table import CONSTRAINT_PREFIX, Definition
from deltacheck.migrate.preflight import TEMPORARY, by_schema, name_taken
from deltacheck.migrate.tasks import Task, add_statement, drop_statement
from deltacheck.names import TableName, literal, quote, split_path
from deltacheck.revisions.operations import DropConstraint
from deltacheck.rules.expression import same_rule
from deltacheck.rules.model import Kind


def alterations(table: Definition, task: Task) -> list[str]:
    """The statements for one task, in order; none where there is nothing to do.

    A constraint is replaced without a moment in which neither expression holds: a stand-in
    holds while the name changes hands. Each state between two statements is one from which
    this function goes on.

    Raises:
        ConstraintError: The name is used for another expression, and the task is not to
            replace it.
    """
    assert task.rule is not None
    stored = table.spellings(task.rule)
    stand_in = task.rule.lower() + TEMPORARY
    leftover = table.constraints.get(stand_in)
    clear = [] if leftover is None else [drop_statement(table.name, stand_in)]
    if task.want is None:
        return [*(_off(table.name, name) for name in stored), *_nullable(table, task), *clear]
    expression = task.want.expression
    others = [name for name in stored if not same_rule(table.constraints[name], expression)]
    if not others:
        add = [] if stored or by_schema(table, task.want) else [_add(table, task)]
        return [*add, *clear]
    if not task.replaces:
        raise name_taken(table, task)
    drops = [_off(table.name, name) for name in others]
    if len(others) < len(stored):
        return [*drops, *clear]
    hold = add_statement(table.name, stand_in, expression)
    if leftover is None:
        before = [hold]
    elif same_rule(leftover, expression):
        before = []
    else:
        # Of a replacement that was never finished; the old constraint still holds.
        before = [*clear, hold]
    return [*before, *drops, _add(table, task), drop_statement(table.name, stand_in)]


def _add(table: Definition, task: Task) -> str:
    assert task.rule is not None
    assert task.want is not None
    return add_statement(table.name, task.rule, task.want.expression)


def _off(table: TableName, stored: str) -> str:
    if stored == stored.lower():
        return drop_statement(table, stored)
    # DROP CONSTRAINT looks for the name in lower case alone.
    key = literal(CONSTRAINT_PREFIX + stored)
    return f"ALTER TABLE {table.sql} UNSET TBLPROPERTIES ({key})"


def _nullable(table: Definition, task: Task) -> list[str]:
    operation = task.operation
    if not isinstance(operation, DropConstraint) or operation.kind is not Kind.NOT_NULL:
        return []
    wanted = () if operation.column is None else split_path(operation.column)
    key = tuple(part.lower() for part in wanted)
    for path in table.not_null:
        if tuple(part.lower() for part in path) == key:
            column = ".".join(quote(part) for part in path)
            return [f"ALTER TABLE {table.name.sql} ALTER COLUMN {column} DROP NOT NULL"]
    return []
