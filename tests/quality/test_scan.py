"""Checks become SQL in as few passes over the table as can be."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from sqlglot import parse_one

from deltacheck.quality.figures import Figures
from deltacheck.quality.scan import (
    ALL,
    MOST_GROUPS,
    Pass,
    Query,
    Wanted,
    figures,
    queries,
    violators,
    wanted,
)
from deltacheck.rules.checks import TableCheck
from deltacheck.rules.files import read_rules

RULES = {"amount_ok": "amount > 0"}


def checks(folder: Path, *lines: str) -> list[TableCheck]:
    """Checks of a table ``t``, declared in lines; the first is called ``c0``."""
    listed = "".join(f"  c{place}: {{{line}}}\n" for place, line in enumerate(lines))
    text = f"table: t\nrules: {{Amount_OK: {{check: amount > 0}}}}\nchecks:\n{listed}"
    (folder / "t.yml").write_text(text, encoding="utf-8")
    (declared,) = read_rules(folder).values()
    return list(declared.checks)


def asked(folder: Path, *lines: str) -> tuple[Query, ...]:
    """The queries of some checks."""
    return queries(part for check in checks(folder, *lines) for part in wanted(check, "`t`", RULES))


EVERY_TEST = (
    "row_count: {min: 1}",
    "unique: [a, b]",
    "references: {columns: a, table: s.u, keys: k}",
    "freshness: {column: ts, max_age: 1d}",
    "reconcile: {measure: sum(x), against: {table: s.u, where: y > 1}}",
    "trend: {measure: row_count}",
    "trend: {measure: sum(x)}",
    "trend: {measure: mean(x)}",
    "trend: {measure: null_share(x)}",
    "trend: {measure: failure_share(amount_OK)}",
    "trend: {measure: shares(x)}",
)


@pytest.mark.parametrize("more", ["", ", where: z = 1 OR z = 2", ", by: [g, date(ts)]"])
@pytest.mark.parametrize("test", EVERY_TEST)
def test_each_check_becomes_sql_that_can_be_parsed(tmp_path: Path, test: str, more: str) -> None:
    found = asked(tmp_path, test + more)

    assert found
    for query in found:
        assert parse_one(query.sql, dialect="spark").sql()
        assert query.names == ("c0",)


def test_checks_without_groups_share_one_pass_with_the_counts_of_violators(tmp_path: Path) -> None:
    parts = [
        part
        for check in checks(
            tmp_path,
            "row_count: {min: 1}",
            "freshness: {column: ts, max_age: 1d}",
            "trend: {measure: sum(x)}, where: z > 1",
            "trend: {measure: null_share(x)}",
        )
        for part in wanted(check, "`t`", RULES)
    ]

    (query,) = queries([*parts, violators("r", ["x > 0"], "`t`")])

    assert query.names == ("c0", "c1", "c2", "c3", "r")
    assert query.aggregates.count("count(*)") == 1
    assert "WHERE (NOT" not in query.sql
    assert query.sql.endswith("FROM `t` AS _deltacheck")


def test_checks_by_the_same_groups_share_a_pass(tmp_path: Path) -> None:
    found = asked(
        tmp_path,
        "row_count: {min: 1}, by: g",
        "trend: {measure: sum(x)}, by: g",
        "trend: {measure: sum(x)}, by: [g, h]",
    )

    assert [query.names for query in found] == [("c0", "c1"), ("c2",)]
    assert found[0].sql.endswith(f"FROM `t` AS _deltacheck GROUP BY (g) LIMIT {MOST_GROUPS + 1}")
    assert found[0].grouped


def test_the_same_aggregate_is_computed_once(tmp_path: Path) -> None:
    (query,) = asked(
        tmp_path, "trend: {measure: sum(x)}", "trend: {measure: sum( x ), last: 8 weeks}"
    )

    assert query.aggregates == ("count(*)", "sum(x)")


def test_files_can_be_skipped_where_all_checks_look_at_a_part_of_the_rows(tmp_path: Path) -> None:
    (query,) = asked(
        tmp_path,
        "row_count: {min: 1}, where: z = 1",
        "trend: {measure: sum(x)}, where: z = 2",
    )

    assert query.sql.endswith("FROM `t` AS _deltacheck WHERE (z = 1) OR (z = 2)")
    assert query.aggregates == (
        "count_if((z = 1))",
        "count_if((z = 2))",
        "sum(x) FILTER (WHERE z = 2)",
    )


def test_a_group_none_of_whose_rows_matter_is_still_there(tmp_path: Path) -> None:
    """That a region sold nothing yesterday is what a row count by region is for."""
    (query,) = asked(tmp_path, "row_count: {min: 1}, where: z = 1, by: g")

    assert "count_if((z = 1))" in query.sql
    assert "WHERE" not in query.sql


def test_rows_dated_later_than_now_do_not_make_a_table_fresh(tmp_path: Path) -> None:
    (query,) = asked(tmp_path, "freshness: {column: ts, max_age: 1d}, where: z = 1")

    assert "<= current_timestamp() AND (z = 1)" in query.sql


def test_figures_of_several_passes_come_together_by_check_and_group() -> None:
    """A group that only one pass has keeps what that says."""
    shared = Wanted("c", Pass("t", ("g",)), {"rows": "count(*)", "value": "sum(x)"})
    own = Wanted("c", Pass("(SELECT 1)", ("b0",)), {"failed": "sum(n)"})
    one, two = queries([shared, own])

    found = figures([(one, [("a", 3, Decimal("1.5")), ("b", 2, None)]), (two, [("a", 2)])])

    assert found == {
        "c": {"a": Figures(rows=3, value=Fraction(3, 2), failed=2), "b": Figures(rows=2)}
    }


def test_without_groups_there_is_one() -> None:
    (query,) = queries([violators("r", ["x > 0"], "t")])

    assert figures([(query, [(10, 4)])]) == {"r": {ALL: Figures(rows=10, failed=4)}}


def test_a_sum_that_is_no_number_is_told_apart_from_none() -> None:
    (query,) = queries([Wanted("c", Pass("t"), {"value": "sum(x)"})])

    assert figures([(query, [(float("nan"),)])])["c"][ALL] == Figures(undefined=True)
    assert figures([(query, [(None,)])])["c"][ALL] == Figures()
