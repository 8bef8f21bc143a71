"""Take over the constraints that tables have already: rules, a first revision, and its stamp.

Reads tables; writes files of the project and the journal. No table of the user's is touched,
and no file is overwritten. What cannot be a rule is left as it is, and said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml
from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta import warehouse
from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.delta.table import Table, read_table
from deltacheck.errors import DeclarationError, DeltacheckError, NotDeltaError, UsageError
from deltacheck.ledger.journal import DONE, STOPPED, Journal, read_journal
from deltacheck.ledger.lock import locked
from deltacheck.migrate.preflight import TEMPORARY
from deltacheck.migrate.run import engine_versions
from deltacheck.migrate.stamp import changes
from deltacheck.names import TableName, quote, split_path
from deltacheck.quarantine.layout import RULES
from deltacheck.revisions.autogenerate import difference
from deltacheck.revisions.files import load_history, write_revision
from deltacheck.revisions.graph import History, Revision
from deltacheck.revisions.operations import default_not_null_name
from deltacheck.rules.expression import check_name, not_null, parse_rule, same_rule
from deltacheck.rules.files import read_rules
from deltacheck.rules.model import Kind, Rule, RuleSet
from deltacheck.rules.words import spelled


@dataclass(frozen=True)
class Taken:
    """A live constraint that is a rule from now on.

    Attributes:
        enforced_by: Whether it is a CHECK of the table's properties or a NOT NULL of its schema.
    """

    table: TableName
    rule: Rule
    enforced_by: Literal["check", "not_null"]


@dataclass(frozen=True)
class Left:
    """A table, or one of its constraints, that was left alone, and why."""

    table: TableName
    rule: str | None
    reason: str


@dataclass(frozen=True)
class Baseline:
    """What was taken over.

    Attributes:
        run: The run that recorded it; None: there was nothing to take over.
        revision: The new revision.
        files: The new files; the migration is the last one.
    """

    environment: str
    run: str | None
    revision: str | None
    files: tuple[Path, ...]
    taken: tuple[Taken, ...]
    left: tuple[Left, ...]


@dataclass(frozen=True)
class Folders:
    """Where a project keeps its rules and its migrations, and what is in them."""

    constraints: Path
    versions: Path
    rules: RuleSet
    history: History


def baseline(
    session: SparkSession,
    environment: Environment,
    folders: Folders,
    tables: Sequence[TableName] = (),
    *,
    schema: str | None = None,
    message: str = "baseline",
    lock_timeout: float = 0.0,
) -> Baseline:
    """Write rules and a revision for what tables enforce already, and record it as applied.

    Args:
        tables: The tables. One that has rules or migrations is refused.
        schema: Or all Delta tables of a schema; those with rules or migrations are left.
        message: What the revision says that it is for.
        lock_timeout: Seconds to wait for another run to end.

    Raises:
        UsageError: A table has rules or migrations; a revision is pending; a file cannot be
            written.
        TableNotFoundError, NotDeltaError: A table is missing, a view or not Delta.
        HistoryError: There are two heads.
        LockHeldError: Another run holds the lock. Nothing was written.
    """
    folders.history.head()
    left: list[Left] = []
    known = _known(folders)
    for name in tables:
        if name in known:
            raise UsageError(
                f"{name} has {known[name]} already; nothing was done.",
                hint="In another environment, `deltacheck stamp` records the revisions that its "
                "tables have.",
            )
    found = [read_table(session, name) for name in tables]
    if schema is not None:
        for name in tables_of(session, environment, schema):
            if name in known:
                left.append(Left(name, None, f"it has {known[name]} already"))
                continue
            try:
                found.append(read_table(session, name))
            except NotDeltaError:
                left.append(Left(name, None, "it is not a Delta table"))
    taken: list[Taken] = []
    for table in found:
        if _is_own(table):
            continue
        rules = list(_take(table, left))
        taken += rules
        if not rules:
            left.append(Left(table.name, None, "it has no constraint that can be a rule"))
    if not taken:
        return Baseline(environment.name, None, None, (), (), tuple(left))
    _hold_up_to_date(folders.history, read_journal(session, environment))
    with locked(
        session,
        environment,
        command="baseline",
        revisions=[],
        tables=[],
        engine=engine_versions(session),
        timeout=lock_timeout,
    ) as lock:
        try:
            _hold_up_to_date(folders.history, lock.journal)
            files, made = _write(folders, taken, message)
        except (DeltacheckError, KeyboardInterrupt, SystemExit):
            lock.end([], STOPPED)
            raise
        lock.end(changes(lock.journal, [*folders.history.revisions, made]), DONE)
    return Baseline(environment.name, lock.run, made.revision, files, tuple(taken), tuple(left))


def tables_of(
    session: SparkSession, environment: Environment, schema: str
) -> tuple[TableName, ...]:
    """The tables of a schema, in the order of their names.

    Raises:
        UsageError: There is no such schema, or it has no table.
        IdentifierError: It is not a name.
    """
    parts = split_path(schema)
    if warehouse.warehouse_of(environment) is not None:
        wanted = [part.casefold() for part in parts]
        found = [
            name
            for name in warehouse.tables(environment)
            if [part.casefold() for part in name.parts[:-1] or ("default",)] == wanted
        ]
    else:
        try:
            rows = session.sql(f"SHOW TABLES IN {'.'.join(map(quote, parts))}").collect()
        except EngineFailure as error:
            raise UsageError(
                f"The tables of {schema} cannot be listed: Spark says "
                f"{failure_of(error).condition}; nothing was done."
            ) from None
        names = sorted(row["tableName"] for row in rows if not row["isTemporary"])
        found = [TableName((*parts, name)) for name in names]
    if not found:
        raise UsageError(
            f"There is no table in {schema}; nothing was done.", hint="Correct the schema's name."
        )
    return tuple(found)


def _known(folders: Folders) -> dict[TableName, str]:
    """The tables that the project knows, and from where."""
    known = dict.fromkeys(folders.rules, "rules in constraints/")
    for revision in folders.history.revisions:
        for operation in revision.upgrade:
            if operation.table is not None:
                known[operation.table] = f"migrations (revision {revision.revision})"
    return known


def _hold_up_to_date(history: History, journal: Journal) -> None:
    pending = [one.file for one in history.revisions if one.revision not in journal.applied]
    if pending:
        raise UsageError(
            f"{pending[0]} is not applied to this environment, and the new revision would follow "
            "it; nothing was done.",
            hint="Run `deltacheck upgrade` first, or `deltacheck stamp head` if the tables have "
            "it already.",
        )


def _is_own(table: Table) -> bool:
    """Whether a table is deltacheck's own: of the ledger, or a quarantine."""
    return "deltacheck.format" in table.properties or RULES in table.schema.names


