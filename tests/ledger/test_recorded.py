"""What an upgrade records of a table is what a job reads."""

from __future__ import annotations

import json

from deltacheck.config import Environment
from deltacheck.ledger.recorded import PROPERTY, read_recorded, recorded_text
from deltacheck.names import TableName
from deltacheck.rules.given import checks_given, rules_given
from deltacheck.rules.model import Gate, TableRules

ORDERS = TableName.parse("shop.orders")
DECLARED = TableRules(
    ORDERS,
    rules_given(
        ORDERS,
        {
            "amount_positive": {"check": "amount > 0", "owner": "finance", "gate": "5%"},
            "id_there": {"not_null": "id", "on_violation": "fail"},
        },
    ).rules,
    gate=Gate.parse(3),
    owner="sales",
    batch=checks_given(ORDERS, {"some": {"row_count": {"min": 1}, "owner": "ops"}}),
)


def recorded() -> str:
    """The property's value."""
    return recorded_text(DECLARED, TableName.parse("shop.bad"), Environment("prod", schema="ops"))


def test_rules_gates_checks_and_owners_are_read_as_they_were_recorded() -> None:
    assert read_recorded(ORDERS, {PROPERTY: recorded()}) == DECLARED


def test_a_property_that_names_no_owner_is_read_too() -> None:
    """One that was written before owners were recorded."""
    value = json.loads(recorded())
    for entry in (value, *value["rules"], *value["batch"].values()):
        entry.pop("owner", None)

    found = read_recorded(ORDERS, {PROPERTY: json.dumps(value)})

    assert found is not None
    assert {found.owner, *(rule.owner for rule in found.rules), found.batch[0].owner} == {""}
    assert [rule.name for rule in found.rules] == ["amount_positive", "id_there"]
