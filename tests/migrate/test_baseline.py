"""The files that baseline writes, read back; the command itself is in tests/cli."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltacheck.errors import DeclarationError
from deltacheck.migrate.baseline import rule_of_check, rules_text
from deltacheck.names import TableName
from deltacheck.rules.expression import same_rule
from deltacheck.rules.files import read_rules
from deltacheck.rules.model import Kind


@pytest.mark.parametrize("name", ["amount_positive", "yes", "null", "0123", "1e3", "a b", "é", "~"])
@pytest.mark.parametrize(
    "expression",
    [
        "amount > 0",
        "status IN ('a: b', '# no comment', 'it''s', \"say 'so'\")",
        "length ( note ) < 5 AND note <> '---'",
        "price IS NOT NULL",
        "`order` IS NOT NULL",
        "address.zip IS NOT NULL",
        "a IS NOT NULL AND b IS NOT NULL",
        " AND ".join(f"column_{number} > {number}" for number in range(40)),
        "note <> 'ünïcödé ☃'",
    ],
)
def test_a_constraint_comes_back_as_it_was(tmp_path: Path, name: str, expression: str) -> None:
    """Its name and its meaning survive the file, whatever YAML makes of such words."""
    table = TableName.parse("shop.`odd table`")
    text = rules_text(table, [rule_of_check(name, expression)])
    (tmp_path / "orders.yml").write_text(text, encoding="utf-8")
    (rule,) = read_rules(tmp_path)[table].rules
    assert rule.name == name
    assert same_rule(rule.expression, expression)


@pytest.mark.parametrize(
    ("expression", "column"),
    [
        ("price IS NOT NULL", "price"),
        ("( `order` is not null )", "`order`"),
        ("s.a.b IS NOT NULL", "s.a.b"),
        ("NOT price IS NULL", None),
        ("price IS NOT NULL AND price > 0", None),
    ],
)
def test_a_check_that_says_not_null_becomes_a_not_null(expression: str, column: str | None) -> None:
    """Where it says that and nothing else."""
    rule = rule_of_check("here", expression)
    assert rule.column == column
    assert rule.kind is (Kind.CHECK if column is None else Kind.NOT_NULL)


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("a`b", "amount > 0"),
        ("Generated Column", "amount > 0"),
        ("sub", "id IN (SELECT id FROM t)"),
        ("clock", "rand() > 0"),
        ("lambda", "exists(tags, x -> x > 0)"),
        ("broken", "amount >"),
    ],
)
def test_what_cannot_be_a_rule_is_refused(name: str, expression: str) -> None:
    """A name or an expression that no rule may have: baseline leaves such a constraint alone."""
    with pytest.raises(DeclarationError):
        rule_of_check(name, expression)
