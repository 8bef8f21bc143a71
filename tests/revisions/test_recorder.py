"""``op``: what a migration calls, and which arguments it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deltacheck.errors import DeclarationError, ExpressionError
from deltacheck.names import TableName
from deltacheck.revisions.operations import (
    AddConstraint,
    DropConstraint,
    Execute,
    Operation,
    RenameTable,
    ReplaceConstraint,
)
from deltacheck.revisions.recorder import Op
from deltacheck.rules.expression import not_null, parse_rule
from deltacheck.rules.model import Gate, Kind
from tests.revisions.chains import ORDERS

POSITIVE = parse_rule("amount > 0").stored


def recorded(call: Callable[[Op], None], **variables: str) -> Operation:
    """The one operation that ``call`` asks for."""
    op = Op(variables)
    call(op)
    (operation,) = op.operations
    return operation


def test_add_check() -> None:
    """The expression as ALTER TABLE carries it."""
    added = recorded(
        lambda op: op.add_check("shop.orders", "positive", "amount>0", violators="fail", gate="5%")
    )
    assert added == AddConstraint(
        ORDERS, "positive", Kind.CHECK, POSITIVE, None, "fail", Gate.parse("5%")
    )


def test_set_not_null_is_named_after_its_column() -> None:
    """Nested ones too, with what is not a word character replaced."""
    added = recorded(lambda op: op.set_not_null("shop.orders", "address.`zip code`", gate=3))
    assert added == AddConstraint(
        ORDERS,
        "address__zip_code__not_null",
        Kind.NOT_NULL,
        not_null("address.`zip code`").stored,
        "address.`zip code`",
        gate=Gate.parse(3),
    )


def test_set_not_null_takes_a_name() -> None:
    """That of the rule."""
    added = recorded(lambda op: op.set_not_null("shop.orders", "id", name="id_present"))
    assert isinstance(added, AddConstraint)
    assert added.name == "id_present"


def test_drops_say_what_kind_they_drop() -> None:
    """What had added it is for the history to say."""
    assert recorded(lambda op: op.drop_check("shop.orders", "a")) == DropConstraint(
        ORDERS, "a", Kind.CHECK
    )
    assert recorded(lambda op: op.drop_not_null("shop.orders", "id")) == DropConstraint(
        ORDERS, "id_not_null", Kind.NOT_NULL, "id"
    )


def test_replace_check() -> None:
    """The new expression; the old one is for the history to say."""
    replaced = recorded(lambda op: op.replace_check("shop.orders", "a", "amount > 0"))
    assert replaced == ReplaceConstraint(AddConstraint(ORDERS, "a", Kind.CHECK, POSITIVE))


def test_rename_table() -> None:
    """Both names."""
    renamed = recorded(lambda op: op.rename_table("shop.order", "shop.orders"))
    assert renamed == RenameTable(TableName.parse("shop.order"), ORDERS)


def test_execute_drops_the_semicolon() -> None:
    """Spark takes a statement without one."""
    assert recorded(lambda op: op.execute(" OPTIMIZE x ;\n", table="x")) == Execute(
        "OPTIMIZE x", TableName.parse("x")
    )


def test_operations_are_kept_in_order() -> None:
    """As they were called."""
    op = Op()
    op.drop_check("t", "b")
    op.drop_check("t", "a")
    assert [one.name for one in op.operations if isinstance(one, DropConstraint)] == ["b", "a"]


def test_a_table_may_depend_on_the_environment() -> None:
    """And keeps the way it was written, which a generated migration repeats."""
    added = recorded(
        lambda op: op.add_check("${CATALOG:-dev}.shop.orders", "a", "amount > 0"), CATALOG="prod"
    )
    assert isinstance(added, AddConstraint)
    assert added.table == TableName.parse("prod.shop.orders")
    assert added.table.template == "${CATALOG:-dev}.shop.orders"


UNUSABLE: dict[str, tuple[Callable[[Any], object], str]] = {
    "unset variable": (lambda op: op.drop_check("${CAT}.a.b", "x"), "variable CAT"),
    "empty table": (lambda op: op.drop_check(" ", "x"), "argument table is empty"),
    "table of four parts": (lambda op: op.drop_check("a.b.c.d", "x"), "has 4 parts"),
    "no name": (lambda op: op.add_check("t", "", "a > 0"), "argument name is empty"),
    "None": (lambda op: op.add_check("t", "x", None), "expression is NoneType, not a text"),
    "name with a newline": (lambda op: op.drop_check("t", "a\nb"), ""),
    "no expression": (lambda op: op.add_check("t", "x", ""), "argument expression is empty"),
    "gate above all": (lambda op: op.set_not_null("t", "a", gate="120%"), "is not a gate"),
    "gate of a wrong type": (lambda op: op.set_not_null("t", "a", gate=0.5), "is not a gate"),
    "unknown violators": (
        lambda op: op.add_check("t", "x", "a > 0", violators="quarantene"),
        'Did you mean "quarantine"?',
    ),
    "violators of no kind": (
        lambda op: op.add_check("t", "x", "a > 0", violators=None),
        'Write "quarantine" or "fail".',
    ),
    "no column": (lambda op: op.set_not_null("t", ""), "argument column is empty"),
    "unclosed column": (lambda op: op.set_not_null("t", "`a"), "is not a name"),
    "unclosed column to drop": (lambda op: op.drop_not_null("t", "`a"), "is not a name"),
    "no statement": (lambda op: op.execute(" ; "), "statement is empty"),
    "renamed to itself": (lambda op: op.rename_table("t", "T"), "renamed to itself"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_an_argument_that_cannot_be_used_is_refused_at_once(case: str) -> None:
    """And nothing is recorded."""
    call, message = UNUSABLE[case]
    op = Op({})
    with pytest.raises(DeclarationError) as caught:
        call(op)
    assert message in str(caught.value)
    assert op.operations == ()


def test_a_rule_that_is_not_sql_names_table_and_rule() -> None:
    """As attributes."""
    with pytest.raises(ExpressionError) as caught:
        Op().add_check("shop.orders", "positive", "amount >")
    assert (caught.value.table, caught.value.rule) == ("shop.orders", "positive")
