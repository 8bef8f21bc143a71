"""Checks of batches and of tables are read from ``constraints/``, or refused with their place."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from deltacheck.errors import DeclarationError
from deltacheck.names import TableName
from deltacheck.rules.check_models import BATCH_TESTS, TABLE_TESTS, declaration_of
from deltacheck.rules.checks import (
    BrokenShare,
    Columns,
    Freshness,
    NullShare,
    OnFailure,
    QuarantineLimits,
    Reconcile,
    References,
    Requires,
    RowCount,
    Trend,
    Unique,
)
from deltacheck.rules.files import read_rules
from deltacheck.rules.given import checks_given
from deltacheck.rules.model import Gate, Origin, TableRules
from deltacheck.rules.quantities import Age, Measure, Tolerance, Window
from deltacheck.rules.schema import json_schema
from deltacheck.rules.selection import Selection

ORDERS = """\
table: shop.orders
owner: sales
rules:
  amount_positive: {check: amount > 0}
batch:
  some_rows: {row_count: {min: 100, max: 5000}}
  not_an_empty_file: {not_empty: true, on_failure: quarantine}
  no_doubles: {unique: order_id}
  nothing_twice: {unique_in_table: [shop, number], on_failure: warn}
  customers_known: {null_share: {column: customer_id, max: 5%}}
  few_bad: {broken_share: {rule: amount_positive, max: 1%}}
  few_bad_at_all: {broken_share: {max: 10}}
  shape: {columns: {order_id: bigint, amount: "decimal(10,2)"}}
  customers_first: {requires: {table: shop.customers, column: loaded_at, max_age: 1d}}
  customers_at_all: {requires: {table: shop.customers}}
  control_total: {reconcile: {measure: sum(amount), figure: total, tolerance: 0.01}}
checks:
  enough_rows:
    row_count: {min: 1}
    where: placed_at >= current_date() - INTERVAL 1 DAY
    by: [region, date(placed_at)]
    show_groups: true
    on_failure: warn
    description: Each region sells something each day.
    tags: [daily]
    owner: logistics
  order_id_unique: {unique: order_id}
  customers_exist: {references: {columns: customer_id, table: shop.customers, nulls: refused}}
  both_found: {references: {columns: [a, b], table: u, keys: [c, d]}}
  arrives_daily: {freshness: {column: placed_at, max_age: 26h}}
  agrees_with_ledger:
    reconcile:
      measure: sum(amount * quantity)
      against: {table: finance.ledger, measure: sum(total), where: booked}
      tolerance: 0.5%
  usual_amount: {trend: {measure: mean(amount)}}
  usual_mondays: {trend: {measure: row_count, last: 8 weeks, within: 2.5}}
  usual_failures: {trend: {measure: failure_share(Amount_Positive)}}
  small_quarantine: {quarantine: {rows: 100, oldest: 7d}}
