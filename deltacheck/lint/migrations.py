"""Lints about migrations: what they undo, what was edited, what goes past deltacheck."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from deltacheck.lint.finding import Remark
from deltacheck.lint.subjects import ConstraintKey, Migration
from deltacheck.revisions.operations import (
    AddConstraint,
    DropConstraint,
    Execute,
    Operation,
    RenameTable,
    ReplaceConstraint,
)
from deltacheck.rules.expression import same_rule

_TOUCHES_CONSTRAINTS = re.compile(
    r"\b(?:ADD|DROP)\s+CONSTRAINT\b|delta\.constraints\.|\b(?:SET|DROP)\s+NOT\s+NULL\b"
    r"|\bREPLACE\s+TABLE\b|\bREPLACE\s+COLUMNS\b|\bRESTORE\s+(?:TABLE\b)?|\bDROP\s+TABLE\b",
    re.IGNORECASE,
)


def after(
    state: Mapping[ConstraintKey, str], operations: Iterable[Operation]
) -> dict[ConstraintKey, str]:
    """The expressions of all constraints once operations have run."""
    result = dict(state)
    for operation in operations:
        if isinstance(operation, AddConstraint):
            result[operation.table, operation.key] = operation.expression
        elif isinstance(operation, ReplaceConstraint):
            result[operation.table, operation.key] = operation.added.expression
        elif isinstance(operation, DropConstraint):
            result.pop((operation.table, operation.key), None)
        elif isinstance(operation, RenameTable):
            result = {
                (operation.new if table == operation.old else table, name): expression
                for (table, name), expression in result.items()
            }
    return result


def not_undone(migration: Migration) -> Iterator[Remark]:
    """downgrade() does not undo upgrade().

    After an upgrade and a downgrade the constraints are others than before, so going back
    and forward again fails or leaves something behind.

        def upgrade(op):
            op.add_check("shop.orders", "amount_positive", "amount > 0")

        def downgrade(op):
            op.drop_check("shop.orders", "amount_positive")
    """
    revision = migration.revision
    before = dict(migration.before)
    back = after(after(before, revision.upgrade), revision.downgrade)
    left = _named(key for key in back if key not in before)
    lost = _named(key for key in before if key not in back)
    changed = _named(
        key
        for key in before
        if key in back and back[key] != before[key] and not same_rule(back[key], before[key])
    )
    said = [
        f"{what} {names}"
        for what, names in (("leaves", left), ("does not bring back", lost), ("changes", changed))
        if names
    ]
    if said:
        yield Remark(
            f"downgrade() {', '.join(said)}.",
            "Let it do the reverse of upgrade(), last operation first.",
        )


def _named(keys: Iterable[ConstraintKey]) -> str:
    return ", ".join(sorted(f"{table}.{name}" for table, name in keys))


def edited(migration: Migration) -> Iterator[Remark]:
    """A migration was edited after it had been applied.

    What runs where it is not applied yet differs from what ran where it is. `deltacheck
    upgrade` refuses such a history (exit code 6). Comments and formatting do not count.

    Looked for where the checksums of applied migrations are known.
    """
    applied = migration.applied_checksum
    if applied is not None and applied != migration.revision.checksum:
        yield Remark(
            "The file was edited after it had been applied.",
            "Put back what was applied, and write the change as a new migration.",
        )


def past_deltacheck(migration: Migration) -> Iterator[Remark]:
    """execute() changes constraints.

    deltacheck counts no violators for such a statement, moves none, and does not know what
    it left: `status` shows drift. CREATE OR REPLACE TABLE and REPLACE TABLE lose all
    constraints; RESTORE brings back those of the old version.

        op.execute("ALTER TABLE shop.orders ADD CONSTRAINT positive CHECK (amount > 0)")
        op.add_check("shop.orders", "positive", "amount > 0")
    """
    for operation in (*migration.revision.upgrade, *migration.revision.downgrade):
        if isinstance(operation, Execute) and _TOUCHES_CONSTRAINTS.search(operation.statement):
            words = " ".join(operation.statement.split()[:4])
            yield Remark(
                f"`{words} ...` in execute() changes constraints behind deltacheck's back.",
                "Use op.add_check, op.drop_check, op.set_not_null and the like.",
            )
