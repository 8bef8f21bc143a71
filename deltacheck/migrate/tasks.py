"""What a run has to do, as a value: the net effect of some revisions on each constraint.

A constraint that one pending revision adds and a later one replaces or drops is not added in
between: no row is moved for a rule that will not hold at the target. Knows no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from deltacheck.names import TableName, quote
from deltacheck.revisions.graph import Revision
from deltacheck.revisions.operations import (
    AddConstraint,
    DropConstraint,
    Execute,
    Operation,
    RenameTable,
    ReplaceConstraint,
)
from deltacheck.rules.model import Kind, RuleSet
from deltacheck.rules.selection import Selection

Direction = Literal["upgrade", "downgrade"]


@dataclass(frozen=True)
class Task:
    """One operation of one revision, as part of a run.

    Attributes:
        table: The table as it is named at the target.
        want: The constraint to be there afterwards; None where it is to be gone.
        replaces: Whether a constraint of that name with another expression may be there.
        superseded: Whether a later task of the run decides about the same constraint.
    """

    revision: str
    operation: Operation
    table: TableName | None = None
    want: AddConstraint | None = None
    replaces: bool = False
    superseded: bool = False

    @property
    def rule(self) -> str | None:
        """The rule concerned, as declared."""
        return None if isinstance(self.operation, (Execute, RenameTable)) else self.operation.name

    @property
    def key(self) -> str | None:
        """The name by which Delta stores the rule."""
        return None if self.rule is None else self.rule.lower()

    @property
    def kind(self) -> str:
        """The operation's name in a migration."""
        return operation_kind(self.operation)


def operation_kind(operation: Operation) -> str:
    """What an operation is called in a migration: ``add_check``, ``set_not_null``, ..."""
    match operation:
        case AddConstraint(kind=kind):
            return "set_not_null" if kind is Kind.NOT_NULL else "add_check"
        case DropConstraint(kind=kind):
            return "drop_not_null" if kind is Kind.NOT_NULL else "drop_check"
        case ReplaceConstraint():
            return "replace_check"
        case RenameTable():
            return "rename_table"
        case Execute():
            return "execute"


def tasks_of(revisions: Iterable[Revision], direction: Direction) -> tuple[Task, ...]:
    """The tasks of a run, in order.

    Args:
        revisions: In the order in which they run.
        direction: Whether their upgrades or their downgrades run.
    """
    tasks = [
        _task(revision.revision, operation)
        for revision in revisions
        for operation in (revision.upgrade if direction == "upgrade" else revision.downgrade)
    ]
    return tuple(_net(_renamed(tasks)))


def _task(revision: str, operation: Operation) -> Task:
    match operation:
        case AddConstraint():
            return Task(revision, operation, operation.table, operation)
        case ReplaceConstraint():
            return Task(revision, operation, operation.table, operation.added, replaces=True)
        case DropConstraint():
            return Task(revision, operation, operation.table)
        case _:
            return Task(revision, operation)


def _renamed(tasks: Sequence[Task]) -> list[Task]:
    names: dict[TableName, TableName] = {}
    result: list[Task] = []
    for task in reversed(tasks):
        if isinstance(task.operation, RenameTable):
            names[task.operation.old] = names.get(task.operation.new, task.operation.new)
        elif task.table is not None:
            task = replace(task, table=names.get(task.table, task.table))
        result.append(task)
    return result[::-1]


def _net(tasks: Sequence[Task]) -> list[Task]:
    result: list[Task] = []
    last: dict[tuple[TableName | None, str | None], int] = {}
    for place, task in enumerate(tasks):
        if isinstance(task.operation, Execute):
            # A statement of the user's own may rely on what came before it.
            last.clear()
        elif task.key is not None:
            earlier = last.get((task.table, task.key))
            if earlier is not None:
                before = result[earlier]
                gone = before.replaces or isinstance(before.operation, DropConstraint)
                result[earlier] = replace(before, superseded=True)
                task = replace(task, replaces=task.want is not None and (task.replaces or gone))
            last[task.table, task.key] = place
        result.append(task)
    return result


def chosen_by(asked: Selection, rules: RuleSet) -> Callable[[Task], bool]:
    """Tells which tasks a run was asked for; ``rules`` says whose tags and owners they have."""

    def chosen(task: Task) -> bool:
        if asked.everything:
            return True
        if task.table is None or not asked.has_table(task.table):
            return False
        if not asked.by_declaration:
            return True
        declared = rules.get(task.table)
        rule = None if declared is None or task.rule is None else declared.rule(task.rule)
        return declared is not None and rule is not None and asked.has_rule(declared, rule)

    return chosen


def sql_text(revisions: Sequence[Revision], tasks: Sequence[Task]) -> str:
    """The statements of some revisions as a script."""
    lines = [
        "-- Rows are neither counted nor moved by these statements: ADD CONSTRAINT fails while a",
        "-- row breaks the rule. `deltacheck upgrade` moves such rows to quarantine first.",
    ]
    for revision in revisions:
        lines += ["", f"-- {revision.revision} {revision.message}".rstrip()]
        for task in tasks:
            if task.revision == revision.revision and not task.superseded:
                lines += [f"{statement};" for statement in statements_of(task)]
    return "\n".join(lines) + "\n"


def statements_of(task: Task) -> tuple[str, ...]:
    """The SQL of a task, on a table that has nothing of it yet."""
    if isinstance(task.operation, Execute):
        return (task.operation.statement.rstrip().rstrip(";"),)
    if task.table is None or task.rule is None:
        return ()
    if task.want is None:
        return (drop_statement(task.table, task.rule),)
    add = add_statement(task.table, task.rule, task.want.expression)
    return (drop_statement(task.table, task.rule), add) if task.replaces else (add,)


def add_statement(table: TableName, name: str, expression: str) -> str:
    """The SQL that adds a constraint."""
    return f"ALTER TABLE {table.sql} ADD CONSTRAINT {quote(name)} CHECK ({expression})"


def drop_statement(table: TableName, name: str) -> str:
    """The SQL that drops a constraint."""
    return f"ALTER TABLE {table.sql} DROP CONSTRAINT {quote(name)}"
