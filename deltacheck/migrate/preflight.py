"""Everything that can be checked before a row moves, for the whole run.

Reads tables and counts violators; writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.table import Definition, latest_version, read_definition, read_table
from deltacheck.delta.violators import Violators, check_rules, count_violators
from deltacheck.errors import AppendOnlyError, ConstraintError, FailRuleError, GateError
from deltacheck.migrate.tasks import Task
from deltacheck.names import TableName, split_path
from deltacheck.quarantine.layout import check_apart, environment_quarantine
from deltacheck.quarantine.place import check_place
from deltacheck.revisions.operations import AddConstraint
from deltacheck.rules.expression import same_rule
from deltacheck.rules.model import DEFAULT_GATE, Gate, Kind, RuleSet

TEMPORARY = "__deltacheck_new"
"""Ends the name of the constraint that stands in while one is replaced."""


@dataclass(frozen=True)
class Look:
    """What a run found at one table before it changed anything.

    Attributes:
        version: The table's version when it was looked at.
        new: Rule key to the constraint that is to be added.
        found: The violators of the new rules, or None where there is no new rule, or where
            none were counted yet.
        id: Delta's own id of the table; read where rows are to be moved out of it.
        seconds: What counting the violators took.
        gate: What the violators of all constraints without a gate of their own are held
            against, taken together.
        taken: Rule key to the seconds of its ALTER, for new constraints that the table took
            when they were tried, before anything was counted.
    """

    table: Definition
    version: int
    quarantine: TableName
    new: Mapping[str, AddConstraint]
    found: Violators | None
    id: str | None = None
    seconds: float = 0.0
    gate: Gate = DEFAULT_GATE
    taken: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> TableName:
        """The table."""
        return self.table.name


def look_at(
    session: SparkSession,
    environment: Environment,
    tasks: Sequence[Task],
    rules: RuleSet,
    *,
    count: bool = True,
) -> dict[TableName, Look]:
    """Check every table of a run and count the violators of its new rules, in one pass each.

    Args:
        rules: The declarations of all tables, for their gates.
        count: Whether to count; else ``counted`` can do it later.

    Raises:
        TableNotFoundError, NotDeltaError: A table is missing, a view or not Delta.
        ConstraintError: A rule's name is taken by another constraint.
        ExpressionError: Spark does not accept a rule.
        ConfigError: Two tables would share a quarantine, or one of them is another's.
        QuarantineError: A quarantine cannot take a table's rows.
        AppendOnlyError: A table with violators is append-only.
        FailRuleError, GateError: There are violators and something says stop.
    """
    names = list(dict.fromkeys(task.table for task in tasks if task.table is not None))
    check_apart(names, environment)
    tables = {name: read_definition(session, name) for name in names}
    new = {name: _new(tables[name], tasks) for name in names}
    for name, table in tables.items():
        check_rules(session, table, {key: add.expression for key, add in new[name].items()})
    looks = {}
    for name, table in tables.items():
        quarantine = environment_quarantine(name, environment)
        if new[name]:
            check_place(session, name, table.schema, quarantine)
        declared = rules.get(name)
        gate = DEFAULT_GATE if declared is None else declared.gate or DEFAULT_GATE
        look = Look(
            table, latest_version(session, name), quarantine, new[name], found=None, gate=gate
        )
        looks[name] = counted(session, look, look.version) if count else look
    hold_all(looks.values())
    return looks


def hold_all(looks: Iterable[Look]) -> None:
    """Hold what was counted at each table, as ``hold`` does."""
    for look in looks:
        if look.found is not None:
            hold(look.table, look.new, look.found, look.gate)


def counted(session: SparkSession, look: Look, version: int) -> Look:
    """The look with the violators counted of those new rules that the table has not taken yet.

    Args:
        version: The table's version to count at.

    Raises:
        ExpressionError: A rule cannot be evaluated on some row.
    """
    name, started = look.name, time.monotonic()
    missing = {key: add for key, add in look.new.items() if key not in look.taken}
    found = count_new(session, name, version, missing)
    if found is not None and look.taken:
        found = with_taken(look, found)
    seconds = round(time.monotonic() - started, 3)
    id_ = read_table(session, name).id if found is not None and found.any else None
    return replace(look, found=found, id=id_, seconds=seconds)


def with_taken(look: Look, found: Violators) -> Violators:
    """What was found, and no violator of the rules that the table has taken."""
    none = dict.fromkeys(look.new, 0)
    groups = {group.key: 0 for group in gated(look.new)}
    return replace(
        found,
        false={**none, **found.false},
        null={**none, **found.null},
        groups={**groups, **found.groups},
    )


def _new(table: Definition, tasks: Sequence[Task]) -> dict[str, AddConstraint]:
    """The constraints that the table does not have yet, by key."""
    new = {}
    for task in tasks:
        if task.table != table.name or task.superseded or task.want is None:
            continue
        if is_enforced(table, task.want):
            continue
        if table.spellings(task.want.name) and not task.replaces:
            raise name_taken(table, task)
        new[task.want.key] = task.want
    return new


def name_taken(table: Definition, task: Task) -> ConstraintError:
    """The error for a name that the table uses for another expression; the caller raises it."""
    assert task.rule is not None
    return ConstraintError(
        f"{table.name} has a constraint {task.rule} already, with another expression: "
        f"{table.constraint(task.rule)}. Nothing was changed.",
        hint=f"Give the rule of revision {task.revision} another name, change it with "
        "replace_check, or drop the constraint.",
        table=str(table.name),
        rule=task.rule,
    )


def is_enforced(table: Definition, wanted: AddConstraint) -> bool:
    """Whether a table enforces a constraint, as a CHECK or as NOT NULL of its schema.

    Not if it also has another expression under that name in another case.
    """
    stored = table.spellings(wanted.name)
    if stored:
        return all(same_rule(table.constraints[name], wanted.expression) for name in stored)
    return by_schema(table, wanted)


def by_schema(table: Definition, wanted: AddConstraint) -> bool:
    """Whether the table's schema holds a NOT NULL."""
    path = column_path(wanted)
    return path is not None and table.requires(path)


