"""What migrations add up to, and what their drops and replacements learn from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deltacheck.errors import HistoryError
from deltacheck.names import TableName
from deltacheck.revisions.operations import (
    DropConstraint,
    Execute,
    Operation,
    RenameTable,
    ReplaceConstraint,
)
from deltacheck.revisions.state import Managed, resolved, state_after
from deltacheck.rules.model import Kind
from tests.revisions.chains import ORDERS, check, drop, linear, not_null

SALES = TableName.parse("shop.sales")


def test_added_constraints_are_there_with_their_revision() -> None:
    """By table, then by the name in lower case."""
    state = state_after(linear([check("Positive")], [not_null("id")]))
    assert state == {
        ORDERS: {
            "positive": Managed(check("Positive"), "0001"),
            "id_not_null": Managed(not_null("id"), "0002"),
        }
    }


def test_a_table_without_constraints_is_absent() -> None:
    """Dropped ones leave nothing behind."""
    assert state_after(linear([check("a")], [drop("A")])) == {}


def test_a_replaced_check_belongs_to_the_revision_that_replaced_it() -> None:
    """Its expression is the new one."""
    new = check("a", "amount > 1")
    state = state_after(linear([check("a")], [ReplaceConstraint(new)]))
    assert state[ORDERS]["a"] == Managed(new, "0002")


def test_a_renamed_table_takes_its_constraints_along() -> None:
    """With the revision that had added them."""
    state = state_after(linear([check("a")], [RenameTable(ORDERS, SALES)]))
    assert state == {SALES: {"a": Managed(check("a", table=SALES), "0001")}}


def test_a_statement_of_ones_own_changes_nothing_that_is_managed() -> None:
    """deltacheck cannot know what it does."""
    assert state_after(linear([Execute("OPTIMIZE shop.orders")])) == {}


def test_a_drop_learns_what_had_added_it() -> None:
    """So that it can be reversed, over a renaming too."""
    revisions = resolved(
        linear([check("a")], [RenameTable(ORDERS, SALES)], [drop("a", table=SALES)])
    )
    (dropped,) = revisions[2].upgrade
    assert dropped.reverse() == check("a", table=SALES)


def test_a_replacement_learns_what_it_replaces() -> None:
    """Its reverse is the replacement the other way round."""
    old, new = check("a"), check("a", "amount > 1")
    revisions = resolved(linear([old], [ReplaceConstraint(new)]))
    assert revisions[1].upgrade == (ReplaceConstraint(new, old),)
    assert revisions[1].upgrade[0].reverse() == ReplaceConstraint(old, new)


def test_a_downgrade_is_resolved_from_where_its_upgrade_ends() -> None:
    """It does not change what later revisions build on."""
    first, second = linear([check("a")], [not_null("id")])
    first = replace(first, downgrade=(drop("a"),))
    revisions = resolved([first, second])
    assert revisions[0].downgrade == (DropConstraint(ORDERS, "a", Kind.CHECK, None, check("a")),)
    assert set(state_after(revisions)[ORDERS]) == {"a", "id_not_null"}


@pytest.mark.parametrize(
    ("operations", "message", "hint"),
    [
        ([check("A")], "adds A on shop.orders, which revision 0001 has put there", "replace_check"),
        ([drop("b")], "drops b on shop.orders, which no earlier revision", "shop.orders: a, id_n"),
        ([drop("a", table=SALES)], "drops a on shop.sales, which no", "shop.sales: no constraint"),
        ([ReplaceConstraint(check("b"))], "replaces b on shop.orders, which no earlier", "a, id_n"),
        (
            [DropConstraint(ORDERS, "a", Kind.NOT_NULL, "a")],
            "takes a on shop.orders for the other kind",
            'op.drop_check("shop.orders", "a")',
        ),
        (
            [drop("id_not_null")],
            "takes id_not_null on shop.orders for the other kind",
            'op.drop_not_null("shop.orders", "id", name="id_not_null")',
        ),
        (
            [ReplaceConstraint(check("id_not_null"))],
            "takes id_not_null on shop.orders for the other kind",
            "op.drop_not_null",
        ),
        (
            [DropConstraint(ORDERS, "id_not_null", Kind.NOT_NULL, "key")],
            "as a NOT NULL of key, but it is one of id",
            "Name the column id.",
        ),
        ([RenameTable(SALES, ORDERS)], "but shop.orders already has constraints", "took its"),
        (
            [RenameTable(SALES, TableName.parse("x"))],
            "but shop.sales has no constraint to carry",
            "took its constraints along",
        ),
    ],
)
def test_what_does_not_add_up_is_refused(
    operations: list[Operation], message: str, hint: str
) -> None:
    """With the file, the way, the rule and what is there instead."""
    revisions = linear([check("a"), not_null("id")], operations)
    with pytest.raises(HistoryError) as caught:
        state_after(revisions)
    assert caught.value.message.startswith("0002_x.py, upgrade() ")
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.paths == (revisions[1].path,)


def test_a_downgrade_that_does_not_add_up_is_refused_as_well() -> None:
    """It would fail on the day it is needed."""
    (first,) = linear([check("a")])
    with pytest.raises(HistoryError, match=r"0001_x.py, downgrade\(\) drops b on shop.orders"):
        resolved([replace(first, downgrade=(drop("b"),))])


def test_columns_compare_without_regard_to_case() -> None:
    """As Spark compares them, and with quotes or without."""
    dropped = DropConstraint(ORDERS, "ID_not_null", Kind.NOT_NULL, "`ID`")
    assert state_after(linear([not_null("id")], [dropped])) == {}
