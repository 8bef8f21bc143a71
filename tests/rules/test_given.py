"""Rules may come from Python or from a table of rules, and are held to the same standard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from deltacheck.errors import DeclarationError, ExpressionError, IdentifierError
from deltacheck.names import TableName
from deltacheck.rules.given import rules_from_rows, rules_given
from deltacheck.rules.model import Action, Gate, Kind, Rule, TableRules

Row = Mapping[str, object]


def row(**entries: object) -> Row:
    """A row of a table of rules: ``shop.orders``, ``amount_positive`` unless said otherwise."""
    return {"table": "shop.orders", "name": "amount_positive", **entries}


def refused_row(*rows: Row) -> DeclarationError:
    with pytest.raises(DeclarationError) as raised:
        rules_from_rows(rows)
    return raised.value


def test_a_dict_gives_names_and_expressions() -> None:
    rules = rules_given("shop.orders", {"amount_positive": "amount>0"})

    (rule,) = rules.rules
    assert rules.table == TableName.parse("shop.orders")
    assert (rule.name, rule.kind, rule.expression) == ("amount_positive", Kind.CHECK, "amount > 0")
    assert rule.declared == "amount>0"


def test_a_dict_may_say_of_a_rule_all_that_a_file_may() -> None:
    (rule,) = rules_given(
        TableName.parse("t"),
        {
            "id_present": {
                "not_null": "id",
                "on_violation": Action.WARN,
                "gate": 5,
                "tags": {"core"},
                "owner": None,
            }
        },
    ).rules

    assert (rule.kind, rule.column, rule.on_violation) == (Kind.NOT_NULL, "id", Action.WARN)
    assert (rule.gate, rule.tags, rule.owner) == (Gate.parse(5), ("core",), "")


def test_rules_made_by_hand_have_their_expressions_read_like_any_other() -> None:
    (check, present) = rules_given(
        "t",
        [
            Rule("a_ok", Kind.CHECK, "a::int>0"),
            Rule("b_present", Kind.NOT_NULL, "whatever; DROP TABLE t", column="b"),
        ],
    ).rules

    assert (check.expression, check.declared) == ("CAST(a AS INT) > 0", "a::int>0")
    assert present.expression == "b IS NOT NULL"


def test_rules_read_from_a_file_can_be_given_again_unchanged() -> None:
    first = rules_given("t", {"a_ok": "a > 0", "b_present": {"not_null": "b"}})

    assert rules_given("t", first.rules) == first


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"a_ok": "a >"}, ExpressionError, ()),
        ({"a_ok": "a > 0; DROP TABLE t"}, ExpressionError, ()),
        ({"a`; --": "a > 0"}, IdentifierError, ()),
        ({"a_ok": 5}, DeclarationError, ("rule 'a_ok'", "mapping")),
        ({"a_ok": {"chek": "a"}}, DeclarationError, ("'chek'", "Did you mean 'check'")),
        ({"a_ok": {}}, DeclarationError, ("neither check nor not_null",)),
        ({"a_ok": {"check": "a", "not_null": "a"}}, DeclarationError, ("both",)),
        ({"a_ok": {"check": "a", "gate": True}}, DeclarationError, ("not a gate",)),
        ({"a_ok": {"check": "a", "gate": 0.5}}, DeclarationError, ("not a gate",)),
        ({"a_ok": {"check": "a", "on_violation": "stop"}}, DeclarationError, ("not an action",)),
        ({"a_ok": "a > 0", "A_OK": "a > 1"}, DeclarationError, ("'A_OK'", "'a_ok'")),
        ([Rule("a_ok", Kind.CHECK, "a >")], ExpressionError, ()),
        ([Rule("a_ok", Kind.NOT_NULL, "a IS NOT NULL")], DeclarationError, ("no column",)),
        ([Rule("a;b", Kind.CHECK, "a > 0")], IdentifierError, ()),
        (["a > 0"], DeclarationError, ("'str' is not a rule",)),
        (
            [Rule("a_ok", Kind.CHECK, "a > 0"), Rule("A_ok", Kind.CHECK, "a > 1")],
            DeclarationError,
            ("two rules called 'A_ok'",),
        ),
    ],
)
def test_what_a_file_may_not_say_python_may_not_say_either(
    given: Mapping[str, object] | Iterable[Rule],
    error: type[DeclarationError],
    words: tuple[str, ...],
) -> None:
    with pytest.raises(DeclarationError) as raised:
        rules_given("t", given)

    assert type(raised.value) is error
    assert raised.value.table == "t"
    for word in words:
        assert word in str(raised.value)


def test_a_table_must_have_a_name() -> None:
    with pytest.raises(IdentifierError):
        rules_given("a.b.c.d", {})


def test_rows_give_the_rules_of_their_tables_in_order() -> None:
    rules = rules_from_rows(
        [
            row(check="amount > 0", gate="5%", tags="core, money", description=None),
            row(table="shop.customers", name="id_present", column="id"),
            row(table="SHOP.ORDERS", name="id_present", not_null="order_id", tags=["core"]),
        ]
    )

    assert list(rules) == [TableName.parse("shop.orders"), TableName.parse("shop.customers")]
    positive, present = rules[TableName.parse("shop.orders")].rules
    assert (positive.gate, positive.tags) == (Gate.parse("5%"), ("core", "money"))
    assert (present.kind, present.column, present.tags) == (Kind.NOT_NULL, "order_id", ("core",))
    assert isinstance(rules[TableName.parse("shop.customers")], TableRules)


def test_no_rows_give_no_rules() -> None:
    assert rules_from_rows([]) == {}


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (row(check="a > 0", shade="red"), ("Row 2", "'shade'", "It may be: table")),
        (row(check="a > 0", on_violaton="warn"), ("Row 2", "Did you mean 'on_violation'")),
        (row(check="a > 0", table=None), ("Row 2", "'table'")),
        (row(check="a > 0", name=" "), ("Row 2", "'name'")),
        (row(check="a > 0", name=7), ("Row 2", "'name'")),
        (row(name="b_ok"), ("Row 2", "rule 'b_ok'", "neither")),
        (row(column="a", not_null="a"), ("Row 2", "both column and not_null")),
        (row(check="a > 0", gate="many"), ("Row 2", "not a gate")),
        (row(check="a > 0"), ("two rules called 'amount_positive'",)),
    ],
)
def test_a_bad_row_is_named_by_its_number(second: Row, words: tuple[str, ...]) -> None:
    problem = refused_row(row(check="amount > 0"), second)

    for word in words:
        assert word in str(problem)


def test_a_bad_expression_in_a_row_names_table_and_rule() -> None:
    problem = refused_row(row(check="amount > (SELECT 1)"))

    assert isinstance(problem, ExpressionError)
    assert (problem.table, problem.rule) == ("shop.orders", "amount_positive")