def column_path(added: AddConstraint) -> tuple[str, ...] | None:
    """The column of a NOT NULL, in lower case, as a path; None for a CHECK."""
    if added.kind is not Kind.NOT_NULL or added.column is None:
        return None
    return tuple(part.lower() for part in split_path(added.column))


def count_new(
    session: SparkSession, name: TableName, version: int, new: Mapping[str, AddConstraint]
) -> Violators | None:
    """Count the violators of constraints to be added; None where there are none to add."""
    if not new:
        return None
    groups = {one.key: [add.key for add in one.members] for one in gated(new)}
    rules = {key: add.expression for key, add in new.items()}
    return count_violators(session, name, version, rules, groups)


@dataclass(frozen=True)
class Gated:
    """Constraints whose violators, taken together, are held against one gate.

    Attributes:
        key: The rule's own key, or ``""``, which no rule has, for all without a gate of their own.
    """

    key: str
    gate: Gate
    members: tuple[AddConstraint, ...]


def gated(new: Mapping[str, AddConstraint], gate: Gate = DEFAULT_GATE) -> list[Gated]:
    """Each constraint with a gate of its own, and all others together."""
    groups = [Gated(key, add.gate, (add,)) for key, add in new.items() if add.gate is not None]
    others = tuple(add for add in new.values() if add.gate is None)
    return [*groups, Gated("", gate, others)] if others else groups


def hold(
    table: Definition,
    new: Mapping[str, AddConstraint],
    found: Violators,
    gate: Gate,
    *,
    moved: int = 0,
    past: Mapping[str, int] | None = None,
    now: int = 0,
) -> None:
    """Hold violators against what the migrations and the table's gate say of them.

    Args:
        found: What was counted for exactly these constraints.
        gate: For constraints that have no gate of their own.
        moved: Rows that this run has moved out of the table already.
        past: How many of those broke a rule of each group of ``gated``; they count too.
        now: Rows among ``found`` that have been moved since.

    Raises:
        FailRuleError: Rows break a rule whose violators must not be moved.
        GateError: More rows are bad than a gate allows.
        AppendOnlyError: Rows would have to be deleted from an append-only table.
    """
    name, rows = table.name, found.rows + moved
    done = (
        "Nothing was moved."
        if not moved + now
        else f"{moved + now} rows were moved to quarantine, and stay there."
    )
    for key, add in new.items():
        if add.violators == "fail" and found.of(key):
            raise FailRuleError(
                f"{found.of(key)} of {found.rows} rows of {name} break the rule {add.name}, "
                f'whose migration says violators="fail". {done}',
                hint="Repair the rows, or let the migration quarantine them.",
                table=str(name),
                rule=add.name,
                violators=found.of(key),
                rows=found.rows,
            )
    for group in gated(new, gate):
        bad = found.groups[group.key] + (past or {}).get(group.key, 0)
        if not group.gate.allows(bad, rows):
            members = [add.name for add in group.members]
            raise GateError(
                f"{bad} of {rows} rows of {name} break {_listed(members)}: more than the gate of "
                f"{group.gate.text}. {done}",
                hint="Look at the rule first; if it is right, raise its gate in the migration, or "
                f'that of the table in constraints/ (gate: "{_above(bad, rows)}").',
                table=str(name),
                rule=members[0] if len(members) == 1 else None,
                violators=bad,
                rows=rows,
                by={add.name: found.of(add.key) for add in group.members},
            )
    if found.any and table.append_only:
        raise AppendOnlyError(
            f"{name} is append-only (delta.appendOnly) and {found.any} of its {found.rows} rows "
            f"break {_listed([add.name for add in new.values()])}; they cannot be moved out. "
            f"{done}",
            hint="Set delta.appendOnly to false for the time of the upgrade.",
            table=str(name),
        )


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"the rule {names[0]}"
    return f"the rules {', '.join(names[:-1])} and {names[-1]}"


def _above(bad: int, rows: int) -> str:
    return f"{-(-bad * 100 // rows)}%" if rows else "100%"