def _take(table: Table, left: list[Left]) -> Iterator[Taken]:
    taken: dict[str, Taken] = {}
    for name, expression in sorted(table.constraints.items()):
        try:
            if name.lower() in taken:
                raise DeclarationError("its name differs from another one's only in case")
            if name.lower().endswith(TEMPORARY):
                raise DeclarationError("it stands in for one that an upgrade was replacing")
            rule = rule_of_check(name, expression)
        except DeclarationError as error:
            left.append(Left(table.name, name, error.message.rstrip(".")))
            continue
        taken[rule.key] = Taken(table.name, rule, "check")
    claimed = {_path(one.rule.column) for one in taken.values() if one.rule.column is not None}
    for path in _in_order(table):
        if tuple(part.casefold() for part in path) not in claimed:
            column = ".".join(map(spelled, path))
            name = _free(default_not_null_name(".".join(path)), taken)
            rule = Rule(name, Kind.NOT_NULL, not_null(column).stored, column)
            taken[rule.key] = Taken(table.name, rule, "not_null")
    yield from taken.values()


def rule_of_check(name: str, expression: str) -> Rule:
    """The rule that a CHECK is, its name kept.

    Raises:
        DeclarationError: It cannot be one.
    """
    check_name(name)
    parsed = parse_rule(expression, rule=name)
    if not same_rule(parsed.stored, expression):
        raise DeclarationError("it would not mean the same, spelled anew")
    if len(parsed.columns) == 1:
        column = ".".join(map(spelled, parsed.columns[0]))
        if same_rule(parsed.stored, not_null(column).stored):
            return Rule(name, Kind.NOT_NULL, parsed.stored, column)
    return Rule(name, Kind.CHECK, parsed.stored)


