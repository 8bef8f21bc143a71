"""Operations as data: each knows its reverse."""

from __future__ import annotations

import dataclasses

import pytest

from deltacheck.names import TableName
from deltacheck.revisions.operations import (
    DropConstraint,
    Execute,
    Operation,
    RenameTable,
    ReplaceConstraint,
)
from deltacheck.rules.model import Kind
from tests.revisions.chains import ORDERS, check, drop, not_null

REVERSIBLE: list[Operation] = [
    check("a"),
    not_null("id"),
    check("a").reverse(),
    not_null("id").reverse(),
    ReplaceConstraint(check("a"), check("a", "amount > 1")),
    RenameTable(ORDERS, TableName.parse("shop.sales")),
]


@pytest.mark.parametrize("operation", REVERSIBLE, ids=lambda one: type(one).__name__)
def test_the_reverse_of_the_reverse_is_the_operation(operation: Operation) -> None:
    """So that a downgrade and an upgrade cancel out."""
    reverse = operation.reverse()
    assert reverse is not None
    assert reverse.reverse() == operation


@pytest.mark.parametrize(
    "operation",
    [drop("a"), ReplaceConstraint(check("a")), Execute("OPTIMIZE shop.orders")],
    ids=lambda one: type(one).__name__,
)
def test_without_knowing_what_was_there_is_no_reverse(operation: Operation) -> None:
    """A statement of the user's own never has one."""
    assert operation.reverse() is None


@pytest.mark.parametrize("operation", REVERSIBLE, ids=lambda one: type(one).__name__)
def test_operations_are_frozen(operation: Operation) -> None:
    """Nobody changes a plan that was reviewed."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        operation.table = ORDERS  # type: ignore[misc]


def test_names_compare_in_lower_case() -> None:
    """As Delta stores them."""
    assert check("Positive").key == drop("positive").key == "positive"
    assert ReplaceConstraint(check("Positive")).key == "positive"


def test_a_replacement_is_about_its_table_and_its_name() -> None:
    """Like any other operation."""
    replaced = ReplaceConstraint(check("Positive"))
    assert (replaced.table, replaced.name) == (ORDERS, "Positive")


def test_a_renaming_is_about_the_table_by_its_new_name() -> None:
    """That is where its constraints are."""
    assert RenameTable(TableName.parse("old"), ORDERS).table == ORDERS


def test_the_reverse_of_an_add_knows_what_it_takes_off() -> None:
    """Kind and column included."""
    assert not_null("id").reverse() == DropConstraint(
        ORDERS, "id_not_null", Kind.NOT_NULL, "id", not_null("id")
    )
