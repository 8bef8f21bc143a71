"""What people write about quarantined rows is read by the grammar of rules, then respelled."""

from __future__ import annotations

import pytest

from deltacheck.errors import ExpressionError
from deltacheck.quarantine.terms import condition, repair, rule_term

VALUES = {"amount": "coalesce(`b`, `a`)"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("amount > 0", "(coalesce(`b`, `a`)) > 0"),
        ("`AMOUNT` IN (1, 2)", "(coalesce(`b`, `a`)) IN (1, 2)"),
        ("abs(Amount) < other", "abs((coalesce(`b`, `a`))) < other"),
        ("amount.x[0] = 1", "(coalesce(`b`, `a`)).x[0] = 1"),
        ("s.amount = 1", "s.amount = 1"),
        ("note = 'amount'", "note = 'amount'"),
        ("CAST(amount AS INT) IS NULL", "CAST((coalesce(`b`, `a`)) AS INT) IS NULL"),
        (
            "NOT amount = 1 OR -amount > 1",
            "NOT (coalesce(`b`, `a`)) = 1 OR -(coalesce(`b`, `a`)) > 1",
        ),
    ],
)
def test_columns_are_replaced_and_nothing_else(text: str, wanted: str) -> None:
    """Not a field of that name, not a string, not a function."""
    assert condition(text).over(VALUES) == wanted


@pytest.mark.parametrize(
    ("text", "column", "value"),
    [
        ("amount = abs(amount)", "amount", "(abs((coalesce(`b`, `a`))))"),
        ("`unit price`=1", "unit price", "(1)"),
        ("note = NULL", "note", "(NULL)"),
        ("flag = amount = 1", "flag", "((coalesce(`b`, `a`)) = 1)"),
        ("größe = 1 -- why", "größe", "(1)"),
    ],
)
def test_a_repair_is_a_column_and_its_new_value(text: str, column: str, value: str) -> None:
    """The value may be of any type."""
    found = repair(text)

    assert found.column == column
    assert found.value.over(VALUES) == value


def test_an_error_says_where_and_shows_no_value() -> None:
    """The condition can name a person."""
    with pytest.raises(ExpressionError) as refusal:
        condition("email = 'a@b.c' AND")

    assert "character" in str(refusal.value)
    assert "a@b.c" not in str(refusal.value)


def test_a_constraint_that_no_rule_could_be_is_none() -> None:
    """Other tools can give a table constraints that deltacheck would refuse."""
    assert rule_term("exists(tags, t -> t = 'x')") is None
    assert rule_term("amount > 0") is not None
