"""The statements that make a constraint what a task wants, from every state it can be in."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from deltacheck.delta.table import CONSTRAINT_PREFIX, Definition
from deltacheck.errors import ConstraintError
from deltacheck.migrate.alter import alterations
from deltacheck.migrate.tasks import Task, tasks_of
from deltacheck.names import TableName
from deltacheck.revisions.recorder import Op
from tests.migrate.bench import revision

ADD = "ALTER TABLE `t` ADD CONSTRAINT `Rule` CHECK (a > 1)"
HOLD = "ALTER TABLE `t` ADD CONSTRAINT `rule__deltacheck_new` CHECK (a > 1)"
RELEASE = "ALTER TABLE `t` DROP CONSTRAINT `rule__deltacheck_new`"
DROP = "ALTER TABLE `t` DROP CONSTRAINT `rule`"
UNSET = "ALTER TABLE `t` UNSET TBLPROPERTIES ('delta.constraints.RULE')"
HELD = "rule__deltacheck_new"


def table(constraints: Mapping[str, str], required: frozenset[tuple[str, ...]]) -> Definition:
    fields = [StructField(path[0], LongType(), nullable=False) for path in required]
    properties = {CONSTRAINT_PREFIX + name: text for name, text in constraints.items()}
    return Definition(TableName.parse("t"), StructType(fields), properties)


def task(kind: str) -> Task:
    def upgrade(op: Op) -> None:
        if kind == "add":
            op.add_check("t", "Rule", "a > 1")
        elif kind == "replace":
            op.replace_check("t", "Rule", "a > 1")
        elif kind == "drop":
            op.drop_check("t", "Rule")
        elif kind == "not_null":
            op.set_not_null("t", "A", name="Rule")
        else:
            op.drop_not_null("t", "A", name="Rule")

    return tasks_of([revision("1", None, upgrade)], "upgrade")[0]


@pytest.mark.parametrize(
    ("kind", "constraints", "statements"),
    [
        ("add", {}, [ADD]),
        ("add", {"rule": "a > 1"}, []),
        ("add", {"RULE": "A>1"}, []),
        ("add", {"rule": "a > 1", HELD: "a > 1"}, [RELEASE]),
        ("add", {HELD: "a > 1"}, [ADD, RELEASE]),
        ("replace", {}, [ADD]),
        ("replace", {"rule": "a > 1"}, []),
        ("replace", {"rule": "a > 0"}, [HOLD, DROP, ADD, RELEASE]),
        ("replace", {"rule": "a > 0", HELD: "a > 1"}, [DROP, ADD, RELEASE]),
        ("replace", {"rule": "a > 0", HELD: "a > 7"}, [RELEASE, HOLD, DROP, ADD, RELEASE]),
        ("replace", {HELD: "a > 1"}, [ADD, RELEASE]),
        ("replace", {"rule": "a > 1", HELD: "a > 1"}, [RELEASE]),
        ("replace", {"RULE": "a > 0"}, [HOLD, UNSET, ADD, RELEASE]),
        ("replace", {"RULE": "a > 0", "rule": "a > 1"}, [UNSET]),
        ("replace", {"RULE": "a > 0", "rule": "a > 0"}, [HOLD, UNSET, DROP, ADD, RELEASE]),
        ("drop", {}, []),
        ("drop", {"rule": "a > 0"}, [DROP]),
        ("drop", {"RULE": "a > 0"}, [UNSET]),
        ("drop", {"RULE": "a > 0", "rule": "a > 1"}, [UNSET, DROP]),
        ("drop", {"rule": "a > 0", HELD: "a > 1"}, [DROP, RELEASE]),
    ],
)
def test_goes_on_from_any_state(
    kind: str, constraints: dict[str, str], statements: list[str]
) -> None:
    """Each state, half-way ones among them, leads to the end by these statements."""
    assert alterations(table(constraints, frozenset()), task(kind)) == statements


def test_a_name_of_another_rule_is_not_taken_from_it() -> None:
    """Only a replacement may change what a name stands for, in whatever case it is stored."""
    for name in ("rule", "RULE"):
        with pytest.raises(ConstraintError, match="already"):
            alterations(table({name: "a > 0"}, frozenset()), task("add"))


def test_a_column_that_the_schema_declares_not_null() -> None:
    """NOT NULL of the schema is enough, and dropping the rule drops it."""
    there = table({}, frozenset({("a",)}))
    assert alterations(there, task("not_null")) == []
    assert alterations(there, task("nullable")) == [
        "ALTER TABLE `t` ALTER COLUMN `a` DROP NOT NULL"
    ]


@pytest.mark.parametrize("start", [{}, {"rule": "a > 0"}, {"RULE": "a > 0"}])
def test_never_a_moment_without_protection(start: dict[str, str]) -> None:
    """After each statement of a replacement some expression holds; each state goes on to the end.

    The old expression and the new one are the two that may hold.
    """
    constraints = dict(start)
    for _ in range(10):
        statements = alterations(table(constraints, frozenset()), task("replace"))
        if not statements:
            break
        first = statements[0]
        if " ADD CONSTRAINT " in first:
            constraints[first.split("`")[3].lower()] = "a > 1"
        else:
            gone = first.split("`")[3] if "DROP" in first else first.split("constraints.")[1][:-2]
            del constraints[gone]
        assert constraints or not start
    assert constraints == {"rule": "a > 1"}