"""


def read(folder: Path, text: str, environ: dict[str, str] | None = None) -> TableRules:
    """The declaration of the one table that a file is about."""
    (folder / "orders.yml").write_text(text, encoding="utf-8")
    (declared,) = read_rules(folder, environ=environ or {}).values()
    return declared


def accepts(document: Any) -> bool:
    """Whether the schema for editors accepts a document."""
    return bool(Draft202012Validator(json_schema()).is_valid(document))


def test_checks_of_a_batch_are_read(tmp_path: Path) -> None:
    """Each has one test, and says what its failure means."""
    batch = {check.name: check for check in read(tmp_path, ORDERS).batch}

    customers = TableName.parse("shop.customers")
    assert {name: check.test for name, check in batch.items()} == {
        "some_rows": RowCount(100, 5000),
        "not_an_empty_file": RowCount(least=1),
        "no_doubles": Unique(("order_id",)),
        "nothing_twice": Unique(("shop", "number"), in_table=True),
        "customers_known": NullShare("customer_id", Gate.parse("5%")),
        "few_bad": BrokenShare(Gate.parse("1%"), "amount_positive"),
        "few_bad_at_all": BrokenShare(Gate.parse(10)),
        "shape": Columns({"order_id": "bigint", "amount": "decimal(10,2)"}),
        "customers_first": Requires(customers, Freshness("loaded_at", Age.parse("1d"))),
        "customers_at_all": Requires(customers),
        "control_total": Reconcile(
            Measure.parse("sum(amount)"), Tolerance.parse("0.01"), figure="total"
        ),
    }
    assert [batch[name].on_failure for name in ("some_rows", "not_an_empty_file")] == [
        OnFailure.FAIL,
        OnFailure.QUARANTINE,
    ]
    assert batch["not_an_empty_file"].kind == "not_empty"


def test_checks_of_a_table_are_read(tmp_path: Path) -> None:
    """With the rows they look at, their groups, and who answers for them."""
    checks = {check.name: check for check in read(tmp_path, ORDERS).checks}

    enough = checks["enough_rows"]
    assert (enough.kind, enough.test) == ("row_count", RowCount(least=1))
    assert enough.where == "placed_at >= current_date() - INTERVAL 1 DAY"
    assert (enough.by, enough.show_groups) == (("region", "date(placed_at)"), True)
    assert (enough.on_failure, enough.tags) == (OnFailure.WARN, ("daily",))
    assert (enough.owner, enough.description[:4]) == ("logistics", "Each")
    assert enough.origin == Origin(tmp_path / "orders.yml", 18, 3)
    assert checks["order_id_unique"].test == Unique(("order_id",))
    assert checks["customers_exist"].test == References(
        ("customer_id",), TableName.parse("shop.customers"), ("customer_id",), nulls=False
    )
    assert checks["both_found"].test == References(
        ("a", "b"), TableName.parse("u"), ("c", "d"), nulls=True
    )
    assert checks["arrives_daily"].test == Freshness("placed_at", Age.parse("26h"))
    assert checks["small_quarantine"].test == QuarantineLimits(100, Age.parse("7d"))


def test_a_trend_and_a_reconciliation_say_what_they_measure(tmp_path: Path) -> None:
    checks = {check.name: check.test for check in read(tmp_path, ORDERS).checks}

    compared, usual = checks["agrees_with_ledger"], checks["usual_amount"]
    assert isinstance(compared, Reconcile)
    assert compared.other is not None
    assert compared.measure.of == "amount * quantity"
    assert (str(compared.other.table), compared.other.where) == ("finance.ledger", "booked")
    assert compared.other.measure == Measure.parse("sum(total)")
    assert compared.tolerance == Tolerance.parse("0.5%")
    assert isinstance(usual, Trend)
    assert (usual.last, usual.within) == (Window(14, weekly=False), Fraction(4))
    assert checks["usual_mondays"] == Trend(
        Measure.parse("row_count"), Window(8, weekly=True), Fraction(5, 2)
    )


def test_a_table_may_have_checks_and_no_rules(tmp_path: Path) -> None:
    declared = read(tmp_path, "table: t\nchecks: {some: {row_count: {min: 1}}}\n")

    assert (declared.rules, len(declared.checks)) == ((), 1)


def test_environment_variables_stand_in_for_parts_of_the_names_of_other_tables(
    tmp_path: Path,
) -> None:
    text = "table: t\nchecks:\n  a: {references: {columns: x, table: '${CATALOG:-dev}.shop.u'}}\n"

    (check,) = read(tmp_path, text, {"CATALOG": "prod"}).checks

    assert isinstance(check.test, References)
    assert str(check.test.table) == "prod.shop.u"


def test_a_selection_narrows_checks_as_it_narrows_rules(tmp_path: Path) -> None:
    """By the check's own tags and owner, and by those of its table."""
    declared = read(tmp_path, ORDERS)
    enough, unique, *_ = declared.checks

    assert Selection(tags=("Daily",)).has_rule(declared, enough)
    assert not Selection(tags=("daily",)).has_rule(declared, unique)
    assert Selection(owners=("logistics",)).has_rule(declared, enough)
    assert Selection(owners=("Sales",)).has_rule(declared, unique)


