"""What stands behind a guard is evaluated only where the guard lets it, as Delta does.

Compiled code computes first what occurs twice in a projection. Kind of bug: a batch that Delta
would take, or whose bad rows it names, ended in a division by zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from pyspark.sql import DataFrame, SparkSession

import deltacheck
from tests.harness import guarded
from tests.harness.marks import connect_is_slow
from tests.writing.batches import make_table, record

pytestmark = pytest.mark.usefixtures("compiled")

each_kind = pytest.mark.parametrize("rules", guarded.RULES.values(), ids=guarded.RULES)


def rows(session: SparkSession) -> DataFrame:
    """Three good rows, one of which the guard is for, and one that breaks ``large``."""
    return session.createDataFrame([(0, 1), (5, 2), (20, 3), (2, 4)], guarded.COLUMNS)


def numbers(session: SparkSession, table: str) -> list[int]:
    return sorted(row["b"] for row in session.table(table).collect())


@connect_is_slow
@each_kind
def test_bad_rows_are_split_off(
    any_spark: SparkSession, database: str, rules: Mapping[str, str]
) -> None:
    table = make_table(any_spark, f"{database}.t", guarded.COLUMNS, rules)
    result = deltacheck.write(rows(any_spark), table, route="rows")
    assert result.broken == {"large": 1}
    assert numbers(any_spark, table) == [1, 2, 4]
    assert numbers(any_spark, f"{table}_quarantine") == [3]


@each_kind
def test_a_batch_is_quarantined_whole(
    spark: SparkSession, database: str, rules: Mapping[str, str]
) -> None:
    table = make_table(spark, f"{database}.t", guarded.COLUMNS, rules)
    result = deltacheck.write(rows(spark), table)
    assert (result.rule, result.broken) == ("large", {"large": 1})
    held = spark.table(f"{table}_quarantine").collect()
    assert Counter(tuple(row["_deltacheck_rules"]) for row in held) == {(): 3, ("large",): 1}


@each_kind
def test_rows_are_judged(spark: SparkSession, database: str, rules: Mapping[str, str]) -> None:
    table = make_table(spark, f"{database}.t", guarded.COLUMNS, rules)
    judged = deltacheck.judge(rows(spark), table).collect()
    assert {row["b"]: row["_deltacheck_rules"] for row in judged} == {
        1: [],
        2: [],
        3: ["large"],
        4: [],
    }


@connect_is_slow
@each_kind
def test_warn_rules_do_not_stop_a_job(
    any_spark: SparkSession, database: str, rules: Mapping[str, str]
) -> None:
    """They are counted while the batch is written."""
    table = make_table(any_spark, f"{database}.t", guarded.COLUMNS, {})
    warned = {name: {"check": sql, "on_violation": "warn"} for name, sql in rules.items()}
    result = deltacheck.write(rows(any_spark), table, rules=warned)
    assert (result.route, result.broken) == ("clean", {"large": 1})
    assert numbers(any_spark, table) == [1, 2, 3, 4]


@each_kind
def test_the_rows_of_a_guarded_action_are_told_apart(
    spark: SparkSession, database: str, rules: Mapping[str, str]
) -> None:
    table = make_table(spark, f"{database}.t", guarded.COLUMNS, rules)
    result = deltacheck.guard(
        rows(spark), table, lambda df: df.write.insertInto(table), route="rows"
    )
    assert result.broken == {"large": 1}
    assert numbers(spark, table) == [1, 2, 4]


@each_kind
def test_a_check_counts_rules_that_wait_for_their_migration(
    spark: SparkSession, database: str, rules: Mapping[str, str]
) -> None:
    """A quarter of the rows breaks a rule: that is what the check allows."""
    table = make_table(spark, f"{database}.t", guarded.COLUMNS, {})
    record(spark, table, {name: {"check": sql} for name, sql in rules.items()})
    check = {"broken_share": {"max": "25%"}}
    result = deltacheck.write(rows(spark), table, checks={"c": check})
    assert (result.checks, numbers(spark, table)) == ({}, [1, 2, 3, 4])


def test_the_predicate_of_what_is_replaced(spark: SparkSession, database: str) -> None:
    """Rows that lie outside of it are told apart from rows that break a rule."""
    table = make_table(spark, f"{database}.t", guarded.COLUMNS, {"b_small": "b < 4"})
    spark.sql(f"INSERT INTO {table} VALUES (2, 1)")
    where = "a = 0 OR a < 3 AND a > 0"
    result = deltacheck.write(
        rows(spark).where("b IN (1, 4)"), table, mode="overwrite", replace_where=where, route="rows"
    )
    assert result.broken == {"b_small": 1}
    assert numbers(spark, table) == [1]
