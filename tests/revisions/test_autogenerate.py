"""From what the migrations add up to, to what is declared."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltacheck.errors import DeclarationError
from deltacheck.names import TableName
from deltacheck.revisions.autogenerate import difference
from deltacheck.revisions.operations import (
    AddConstraint,
    DropConstraint,
    Operation,
    RenameTable,
    ReplaceConstraint,
)
from deltacheck.revisions.state import State, resolved, state_after
from deltacheck.rules.expression import not_null as sql_not_null
from deltacheck.rules.expression import parse_rule
from deltacheck.rules.model import Action, Gate, Kind, Rule, TableRules
from tests.revisions.chains import ORDERS, linear

SALES = TableName.parse("shop.sales")
Rules = dict[TableName, TableRules]


def rule(
    name: str,
    expression: str = "amount > 0",
    action: Action = Action.QUARANTINE,
    *,
    renamed_from: str | None = None,
    gate: Gate | None = None,
) -> Rule:
    """A declared check."""
    stored = parse_rule(expression).stored
    return Rule(name, Kind.CHECK, stored, None, action, renamed_from=renamed_from, gate=gate)


def present(column: str, name: str = "present", *, renamed_from: str | None = None) -> Rule:
    """A declared NOT NULL."""
    stored = sql_not_null(column).stored
    return Rule(name, Kind.NOT_NULL, stored, column, renamed_from=renamed_from)


def declared(*rules: Rule, table: TableName = ORDERS, old: TableName | None = None) -> Rules:
    """What constraints/ says about one table."""
    return {table: TableRules(table, rules, renamed_from=old)}


def state_of(rules: Rules) -> State:
    """Where a project is after a migration to ``rules``."""
    return state_after(linear(difference(rules, {})))


def changes(before: Rules, after: Rules) -> list[str]:
    """The difference in a few words, in order."""
    return [_worded(one) for one in difference(after, state_of(before))]


def _worded(operation: Operation) -> str:
    if isinstance(operation, AddConstraint):
        return f"add {operation.kind.value} {operation.name}"
    if isinstance(operation, DropConstraint):
        return f"drop {operation.kind.value} {operation.name}"
    if isinstance(operation, ReplaceConstraint):
        return f"replace {operation.name}: {operation.added.expression}"
    assert isinstance(operation, RenameTable)
    return f"rename {operation.old} {operation.new}"


def test_new_rules_are_added_in_the_order_of_their_declaration() -> None:
    """Each as its kind."""
    assert changes({}, declared(rule("z"), present("id"), rule("a"))) == [
        "add check z",
        "add not_null present",
        "add check a",
    ]


def test_what_is_declared_no_more_is_dropped() -> None:
    """A rule, and a table with all its rules."""
    before = declared(rule("a"), present("id"))
    assert changes(before, declared(rule("a"))) == ["drop not_null present"]
    assert changes(before, {}) == ["drop check a", "drop not_null present"]


def test_no_difference_is_nothing() -> None:
    """So that no file is made."""
    rules = declared(rule("a"), present("id"))
    assert changes(rules, rules) == []


def test_a_changed_expression_is_a_replacement() -> None:
    """Which knows what it replaces."""
    before, after = declared(rule("a")), declared(rule("a", "amount > 1"))
    (replaced,) = difference(after, state_of(before))
    assert isinstance(replaced, ReplaceConstraint)
    assert replaced.added.expression == parse_rule("amount > 1").stored
    assert replaced.previous == difference(before, {})[0]


@pytest.mark.parametrize("expression", ["amount>0", "AMOUNT  >  0", "(amount > 0)", "`amount` > 0"])
def test_the_same_rule_in_other_words_is_no_difference(expression: str) -> None:
    """Layout, case of columns, brackets, quotes."""
    assert changes(declared(rule("a")), declared(rule("a", expression))) == []


def test_the_case_of_names_is_no_difference() -> None:
    """Of tables, rules and columns: Delta has them in lower case or ignores it."""
    before = declared(rule("positive"), present("id"))
    after = declared(
        rule("Positive"), present("ID", "PRESENT"), table=TableName.parse("SHOP.Orders")
    )
    assert changes(before, after) == []


def test_action_and_gate_alone_are_no_difference() -> None:
    """They concern later batches and live in constraints/."""
    after = declared(rule("a", action=Action.FAIL, gate=Gate.parse(3)))
    assert changes(declared(rule("a")), after) == []


def test_a_warn_rule_is_never_a_constraint() -> None:
    """A rule that comes down to it is dropped, one that rises from it is added."""
    enforced, warned = declared(rule("a")), declared(rule("a", action=Action.WARN))
    assert changes({}, warned) == []
    assert changes(enforced, warned) == ["drop check a"]
    assert changes(warned, enforced) == ["add check a"]


@pytest.mark.parametrize(
    ("action", "violators"),
    [(Action.QUARANTINE, "quarantine"), (Action.DROP, "quarantine"), (Action.FAIL, "fail")],
)
def test_the_action_decides_what_becomes_of_present_violators(
    action: Action, violators: str
) -> None:
    """Rows that a table already holds are never dropped."""
    (added,) = difference(declared(rule("a", action=action)), {})
    assert isinstance(added, AddConstraint)
    assert added.violators == violators


def test_the_gate_is_the_rules_own() -> None:
    """That of the table is for its rules taken together, so an upgrade takes it from there."""
    rules = declared(rule("a", gate=Gate.parse("1/3")), rule("b"))
    rules[ORDERS] = replace(rules[ORDERS], gate=Gate.parse("5%"))
    gates = [one.gate for one in difference(rules, {}) if isinstance(one, AddConstraint)]
    assert gates == [Gate.parse("1/3"), None]


def test_a_gate_of_no_row_at_all_is_kept() -> None:
    """Zero is a gate."""
    rules = declared(rule("a", gate=Gate.parse(0)))
    rules[ORDERS] = replace(rules[ORDERS], gate=Gate.parse("5%"))
    (added,) = difference(rules, {})
    assert isinstance(added, AddConstraint)
    assert added.gate == Gate.parse(0)


def test_a_renamed_rule_is_there_before_its_old_name_goes() -> None:
    """Delta cannot rename a constraint, and the table is never without it."""
    before = declared(rule("b"), rule("a"), rule("c"))
    after = declared(rule("new", renamed_from="B"), rule("a"), rule("d"))
    assert changes(before, after) == [
        "add check new",
        "drop check b",
        "add check d",
        "drop check c",
    ]


def test_a_rename_that_was_made_already_is_no_difference() -> None:
    """`renamed_from` may stay in the file."""
    after = declared(rule("new", renamed_from="a"))
    assert changes(after, after) == []


def test_a_new_rule_may_take_the_old_name_of_a_renamed_one() -> None:
    """Then that one is changed, not dropped."""
    before = declared(rule("a"))
    after = declared(rule("a", "amount < 9"), rule("b", renamed_from="a"))
    expression = parse_rule("amount < 9").stored
    assert changes(before, after) == [f"replace a: {expression}", "add check b"]


def test_two_rules_that_trade_names_are_replaced() -> None:
    """Both names stay taken throughout."""
    low, high = parse_rule("amount > 0").stored, parse_rule("amount < 9").stored
    before = declared(rule("a", low), rule("b", high))
    after = declared(rule("b", low, renamed_from="a"), rule("a", high, renamed_from="b"))
    assert changes(before, after) == [f"replace b: {low}", f"replace a: {high}"]


def test_another_kind_under_the_same_name_is_a_drop_and_an_add() -> None:
    """In this order, since a table has each name once."""
    before = declared(rule("present", "id IS NOT NULL"))
    assert changes(before, declared(present("id"))) == [
        "drop check present",
        "add not_null present",
    ]


def test_the_not_null_of_another_column_is_a_drop_and_an_add() -> None:
    """There is no replacing of a NOT NULL."""
    assert changes(declared(present("id")), declared(present("key"))) == [
        "drop not_null present",
        "add not_null present",
    ]


def test_a_renamed_table_is_no_drop_and_add() -> None:
    """Its constraints have moved with it; what changed besides comes after."""
    before = declared(rule("a"), rule("b"))
    after = declared(rule("a"), rule("c"), table=SALES, old=ORDERS)
    assert changes(before, after) == [
        "rename shop.orders shop.sales",
        "add check c",
        "drop check b",
    ]


def test_a_renamed_table_that_was_moved_already_is_no_difference() -> None:
    """Nor is one that never had a constraint."""
    after = declared(rule("a"), table=SALES, old=ORDERS)
    assert changes(after, after) == []
    assert changes({}, after) == ["add check a"]


def test_without_being_told_a_renamed_table_is_a_drop_and_an_add() -> None:
    """Nobody guesses."""
    after = declared(rule("a"), table=SALES)
    assert changes(declared(rule("a")), after) == ["add check a", "drop check a"]


def test_the_old_name_of_a_table_may_be_taken_by_a_new_one() -> None:
    """The old one moves away first."""
    after = declared(rule("n")) | declared(rule("a"), table=SALES, old=ORDERS)
    assert changes(declared(rule("a")), after) == ["rename shop.orders shop.sales", "add check n"]


def test_a_table_that_moved_and_has_no_constraint_leaves_those_of_its_old_name_alone() -> None:
    """They are those of the new table there."""
    after = declared(rule("n")) | declared(table=SALES, old=ORDERS)
    assert changes(declared(rule("n")), after) == []


def test_tables_that_move_up_one_after_the_other_do_so_in_a_possible_order() -> None:
    """Each when its new name has become free."""
    third = TableName.parse("shop.third")
    before = declared(rule("a")) | declared(rule("b"), table=SALES)
    after = declared(rule("a"), table=SALES, old=ORDERS) | declared(
        rule("b"), table=third, old=SALES
    )
    assert changes(before, after) == [
        "rename shop.sales shop.third",
        "rename shop.orders shop.sales",
    ]


def test_one_table_has_one_new_name() -> None:
    """Two that claim the same old one are a mistake."""
    third = TableName.parse("shop.third")
    after = declared(table=SALES, old=ORDERS) | declared(table=third, old=ORDERS)
    with pytest.raises(DeclarationError, match=r"shop.sales and shop.third both say") as caught:
        difference(after, state_of(declared(rule("a"))))
    assert caught.value.table == "shop.third"


def test_a_renaming_made_long_ago_does_not_stand_in_the_way_of_another() -> None:
    """The old name was used anew, and that table is renamed in its turn."""
    third = TableName.parse("shop.third")
    before = declared(rule("a"), table=SALES, old=ORDERS) | declared(rule("b"))
    after = declared(rule("a"), table=SALES, old=ORDERS) | declared(
        rule("b"), table=third, old=ORDERS
    )
    assert changes(before, after) == ["rename shop.orders shop.third"]


NAMES = ["a", "b", "c", "d"]
TABLES = [ORDERS, SALES, TableName.parse("shop.third")]


@st.composite
def declarations(draw: st.DrawFn) -> Rules:
    """What constraints/ may say, with renamings that make sense and others that do not."""
    rules: Rules = {}
    olds = draw(st.permutations([*TABLES, None, None, None]))
    for table, old in zip(draw(st.lists(st.sampled_from(TABLES), unique=True)), olds, strict=False):
        chosen = []
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
            before = draw(st.none() | st.sampled_from(NAMES))
            if draw(st.booleans()):
                chosen.append(
                    rule(
                        name,
                        draw(st.sampled_from(["amount > 0", "amount < 9"])),
                        draw(st.sampled_from(list(Action))),
                        renamed_from=before,
                    )
                )
            else:
                column = draw(st.sampled_from(["id", "key"]))
                chosen.append(present(column, name, renamed_from=before))
        rules[table] = TableRules(table, tuple(chosen), renamed_from=old)
    return rules


def essence(state: State) -> dict[TableName, dict[str, tuple[Kind, str]]]:
    """What Delta would hold."""
    return {
        table: {
            key: (managed.added.kind, managed.added.expression)
            for key, managed in constraints.items()
        }
        for table, constraints in state.items()
    }


@given(declarations(), declarations())
def test_the_difference_leads_to_what_is_declared_and_back(before: Rules, after: Rules) -> None:
    """From any declaration to any other: the migration adds up, arrives, is then complete,
    and its reverse restores what was there."""
    first = difference(before, {})
    second = difference(after, state_of(before))
    backwards = [back for one in reversed(second) if (back := one.reverse()) is not None]
    assert len(backwards) == len(second)

    one, two = linear(first, second)
    resolved([one, replace(two, downgrade=tuple(backwards))])
    there = state_after([one, two])
    assert difference(after, there) == ()
    assert essence(there) == {
        table: {rule.key: (rule.kind, rule.expression) for rule in rules.rules if rule.enforced}
        for table, rules in after.items()
        if any(rule.enforced for rule in rules.rules)
    }
    assert essence(state_after(linear(first, second, backwards))) == essence(state_after([one]))


@given(declarations(), declarations())
def test_a_new_rule_is_there_before_an_old_one_goes(before: Rules, after: Rules) -> None:
    """On each table, but for a name that passes to another kind or column."""
    operations = difference(after, state_of(before))
    added = {(one.table, one.key) for one in operations if isinstance(one, AddConstraint)}
    for table in {one.table for one in operations}:
        mine = [one for one in operations if one.table == table]
        pure = [
            type(one)
            for one in mine
            if (isinstance(one, DropConstraint) and (table, one.key) not in added)
            or isinstance(one, (AddConstraint, ReplaceConstraint))
        ]
        renamed = {rule.renamed_from for rule in after[table].rules} if table in after else set()
        if not renamed - {None}:
            assert pure == sorted(pure, key=lambda kind: kind is DropConstraint)
