"""``op``: what a migration calls, and what writes down what it asked for.

Checks every argument at once, so that a mistake is reported where it was made. Touches no
table. The file and the line are added by whoever runs the migration.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import cast, get_args

from deltacheck.config import expand
from deltacheck.errors import DeclarationError
from deltacheck.names import TableName
from deltacheck.revisions.operations import (
    AddConstraint,
    DropConstraint,
    Execute,
    Operation,
    RenameTable,
    ReplaceConstraint,
    Violators,
    default_not_null_name,
)
from deltacheck.rules.expression import check_name, not_null, parse_rule
from deltacheck.rules.model import Gate, Kind


class Op:
    """Collects the operations of one ``upgrade(op)`` or ``downgrade(op)``.

    Each method raises :class:`~deltacheck.errors.DeclarationError` for an argument that
    cannot be used.

    >>> op = Op()
    >>> op.add_check("shop.orders", "amount_positive", "amount > 0", gate="5%")
    >>> op.operations[0].name
    'amount_positive'

    Args:
        variables: Values for ``${NAME}`` in names of tables; default: the process's
            environment variables.
    """

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._variables = os.environ if variables is None else variables
        self._operations: list[Operation] = []

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What was asked for so far, in order."""
        return tuple(self._operations)

    def set_not_null(
        self,
        table: str,
        column: str,
        name: str | None = None,
        *,
        violators: Violators = "quarantine",
        gate: str | int | None = None,
    ) -> None:
        """Let no row have NULL in ``column``.

        Args:
            table: The table, as ``schema.table``.
            column: The column; a field of a struct as ``address.city``.
            name: The rule's name; default: ``<column>_not_null``.
            violators: What happens to rows that have NULL there when it is added:
                ``quarantine`` moves them, ``fail`` stops the upgrade.
            gate: How many violators at most (``100``, ``"5%"``, ``"1/3"``); default: the
                upgrade's own gate.
        """
        self._operations.append(
            self._added(table, name, Kind.NOT_NULL, column=column, violators=violators, gate=gate)
        )

    def drop_not_null(self, table: str, column: str, name: str | None = None) -> None:
        """Let ``column`` be NULL again.

        Args:
            table: The table.
            column: The column.
            name: The rule's name, if it was given one.
        """
        where = self._table(table)
        _text(column, "column", where)
        not_null(column, table=str(where))
        chosen = _name(default_not_null_name(column) if name is None else name, where)
        self._operations.append(DropConstraint(where, chosen, Kind.NOT_NULL, column))

    def add_check(
        self,
        table: str,
        name: str,
        expression: str,
        *,
        violators: Violators = "quarantine",
        gate: str | int | None = None,
    ) -> None:
        """Let every row fulfil ``expression``; NULL does not.

        Args:
            table: The table.
            name: The rule's name.
            expression: A SQL boolean expression over the table's columns.
            violators: As for :meth:`set_not_null`.
            gate: As for :meth:`set_not_null`.
        """
        self._operations.append(
            self._added(
                table, name, Kind.CHECK, expression=expression, violators=violators, gate=gate
            )
        )

    def drop_check(self, table: str, name: str) -> None:
        """Take a check off.

        Args:
            table: The table.
            name: The rule's name.
        """
        where = self._table(table)
        self._operations.append(DropConstraint(where, _name(name, where), Kind.CHECK))

    def replace_check(
        self,
        table: str,
        name: str,
        expression: str,
        *,
        violators: Violators = "quarantine",
        gate: str | int | None = None,
    ) -> None:
        """Change the expression of a check, without a moment in which neither holds.

        Args:
            table: The table.
            name: The rule's name, which stays.
            expression: The new expression.
            violators: As for :meth:`set_not_null`.
            gate: As for :meth:`set_not_null`.
        """
        self._operations.append(
            ReplaceConstraint(
                self._added(
                    table, name, Kind.CHECK, expression=expression, violators=violators, gate=gate
                )
            )
        )

    def rename_table(self, old: str, new: str) -> None:
        """Say that a table has taken its constraints along to a new name.

        Runs no statement: rename the table itself where you rename tables.

        Args:
            old: The name that earlier migrations use.
            new: The name from here on.
        """
        before, after = self._table(old), self._table(new)
        if before == after:
            raise DeclarationError(
                f"{before} is renamed to itself.",
                hint="Names of tables compare without regard to case.",
                table=str(before),
            )
        self._operations.append(RenameTable(before, after))

    def execute(self, sql: str, *, table: str | None = None) -> None:
        """Run a SQL statement of your own. It has no reverse.

        Args:
            sql: One statement.
            table: The table that it is about, so that ``--table`` finds it.
        """
        where = None if table is None else self._table(table)
        statement = _text(sql, "sql", where).strip().rstrip(";").rstrip()
        if not statement:
            raise DeclarationError("The statement is empty.", hint="Write one SQL statement.")
        self._operations.append(Execute(statement, where))

    def _added(
        self,
        table: str,
        name: str | None,
        kind: Kind,
        *,
        expression: str = "",
        column: str | None = None,
        violators: str,
        gate: str | int | None,
    ) -> AddConstraint:
        where = self._table(table)
        if column is not None or kind is Kind.NOT_NULL:
            column = _text(column, "column", where)
            name = default_not_null_name(column) if name is None else name
        chosen = _name(name, where)
        shown = {"table": str(where), "rule": chosen}
        if column is not None:
            stored = not_null(column, **shown).stored
        else:
            stored = parse_rule(_text(expression, "expression", where, chosen), **shown).stored
        return AddConstraint(
            table=where,
            name=chosen,
            kind=kind,
            expression=stored,
            column=column,
            violators=_violators(violators, **shown),
            gate=None if gate is None else Gate.parse(gate),
        )

    def _table(self, table: str) -> TableName:
        text = _text(table, "table")
        try:
            name = TableName.parse(expand(text, self._variables))
        except KeyError as missing:
            raise DeclarationError(
                f"The table {text} needs the environment variable {missing.args[0]}, which is "
                "not set.",
                hint=f"Set it, or write ${{{missing.args[0]}:-default}}.",
                table=text,
            ) from None
        return replace(name, template=text) if "${" in text else name


def _text(value: object, what: str, table: TableName | None = None, rule: str | None = None) -> str:
    if not isinstance(value, str) or not value.strip():
        got = "empty" if isinstance(value, str) else f"{type(value).__name__}, not a text"
        raise DeclarationError(
            f"The argument {what} is {got}.",
            hint=f"Write {what} as a text in quotes.",
            table=None if table is None else str(table),
            rule=rule,
        )
    return value


def _name(name: object, table: TableName) -> str:
    return check_name(_text(name, "name", table), table=str(table))


def _violators(value: str, *, table: str, rule: str) -> Violators:
    known = get_args(Violators)
    if value not in known:
        close = difflib.get_close_matches(str(value), known, n=1)
        raise DeclarationError(
            f"violators={value!r} is not known.",
            hint=f'Did you mean "{close[0]}"?' if close else 'Write "quarantine" or "fail".',
            table=table,
            rule=rule,
        )
    return cast(Violators, value)