def _path(column: str) -> tuple[str, ...]:
    return tuple(part.casefold() for part in split_path(column))


def _in_order(table: Table) -> list[tuple[str, ...]]:
    """The NOT NULL columns in the order of the schema, nested ones after what holds them."""
    order = {name: place for place, name in enumerate(table.schema.names)}
    return sorted(table.not_null, key=lambda path: (order[path[0]], path))


def _free(name: str, taken: Mapping[str, object]) -> str:
    candidates = [name, *(f"{name}_{number}" for number in range(2, len(taken) + 3))]
    return next(one for one in candidates if one.lower() not in taken)


def _write(
    folders: Folders, taken: Sequence[Taken], message: str
) -> tuple[tuple[Path, ...], Revision]:
    """Write the rules' files and the revision, or nothing at all.

    Raises:
        UsageError: A file cannot be written.
    """
    names = list(dict.fromkeys(one.table for one in taken))
    made: list[Path] = []
    try:
        folders.constraints.mkdir(parents=True, exist_ok=True)
        for name in names:
            path = _new_file(folders.constraints, name)
            made.append(path)
            text = rules_text(name, [one.rule for one in taken if one.table == name])
            path.write_text(text, encoding="utf-8", newline="\n")
        declared = read_rules(folders.constraints)
        rules = {name: declared[name] for name in names}
        operations = difference(rules, {})
        path = write_revision(folders.versions, folders.history, message, operations)
        made.append(path)
    except (OSError, DeltacheckError) as error:
        for path in made:
            path.unlink(missing_ok=True)
        if isinstance(error, DeltacheckError):
            raise
        raise UsageError(
            f"{error.filename} cannot be written: {error.strerror}; nothing was done."
        ) from None
    revisions = load_history(folders.versions).revisions
    return tuple(made), next(one for one in revisions if one.path == path)


def _new_file(folder: Path, table: TableName) -> Path:
    last = Path(table.path).name if table.path is not None else table.name
    stem = re.sub(r"[^\w.-]", "_", last)
    stems = [stem, f"{table.schema or 'table'}_{stem}", *(f"{stem}_{n}" for n in range(2, 1000))]
    return next(path for one in stems if not (path := folder / f"{one}.yml").exists())


def rules_text(table: TableName, rules: Iterable[Rule]) -> str:
    """A file of ``constraints/``.

    >>> rule = Rule("amount_positive", Kind.CHECK, "amount > 0")
    >>> print(rules_text(TableName.parse("shop.orders"), [rule]), end="")
    # Taken over from the table by `deltacheck baseline`.
    table: shop.orders
    rules:
      amount_positive:
        check: amount > 0
    """
    document = {
        "table": str(table),
        "rules": {
            rule.name: {"check": rule.expression}
            if rule.column is None
            else {"not_null": rule.column}
            for rule in rules
        },
    }
    # Wide, so that no expression is folded into several lines.
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=10**6)
    return f"# Taken over from the table by `deltacheck baseline`.\n{text}"


__all__ = [
    "Baseline",
    "Folders",
    "Left",
    "Taken",
    "baseline",
    "rule_of_check",
    "rules_text",
    "tables_of",
]
