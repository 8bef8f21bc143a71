"""Histories and migrations in a few characters, for tests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from deltacheck.names import TableName
from deltacheck.revisions.graph import History, Revision, history_of
from deltacheck.revisions.operations import AddConstraint, DropConstraint, Operation
from deltacheck.rules.model import Kind

ORDERS = TableName.parse("shop.orders")


def revisions_of(*chains: str) -> list[Revision]:
    """The revisions of chains such as ``"a -> b -> d"``; ``"b, c -> d"`` is a merge."""
    parents: dict[str, list[str]] = {}
    for chain in chains:
        before: list[str] = []
        for link in chain.split("->"):
            ids = [one.strip() for one in link.split(",")]
            for one in ids:
                known = parents.setdefault(one, [])
                known += [parent for parent in before if parent not in known]
            before = ids
    return [
        Revision(one, tuple(names), path=Path(f"versions/{one}.py"))
        for one, names in parents.items()
    ]


def history(*chains: str) -> History:
    """The history of such chains."""
    return history_of(revisions_of(*chains))


def ids(revisions: Iterable[Revision]) -> list[str]:
    """The ids of revisions, in order."""
    return [one.revision for one in revisions]


def check(name: str, expression: str = "amount > 0", table: TableName = ORDERS) -> AddConstraint:
    """Add a CHECK."""
    return AddConstraint(table, name, Kind.CHECK, expression)


def not_null(column: str, name: str | None = None, table: TableName = ORDERS) -> AddConstraint:
    """Add a NOT NULL."""
    expression = f"{column} IS NOT NULL"
    return AddConstraint(table, name or f"{column}_not_null", Kind.NOT_NULL, expression, column)


def drop(name: str, table: TableName = ORDERS) -> DropConstraint:
    """Drop a CHECK, as a file says it: without what had added it."""
    return DropConstraint(table, name, Kind.CHECK)


def linear(*upgrades: Iterable[Operation]) -> list[Revision]:
    """Revisions 0001, 0002, ... with these operations."""
    return [
        Revision(
            f"{number:04d}",
            (f"{number - 1:04d}",) if number > 1 else (),
            path=Path(f"versions/{number:04d}_x.py"),
            upgrade=tuple(upgrade),
        )
        for number, upgrade in enumerate(upgrades, start=1)
    ]


def migration(
    revision: str = "0001",
    down_revision: str | None = None,
    upgrade: str = "pass",
    downgrade: str = "pass",
    above: str = "",
) -> str:
    """The source of a migration as a person would write it."""
    return (
        f"{above}\n"
        f"revision = {revision!r}\n"
        f"down_revision = {down_revision!r}\n"
        f"def upgrade(op):\n    {upgrade}\n"
        f"def downgrade(op):\n    {downgrade}\n"
    )


def write(folder: Path, name: str, source: str | bytes) -> Path:
    """Put a file into a folder of migrations."""
    path = folder / name
    path.write_bytes(source if isinstance(source, bytes) else source.encode("utf-8"))
    return path
