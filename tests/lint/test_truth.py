"""What an expression can come out as is never told too narrowly. The oracle is SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import parse_one

from deltacheck.lint.truth import Outcome, outcomes

VALUES = (None, -1, 0, 1, 2, 3)
"""What the columns a and b hold, in all combinations."""


def possible(text: str, *nulls: str) -> set[str]:
    """The names of the outcomes that a text can have."""
    return {one.name for one in outcomes(parse_one(text, dialect="spark"), nulls)}


def observed(text: str, rows: Sequence[tuple[int | None, int | None]]) -> set[Outcome]:
    """The outcomes that SQLite sees."""
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (a INT, b INT)")
        database.executemany("INSERT INTO t VALUES (?, ?)", rows)
        seen = {row[0] for row in database.execute(f"SELECT DISTINCT ({text}) FROM t")}
    database.close()
    return {Outcome(None if one is None else bool(one)) for one in seen}


numbers = st.integers(-1, 3).map(str)
operands = st.sampled_from(["a", "b", "a + 1", "abs(b)", "-a"])
comparisons = st.one_of(
    st.builds("{} {} {}".format, operands, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
              st.one_of(numbers, operands, st.just("NULL"))),
    st.builds("{1} {2} {0}".format, operands, numbers, st.sampled_from(["=", "<", ">="])),
    st.builds("{} {}BETWEEN {} AND {}".format, operands, st.sampled_from(["", "NOT "]), numbers,
              numbers),
    st.builds("{} {}IN ({}, {})".format, operands, st.sampled_from(["", "NOT "]), numbers,
              st.one_of(numbers, st.just("NULL"))),
    st.builds("{} IS {}NULL".format, operands, st.sampled_from(["", "NOT "])),
    st.builds("{} {} {}".format, numbers, st.sampled_from(["=", "<"]), numbers),
    st.builds("coalesce({} > {}, {})".format, operands, numbers,
              st.sampled_from(["TRUE", "FALSE", "a = 1"])),
    st.sampled_from(["TRUE", "FALSE", "NULL"]),
)  # fmt: skip
rules = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(NOT {})".format, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(rules)
def test_no_outcome_that_happens_is_left_out(text: str) -> None:
    """Every outcome that rows have is among those that are said to be possible."""
    rows = list(product(VALUES, VALUES))

    assert observed(text, rows) <= outcomes(parse_one(text, dialect="spark")), text


@settings(max_examples=400, deadline=None)
@given(rules)
def test_no_outcome_of_rows_with_null_is_left_out(text: str) -> None:
    """The same where a column is said to be NULL."""
    rows = [(None, value) for value in VALUES]

    assert observed(text, rows) <= outcomes(parse_one(text, dialect="spark"), {"a"}), text


@pytest.mark.parametrize(
    "text",
    [
        "a > 5 AND a < 3",
        "a >= 5 AND 5 > a",
        "a > 1 AND (b = 1 AND NOT a > 1)",
        "a BETWEEN 5 AND 3",
        "a = 1 AND a = 2",
        "a IN (1, 2) AND a > 2",
        "a = 1 AND a <> 1",
        "a IS NULL AND a > 1",
        "a IS NULL AND a IS NOT NULL",
        "s = 'paid' AND s IN ('sent', 'lost')",
        "d > DATE '2024-01-02' AND d < '2024-01-01'",
        "ts >= '2024-01-02 00:00:00' AND ts < '2024-01-01 00:00:00'",
        "address.zip > 5 AND `Address`.`ZIP` < 3",
        "length(s) > 3 AND LENGTH(S) < 2",
        "a > 10L AND a < 2.5BD",
        "1 = 2",
        "1 + 1 = 3",
        "a > 0 AND FALSE",
        "NOT (a > 1 OR a <= 1)",
    ],
)
def test_contradictions_are_seen(text: str) -> None:
    assert "TRUE" not in possible(text)


@pytest.mark.parametrize(
    "text",
    [
        "a > 5 AND b < 3",
        "a >= 5 AND a <= 5",
        "a > 5 AND a < 6",
        "s = '1' AND s = '01'",
        "s = 'true' AND s = 't'",
        "s > 'b' AND s < 'a'",
        "s = 'x' AND s = 'X '",
        "s > '10' AND s < '9'",
        "d > '2024-01-02' AND d < '2024-1-1'",
        "upper(s) = 'A' AND lower(s) = 'a'",
        "f('A') > 1 AND f('a') < 1",
        "a[0].b > 1 AND a[1].b < 1",
        "a IN (1, b) AND a = 2",
        "CAST(1.5 AS INT) = a AND a = 1",
        "a > 5 OR a < 3",
    ],
)
def test_what_only_looks_like_a_contradiction_is_left_alone(text: str) -> None:
    assert "TRUE" in possible(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 = 1", {"TRUE"}),
        ("a > 0 OR 1 = 1", {"TRUE"}),
        ("a IS NULL OR a IS NOT NULL", {"TRUE"}),
        ("s <> 'sent' OR s <> 'lost'", {"TRUE", "NULL"}),
        ("a > 0 OR a < 10", {"TRUE", "NULL"}),
        ("NOT (a > 5 AND a < 3)", {"TRUE", "NULL"}),
        ("a > 0 OR a < 0", {"TRUE", "FALSE", "NULL"}),
        ("a = NULL", {"NULL"}),
        ("a NOT IN (1, NULL)", {"FALSE", "NULL"}),
        ("a IN (1, NULL)", {"TRUE", "NULL"}),
        ("(a > 1) IS TRUE", {"TRUE", "FALSE"}),
        ("(a = NULL) IS TRUE", {"FALSE"}),
    ],
)
def test_outcomes(text: str, expected: set[str]) -> None:
    assert possible(text) == expected


@pytest.mark.parametrize(
    ("text", "refuses"),
    [
        ("a > 1", True),
        ("length(trim(a)) > 1", True),
        ("a.b > 1", True),
        ("a[0] > 1", True),
        ("a LIKE 'x%'", True),
        ("year(a) > 2000", True),
        ("a + b > 1", True),
        ("a > 1 OR b > 1", False),
        ("a IS NULL OR a > 1", False),
        ("coalesce(a, 1) > 0", False),
        ("a <=> b", False),
        ("NOT isnan(a)", False),
        ("concat_ws('-', a, b) <> ''", False),
        ("greatest(a, b) > 1", False),
        ("CASE WHEN a > 1 THEN TRUE ELSE TRUE END", False),
    ],
)
def test_what_a_null_does_to_a_rule(text: str, refuses: bool) -> None:
    assert ("TRUE" not in possible(text, "a")) is refuses