def test_a_check_of_a_batch_can_be_declared_again_from_what_it_is(tmp_path: Path) -> None:
    """As JSON, which is how a job on a cluster gets it."""
    declared = read(tmp_path, ORDERS)
    told = {one.name: declaration_of(one) for one in declared.batch}

    again = checks_given(declared.table, json.loads(json.dumps(told)))

    assert again == declared.batch


def test_checks_given_from_python_are_read_like_those_of_files() -> None:
    """With numbers as numbers; what is wrong is told with the check's name."""
    found = checks_given(
        "shop.orders",
        {"some": {"row_count": {"min": 1}}, "few": {"null_share": {"column": "a", "max": 0}}},
    )
    assert [one.test for one in found] == [RowCount(least=1), NullShare("a", Gate.parse(0))]

    with pytest.raises(DeclarationError, match="batch check 'some': unknown key 'row_cuont'"):
        checks_given("shop.orders", {"some": {"row_cuont": {"min": 1}}})


def check(*lines: str) -> str:
    """A table ``t`` with a rule ``a_ok`` and a check ``one``, whose entries start on line 6."""
    head = "table: t\nrules:\n  a_ok: {check: a > 0}\nchecks:\n  one:\n"
    return head + "".join(f"    {line}\n" for line in lines)


def batch(*lines: str) -> str:
    """The same with a check of a batch."""
    return check(*lines).replace("checks:", "batch:")


@dataclass(frozen=True)
class Malformed:
    """A file, the line at fault, and what must be said about it."""

    content: str
    line: int
    words: tuple[str, ...]
    schema_tells: bool = True


