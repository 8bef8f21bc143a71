"""Columns, constants, and what certainly differs. What contradicts is in test_truth.py."""

from __future__ import annotations

import pytest
from sqlglot import parse_one

from deltacheck.lint.facts import Value, column_key, operand_key, value_of
from deltacheck.lint.truth import is_null


def test_columns_compare_without_regard_to_case_and_quotes() -> None:
    assert column_key(parse_one("S.`A b`", dialect="spark")) == "s.a b"
    assert is_null(parse_one("S.A", dialect="spark"), {"s"})
    assert not is_null(parse_one("sa", dialect="spark"), {"s"})


@pytest.mark.parametrize("text", ["'nan'", "'12'", "'yes'", "'3 days'", "a", "abs(1)", "'x1'"])
def test_what_may_compare_as_something_else_is_no_constant(text: str) -> None:
    assert value_of(parse_one(text, dialect="spark")) is None


def test_values_of_different_kinds_do_not_differ_for_sure() -> None:
    assert not Value("text", "a").differs(Value("time10", "2024-01-01"))
    assert not Value("text", "a").differs(Value("text", " A"))
    assert Value("text", "a").differs(Value("text", "b"))


def test_operands_that_differ_in_a_string_or_an_index_are_two() -> None:
    one, other = (parse_one(text, dialect="spark") for text in ("f(x, 'A')", "F(X, 'a')"))
    assert operand_key(one) != operand_key(other)

    one, other = (parse_one(text, dialect="spark") for text in ("abs(x)", "ABS(X)"))
    assert operand_key(one) == operand_key(other)
