"""What lint says about expressions: each code fires where it should and is silent elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltacheck.lint import lint_project
from deltacheck.rules.given import rules_given
from tests.lint.projects import lint, lint_check, rule_file

FIRES = [
    ("DC101", "amount > 0"),
    ("DC101", "length(trim(note)) > 3"),
    ("DC101", "address.zip > 0"),
    ("DC101", "a > 1 AND b IS NULL"),
    ("DC102", "ratio > 0"),
    ("DC102", "0.5 <= ratio"),
    ("DC102", "ratio > 0 AND other < 5"),
    ("DC103", "a = NULL"),
    ("DC103", "a <> NULL OR b = 1"),
    ("DC103", "a > (NULL)"),
    ("DC104", "a NOT IN (1, NULL)"),
    ("DC104", "NOT (a IN (1, NULL))"),
    ("DC105", "a IN (1, NULL)"),
    ("DC106", "a = 1 OR b = 1 AND c = 1"),
    ("DC106", "a = 1 AND b = 1 OR c = 1"),
    ("DC106", "d = 1 AND (a = 1 OR b = 1 AND c = 1)"),
    ("DC107", "at >= TIMESTAMP '2024-01-01 00:00:00'"),
    ("DC107", "at >= TIMESTAMP '2024-01-01'"),
    ("DC107", "at >= CAST('2024-01-01 10:00' AS TIMESTAMP)"),
    ("DC107", "at >= to_timestamp('2024-01-01 10:00:00')"),
    ("DC107", "at >= '2024-01-01 10:00:00'"),
    ("DC107", "at BETWEEN '2024-01-01 10:00:00' AND '2024-01-02 10:00:00'"),
    ("DC108", "expires_on > current_date()"),
    ("DC108", "placed_on >= current_date"),
    ("DC108", "NOT (placed_on > current_date())"),
    ("DC108", "datediff(current_date(), placed_on) < 30"),
    ("DC108", "at <= now() OR a = 1"),
    ("DC108", "at <= current_timestamp() AND at > now() - INTERVAL 1 DAY"),
    ("DC108", "at > localtimestamp()"),
    ("DC109", "note <> 'it''s'"),
    ("DC110", "a > 10 AND a < 5"),
    ("DC110", "a = 1 AND a = 2"),
    ("DC110", "a BETWEEN 10 AND 5"),
    ("DC110", "1 = 2"),
    ("DC111", "status <> 'lost' OR status <> 'sent'"),
    ("DC111", "a > 0 OR a < 10"),
    ("DC111", "1 = 1"),
    ("DC111", "a IS NULL OR a IS NOT NULL"),
    ("DC112", "CAST(a AS BIGINT) > 10"),
    ("DC112", "a::string = '5'"),
    ("DC113", "total / pieces > 0.5"),
    ("DC113", "code LIKE 'a\\\\_%'"),
    ("DC114", "year(placed_on) > 2020"),
    ("DC114", "code RLIKE '^a'"),
    ("DC114", "a DIV 2 = 1"),
]

SILENT = [
    ("DC101", "a IS NULL OR a > 0"),
    ("DC101", "a IS NOT NULL AND a > 0"),
    ("DC101", "coalesce(a, 0) >= 0"),
    ("DC101", "a <=> 5"),
    ("DC101", "isnotnull(a) AND a > 5"),
    ("DC101", "a > 0 OR b > 0"),
    ("DC101", "address IS NOT NULL AND address.zip > 0"),
    ("DC101", "a = NULL"),
    ("DC102", "ratio > 0 AND ratio < 1"),
    ("DC102", "ratio BETWEEN 0 AND 1"),
    ("DC102", "ratio > 0 AND NOT isnan(ratio)"),
    ("DC102", "ratio < 5"),
    ("DC102", "placed_on > DATE '2024-01-01'"),
    ("DC102", "length(note) > 3"),
    ("DC103", "a IS NULL OR a <=> NULL"),
    ("DC103", "a = 'NULL'"),
    ("DC104", "a NOT IN (1, 2)"),
    ("DC104", "a IN (1, NULL)"),
    ("DC105", "a IN (1, 2) OR a IS NULL"),
    ("DC105", "a NOT IN (1, NULL)"),
    ("DC106", "a = 1 OR (b = 1 AND c = 1)"),
    ("DC106", "a BETWEEN 1 AND 5 OR b = 1"),
    ("DC107", "at >= TIMESTAMP '2024-01-01 00:00:00Z'"),
    ("DC107", "at >= TIMESTAMP '2024-01-01 00:00:00+02:00'"),
    ("DC107", "at >= TIMESTAMP '2024-01-01 00:00:00 UTC'"),
    ("DC107", "at >= TIMESTAMP '2024-01-01 00:00:00 Europe/Berlin'"),
    ("DC107", "at >= TIMESTAMP_NTZ '2024-01-01 00:00:00'"),
    ("DC107", "on_day >= DATE '2024-01-01' AND on_day < '2025-01-01'"),
    ("DC108", "placed_on <= current_date()"),
    ("DC108", "current_timestamp() >= at AND a > 0"),
    ("DC108", "placed_on < current_date() + INTERVAL 1 DAY"),
    ("DC108", "placed_on <= date_add(current_date(), 7)"),
    ("DC108", "seen <= now()"),
    ("DC108", "placed_on > DATE '2024-01-01'"),
    ("DC109", "note <> 'its' AND note <> ''"),
    ("DC109", "note <> 'it\\'s'"),
    ("DC110", "a > 5 AND a < 10"),
    ("DC110", "a = NULL"),
    ("DC111", "a > 10 OR a < 0"),
    ("DC111", "a IN (1, NULL)"),
    ("DC112", "a > 10 AND CAST(a AS BIGINT) > b"),
    ("DC112", "d >= DATE '2024-01-01'"),
    ("DC113", "status = \"paid\" AND note <> 'a' 'b'"),
    ("DC113", "total * 2 > pieces"),
    ("DC114", "extract(YEAR FROM placed_on) > 2020"),
    ("DC114", "note <> 'year(x) RLIKE DIV'"),
]


@pytest.mark.parametrize(("code", "check"), FIRES)
def test_a_lint_fires(tmp_path: Path, code: str, check: str) -> None:
    assert code in lint_check(tmp_path, check)


@pytest.mark.parametrize(("code", "check"), SILENT)
def test_a_lint_is_silent(tmp_path: Path, code: str, check: str) -> None:
    assert code not in lint_check(tmp_path, check)


@pytest.mark.parametrize(("code", "check"), {code: (code, check) for code, check in FIRES}.values())
def test_a_comment_silences_the_lint_and_no_other(tmp_path: Path, code: str, check: str) -> None:
    file = "constraints/orders.yml"
    silenced = rule_file(check, comment=f"deltacheck: ignore[{code}]")
    other = rule_file(check, comment="deltacheck: ignore[DC999]")

    before = lint(tmp_path, {file: rule_file(check)})
    assert lint(tmp_path, {file: silenced}) == tuple(one for one in before if one.code != code)
    assert lint(tmp_path, {file: other}) == before


def test_null_is_no_surprise_where_another_rule_keeps_it_out(tmp_path: Path) -> None:
    """A NOT NULL rule on the column, or on the struct around it, says that it is meant."""
    present = "  id_present:\n    not_null: {column}\n"

    assert "DC101" not in lint_check(tmp_path, "id > 0", more=present.format(column="ID"))
    assert "DC101" not in lint_check(tmp_path, "a.b > 0", more=present.format(column="a"))
    assert "DC101" in lint_check(tmp_path, "id > 0", more=present.format(column="other"))


def test_a_rule_that_is_only_measured_keeps_no_null_out(tmp_path: Path) -> None:
    more = "  id_present:\n    not_null: id\n    on_violation: warn\n"

    assert "DC101" in lint_check(tmp_path, "id > 0", more=more)


def test_one_finding_names_all_columns_whose_null_breaks_the_rule(tmp_path: Path) -> None:
    found = lint(tmp_path, {"constraints/orders.yml": rule_file("a < 1 AND `b c` < 1")})

    (finding,) = [one for one in found if one.code == "DC101"]
    assert finding.message == "A row with NULL in a or `b c` breaks this rule."
    assert "IS NULL OR" in finding.remedy
    assert "IS NOT NULL AND" in finding.remedy


def test_nan_does_not_pass_where_another_enforced_rule_sets_an_upper_limit(tmp_path: Path) -> None:
    limit = "  ratio_small:\n    check: ratio <= 1\n"

    assert "DC102" not in lint_check(tmp_path, "ratio > 0", more=limit)
    assert "DC102" in lint_check(tmp_path, "ratio > 0", more=limit + "    on_violation: warn\n")


@pytest.mark.parametrize(
    ("kind", "fires"), [("double", True), ("FLOAT", True), ("int", False), ("decimal(10,2)", False)]
)
def test_only_floating_point_has_nan(tmp_path: Path, kind: str, fires: bool) -> None:
    assert ("DC102" in lint_check(tmp_path, "ratio > 0", types={"Ratio": kind})) is fires


@pytest.mark.parametrize(
    ("kind", "check", "fires"),
    [
        ("timestamp", "at >= '2024-01-01'", True),
        ("timestamp", "at >= '2024-01-01 10:00:00'", True),
        ("timestamp_ntz", "at >= '2024-01-01 10:00:00'", False),
        ("string", "at >= '2024-01-01 10:00:00'", False),
    ],
)
def test_the_columns_type_says_whether_a_string_is_a_point_in_time(
    tmp_path: Path, kind: str, check: str, fires: bool
) -> None:
    assert ("DC107" in lint_check(tmp_path, check, types={"at": kind})) is fires


def test_delta_rs_tells_the_case_of_columns_apart(tmp_path: Path) -> None:
    assert "DC114" in lint_check(tmp_path, "Amount < 0", types={"amount": "int"})
    assert "DC114" not in lint_check(tmp_path, "amount < 0", types={"amount": "int"})


def test_what_delta_stores_matters_only_for_rules_that_delta_enforces(tmp_path: Path) -> None:
    text = rule_file("year(d) / 2 > 5 AND d > current_date()", name="Odd Name")

    found = lint(tmp_path, {"constraints/orders.yml": text + "    on_violation: warn\n"})

    assert not {one.code for one in found} & {"DC108", "DC113", "DC114", "DC202", "DC203"}


def test_rules_from_python_are_looked_at_without_a_file() -> None:
    rules = rules_given("shop.orders", {"check_1": "a = NULL"})

    found = lint_project({rules.table: rules})

    assert {one.code for one in found} == {"DC103", "DC201"}
    assert {(one.path, one.line, one.table) for one in found} == {(None, None, "shop.orders")}


def test_a_not_null_rule_has_nothing_wrong_with_it(tmp_path: Path) -> None:
    text = "table: t\nrules:\n  id_present:\n    not_null: id\n"

    assert lint(tmp_path, {"constraints/t.yml": text}) == ()


def test_what_sqlglot_cannot_read_is_left_alone(tmp_path: Path) -> None:
    """A column called ``use`` is a rule to Spark and the start of a statement to sqlglot."""
    assert lint_check(tmp_path, "use") == []


def test_a_chain_of_a_thousand_parts_is_read_to_its_end(tmp_path: Path) -> None:
    chain = " OR ".join(f"a = {number}" for number in range(1500))

    assert lint_check(tmp_path, chain) == ["DC101"]
    assert "DC110" in lint_check(tmp_path, chain.replace("OR", "AND"))
