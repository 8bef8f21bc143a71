"""Operations: what a migration does to the constraints of tables, as frozen data.

The same objects serve running, dry runs, SQL output, rendering and autogeneration.
Knows nothing of Spark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, Union

from deltacheck.names import TableName, split_path
from deltacheck.rules.model import Gate, Kind

Violators = Literal["quarantine", "fail"]
"""What happens to the rows that break a new constraint at the moment it is added."""


def default_not_null_name(column: str) -> str:
    """The name of a NOT NULL rule that was given none.

    >>> default_not_null_name("address.zip code")
    'address_zip_code_not_null'
    """
    return re.sub(r"\W", "_", column) + "_not_null"


def column_key(column: str | None) -> tuple[str, ...]:
    """What two spellings of one column have in common: Spark compares without regard to case.

    >>> column_key("`Address`.city") == column_key("address.City")
    True
    """
    return tuple(part.casefold() for part in split_path(column)) if column else ()


@dataclass(frozen=True)
class AddConstraint:
    """Add one constraint: ``op.add_check`` or ``op.set_not_null``.

    Attributes:
        expression: SQL that ``ALTER TABLE`` carries unchanged.
        column: The column of a NOT NULL, as written, else None.
    """

    table: TableName
    name: str
    kind: Kind
    expression: str
    column: str | None = None
    violators: Violators = "quarantine"
    gate: Gate | None = None

    @property
    def key(self) -> str:
        """The name by which Delta stores it."""
        return self.name.lower()

    def reverse(self) -> DropConstraint:
        """The operation that takes it off again."""
        return DropConstraint(self.table, self.name, self.kind, self.column, self)


@dataclass(frozen=True)
class DropConstraint:
    """Drop one constraint: ``op.drop_check`` or ``op.drop_not_null``.

    Attributes:
        added: What had added it, where that is known; without it there is no reverse.
    """

    table: TableName
    name: str
    kind: Kind
    column: str | None = None
    added: AddConstraint | None = None

    @property
    def key(self) -> str:
        """The name by which Delta stores it."""
        return self.name.lower()

    def reverse(self) -> AddConstraint | None:
        """The operation that adds it again, or None where its expression is not known."""
        return self.added


@dataclass(frozen=True)
class ReplaceConstraint:
    """Change the expression of a CHECK without a moment in which neither holds."""

    added: AddConstraint
    previous: AddConstraint | None = None

    @property
    def table(self) -> TableName:
        """The table concerned."""
        return self.added.table

    @property
    def name(self) -> str:
        """The name that both expressions go by."""
        return self.added.name

    @property
    def key(self) -> str:
        """The name by which Delta stores it."""
        return self.added.key

    def reverse(self) -> ReplaceConstraint | None:
        """The replacement the other way round, or None where the old one is not known."""
        if self.previous is None:
            return None
        return ReplaceConstraint(self.previous, self.added)


@dataclass(frozen=True)
class Execute:
    """A SQL statement of the user's own: not reversible, not counted, not resumed."""

    statement: str
    table: TableName | None = None

    def reverse(self) -> None:
        """There is no reverse."""
        return


@dataclass(frozen=True)
class RenameTable:
    """Bookkeeping: a table goes by another name from here on, and its constraints with it.

    Runs no statement. Delta keeps constraints in the table itself, so whoever renamed the
    table (``ALTER TABLE ... RENAME TO``, a catalog, a moved folder) has moved them already.

    >>> RenameTable(TableName.parse("shop.order"), TableName.parse("shop.orders")).reverse().old
    TableName(parts=('shop', 'orders'))
    """

    old: TableName
    new: TableName

    @property
    def table(self) -> TableName:
        """The table by its new name."""
        return self.new

    def reverse(self) -> RenameTable:
        """The renaming back."""
        return RenameTable(self.new, self.old)


Operation = Union[AddConstraint, DropConstraint, ReplaceConstraint, RenameTable, Execute]


__all__ = [
    "AddConstraint",
    "DropConstraint",
    "Execute",
    "Operation",
    "RenameTable",
    "ReplaceConstraint",
    "Violators",
    "column_key",
    "default_not_null_name",
]