MALFORMED = {
    "nothing": Malformed(check("description: x"), 5, ("nothing to look at", "row_count")),
    "two tests": Malformed(
        check("unique: a", "row_count: {min: 1}"), 5, ("both row_count and unique", "two checks")
    ),
    "unknown key": Malformed(check("uniqe: a"), 6, ("'uniqe'", "Did you mean 'unique'?")),
    "another tool's key": Malformed(
        check("unique: a", "severity: warn"), 7, ("Did you mean 'on_failure'?",)
    ),
    "unknown key further in": Malformed(
        check("freshness: {colum: a, max_age: 1d}"), 6, ("'colum'", "Did you mean 'column'?")
    ),
    "missing key": Malformed(check("freshness: {column: a}"), 6, ("'max_age' is missing",)),
    "a bare check": Malformed(
        "table: t\nchecks:\n  one: unique\n", 3, ("must be a mapping", "row_count: ...")
    ),
    "a bare test": Malformed(check("row_count: 5"), 6, ("'row_count' must be a mapping",)),
    "no limit": Malformed(check("row_count: {}"), 6, ("neither min nor max",), False),
    "limits the wrong way": Malformed(
        check("row_count: {min: 2, max: 1}"), 6, ("min above its max",), False
    ),
    "a limit in words": Malformed(check("row_count: {min: many}"), 6, ("'min' must be a number",)),
    "negative limit": Malformed(check("row_count: {min: -1}"), 6, ("'min' must be a number",)),
    "age": Malformed(
        check("freshness: {column: a, max_age: soon}"), 6, ("'soon' is not a length of time", "26h")
    ),
    "no age at all": Malformed(
        check("freshness: {column: a, max_age: 0d}"), 6, ("not a length of time",), False
    ),
    "measure": Malformed(
        check("trend: {measure: median(a)}"), 6, ("'median(a)' is not a measure", "mean(x)")
    ),
    "measure of nothing": Malformed(check("trend: {measure: sum}"), 6, ("sum(amount)",)),
    "rows of something": Malformed(
        check("trend: {measure: row_count(a)}"), 6, ("without parentheses",)
    ),
    "measure with a sub-query": Malformed(
        check("trend: {measure: sum((SELECT 1))}"), 6, ("is not a measure",), False
    ),
    "window": Malformed(
        check("trend: {measure: row_count, last: 8 days}"), 6, ("8 weeks", "14 runs")
    ),
    "too short a window": Malformed(
        check("trend: {measure: row_count, last: 2 runs}"), 6, ("at least 3",), False
    ),
    "spreads": Malformed(
        check("trend: {measure: row_count, within: 0}"), 6, ("not a number above zero",)
    ),
    "no such rule": Malformed(
        check("trend: {measure: failure_share(a_okay)}"), 6, ("no rule 'a_okay'", "'a_ok'"), False
    ),
    "reconciled mean": Malformed(
        check("reconcile: {measure: mean(a), against: {table: u}}"),
        6,
        ("cannot compare mean(a)", "sum(x)"),
        False,
    ),
    "tolerance": Malformed(
        check("reconcile: {measure: row_count, against: {table: u}, tolerance: some}"),
        6,
        ("'some' is not a tolerance", "1%"),
    ),
    "other table": Malformed(
        check("references: {columns: a, table: u; DROP TABLE t}"),
        6,
        ("not the name of a table",),
        False,
    ),
    "variable not set": Malformed(
        check("reconcile:", "  measure: row_count", "  against: {table: '${NOWHERE}.u'}"),
        8,
        ("NOWHERE", ":-default"),
        False,
    ),
    "keys that do not match": Malformed(
        check("references: {columns: [a, b], table: u, keys: c}"),
        6,
        ("2 columns and 1 keys",),
        False,
    ),
    "nulls": Malformed(
        check("references: {columns: a, table: u, nulls: refuse}"), 6, ("Did you mean 'refused'?",)
    ),
    "where": Malformed(check("unique: a", "where: a >"), 7, ("where: 'a >'", "missing"), False),
    "where that is no condition": Malformed(
        check("unique: a", "where: a + 1"), 7, ("true or false is needed",), False
    ),
    "by a sub-query": Malformed(
        check("unique: a", "by: (SELECT 1)"), 7, ("by: '(SELECT 1)'",), False
    ),
    "by a constant": Malformed(check("unique: a", "by: '1'"), 7, ("reads no column",), False),
    "unique of nothing": Malformed(check("unique: []"), 6, ("'unique' is empty",)),
    "groups of the quarantine": Malformed(
        check("quarantine: {rows: 1}", "by: a"), 5, ("neither where nor by",), False
    ),
    "no limit of the quarantine": Malformed(
        check("quarantine: {}"), 6, ("neither rows nor oldest",), False
    ),
    "groups shown that are not there": Malformed(
        check("unique: a", "show_groups: true"), 5, ("no groups",), False
    ),
    "groups shown perhaps": Malformed(
        check("unique: a", "by: b", "show_groups: maybe"), 8, ("must be true or false",)
    ),
    "a table is not quarantined": Malformed(
        check("unique: a", "on_failure: quarantine"), 7, ("is not fail or warn", "fail, warn")
    ),
    "name of a rule": Malformed(
        "table: t\nrules:\n  a_ok: {check: a > 0}\nchecks:\n  A_OK: {unique: a}\n",
        5,
        ("a rule (", "line 3) has this name"),
        False,
    ),
    "name of a check": Malformed(
        "table: t\nbatch:\n  one: {unique: a}\nchecks:\n  one: {unique: a}\n",
        5,
        ("a check (", "line 3) has this name"),
        False,
    ),
    "name that ends a statement": Malformed(
        "table: t\nchecks:\n  'a;b': {unique: a}\n", 3, ("not a name for a rule",), False
    ),
    "batch: nothing": Malformed(batch("tags: [x]"), 5, ("batch check 'one'", "nothing to look")),
    "batch: not empty, or is it": Malformed(batch("not_empty: false"), 5, ("asks for",), False),
    "batch: no such rule": Malformed(
        batch("broken_share: {rule: b_ok, max: 1%}"), 6, ("Did you mean 'a_ok'?",), False
    ),
    "batch: share": Malformed(
        batch("null_share: {column: a, max: 101%}"), 6, ("'101%' is not a gate",), False
    ),
    "batch: no columns": Malformed(batch("columns: {}"), 6, ("'columns' is empty",)),
    "batch: a table's test": Malformed(batch("freshness: {column: a, max_age: 1d}"), 6, ("fresh",)),
    "batch: half of a requirement": Malformed(
        batch("requires: {table: u, column: a}"), 6, ("only one of column and max_age",), False
    ),
    "batch: two figures": Malformed(
        batch("reconcile: {measure: row_count, figure: n, against: {table: u}}"),
        6,
        ("both against and figure",),
        False,
    ),
    "batch: no figure": Malformed(
        batch("reconcile: {measure: row_count}"), 6, ("neither against nor figure",), False
    ),
    "a rule set with checks": Malformed(
        "rules: {}\nchecks: {one: {unique: a}}\n", 2, ("'checks' belongs to a table",)
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_check_is_refused_with_its_line_and_what_to_do(
    tmp_path: Path, name: str
) -> None:
    """And editors refuse it too, where the schema can tell."""
    case = MALFORMED[name]
    with pytest.raises(DeclarationError) as raised:
        read(tmp_path, case.content)

    problem = raised.value
    assert (problem.path, problem.line) == (tmp_path / "orders.yml", case.line)
    assert problem.hint
    for word in case.words:
        assert word in str(problem)
    assert accepts(yaml.safe_load(case.content)) != case.schema_tells


def test_the_error_names_the_check(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match="Table t, check 'one': unknown key") as raised:
        read(tmp_path, check("uniqe: a"))

    assert (raised.value.table, raised.value.rule) == ("t", "one")


@pytest.mark.parametrize("text", [ORDERS, check("unique: [a]"), batch("not_empty: true")])
def test_what_the_reader_takes_the_schema_accepts(tmp_path: Path, text: str) -> None:
    read(tmp_path, text)

    assert accepts(yaml.safe_load(text))


@pytest.mark.parametrize("example", TABLE_TESTS.values())
def test_the_examples_of_the_messages_are_checks_of_tables(tmp_path: Path, example: str) -> None:
    assert len(read(tmp_path, check(example)).checks) == 1


@pytest.mark.parametrize("example", BATCH_TESTS.values())
def test_the_examples_of_the_messages_are_checks_of_batches(tmp_path: Path, example: str) -> None:
    text = batch(example).replace("a_ok", "amount_positive")

    assert len(read(tmp_path, text).batch) == 1


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90m", timedelta(minutes=90)),
        ("26 h", timedelta(hours=26)),
        ("7d", timedelta(7)),
        ("2W", timedelta(14)),
    ],
)
def test_ages_are_minutes_hours_days_or_weeks(text: str, length: timedelta) -> None:
    assert Age.parse(text).length == length


def test_a_tolerance_is_a_number_or_a_share_of_the_other_figure() -> None:
    """The limit itself is allowed."""
    assert Tolerance.parse("0.1").allows(Fraction(10), Fraction(101, 10))
    assert not Tolerance.parse("0.1").allows(Fraction(10), Fraction(1011, 100))
    assert Tolerance.parse("10%").allows(Fraction(90), Fraction(100))
    assert not Tolerance.parse("10%").allows(Fraction(-89), Fraction(-100))
    assert Tolerance.parse("0").allows(Fraction(1, 3), Fraction(1, 3))
