"""Columns that changed since, that Delta computes, or that have a length: what goes back then."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from deltacheck import quarantine
from deltacheck.delta.failures import LENGTH_RULE
from deltacheck.errors import QuarantineError
from tests.quarantine.held import hold, make_table, rows, states

pytestmark = pytest.mark.slow


@pytest.fixture
def table(database: str) -> str:
    """The name of a table that the test makes."""
    return f"{database}.orders"


def test_a_value_of_an_older_type_goes_back_if_it_fits(spark: SparkSession, table: str) -> None:
    """A text that is a number does; one that is not waits for a repair."""
    make_table(spark, table, "id BIGINT, amount STRING", {"some": "amount IS NOT NULL"})
    hold(spark, table, "(1, '5'), (2, 'five'), (3, '9')", columns=("id", "amount"))
    spark.sql(f"CREATE OR REPLACE TABLE {table} (id BIGINT, amount INT, note STRING) USING delta")
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT small CHECK (amount < 9)")

    done = quarantine.release(table, session=spark)

    assert (done.rows, done.unfit, done.kept) == (1, 1, 1)
    assert rows(spark, table, "id, amount, note") == {(1, 5, None): 1}
    assert states(spark, table) == {1: "released", 2: "held", 3: "held"}

    done = quarantine.release(table, repairs=["amount = 0"], where="amount IS NULL", session=spark)

    assert done.rows == 1
    assert rows(spark, table, "id, amount") == {(1, 5): 1, (2, 0): 1}


def test_a_repair_to_null_does_not_bring_an_older_value_back(
    spark: SparkSession, table: str
) -> None:
    """Kind of bug: the value of the older type was read where the repaired one was NULL."""
    make_table(spark, table, "id BIGINT, amount STRING", {"some": "amount IS NOT NULL"})
    hold(spark, table, "(1, '5'), (2, '7')", columns=("id", "amount"))
    spark.sql(f"CREATE OR REPLACE TABLE {table} (id BIGINT, amount INT) USING delta")
    done = quarantine.release(table, repairs=["amount = nullif(amount, 5)"], session=spark)
    assert done.rows == 2
    assert rows(spark, table, "id, amount") == {(1, None): 1, (2, 7): 1}


def test_a_row_that_waits_for_its_type_keeps_its_reason(spark: SparkSession, table: str) -> None:
    """It breaks no rule of today, and must still be found by the rule that it broke."""
    make_table(spark, table, "id BIGINT, amount STRING", {"some": "amount > 'a'"})
    hold(spark, table, "(1, 'a')", columns=("id", "amount"))
    spark.sql(f"CREATE OR REPLACE TABLE {table} (id BIGINT, amount INT) USING delta")
    assert quarantine.release(table, session=spark).unfit == 1
    assert rows(spark, f"{table}_quarantine", "id, _deltacheck_rules[0]") == {(1, "some"): 1}


def test_a_value_of_a_column_that_is_gone_stays_behind_and_is_counted(
    spark: SparkSession, table: str
) -> None:
    """It is still in the quarantine."""
    make_table(spark, table)
    hold(spark, table, "(1, 5, 'new'), (2, 5, NULL)")
    spark.sql(f"CREATE OR REPLACE TABLE {table} (id BIGINT, amount INT) USING delta")

    done = quarantine.release(table, session=spark)

    assert (done.rows, done.left_out) == (2, {"status": 1})
    assert rows(spark, f"{table}_quarantine", "id, status") == {(1, "new"): 1, (2, None): 1}


def test_columns_that_delta_computes_are_computed_anew(any_spark: SparkSession, table: str) -> None:
    """An identity gets new values, a generated column those that follow from the repaired row."""
    columns = (
        "id BIGINT GENERATED ALWAYS AS IDENTITY, at TIMESTAMP, `the day` DATE "
        "GENERATED ALWAYS AS (CAST(at AS DATE)), amount INT NOT NULL"
    )
    more = "PARTITIONED BY (`the day`) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    make_table(any_spark, table, columns, {"late": "at > TIMESTAMP '2020-01-01'"}, more)
    any_spark.sql(f"INSERT INTO {table} (at, amount) VALUES (TIMESTAMP '2026-01-01 10:00:00', 1)")
    hold(
        any_spark,
        table,
        "(7, TIMESTAMP '2026-01-02 10:00:00', DATE '2026-01-02', 2), "
        "(8, TIMESTAMP '2010-01-03 10:00:00', DATE '2010-01-03', 3), "
        "(9, TIMESTAMP '2026-01-04 10:00:00', CAST(NULL AS DATE), CAST(NULL AS INT))",
        columns=("id", "at", "`the day`", "amount"),
    )

    done = quarantine.release(table, repairs=["at = at + INTERVAL '16' YEAR"], session=any_spark)

    assert (done.rows, done.kept, done.broken) == (2, 1, {"amount_not_null": 1})
    assert rows(any_spark, table, "amount, CAST(`the day` AS STRING)") == {
        (1, "2026-01-01"): 1,
        (2, "2042-01-02"): 1,
        (3, "2026-01-03"): 1,
    }
    assert len(rows(any_spark, table, "id")) == 3


def test_a_text_that_is_too_long_waits_for_a_repair(spark: SparkSession, table: str) -> None:
    """Delta refuses it, so it is judged by its length as well."""
    make_table(spark, table, "id BIGINT, code VARCHAR(4)", {})
    hold(spark, table, "(1, 'abcd'), (2, 'abcdef'), (3, NULL)", columns=("id", "code"))

    first = quarantine.release(table, session=spark)
    assert (first.rows, first.broken) == (2, {LENGTH_RULE: 1})

    second = quarantine.release(table, repairs=["code = left(code, 4)"], session=spark)
    assert second.rows == 1
    assert rows(spark, table, "id, code") == {(1, "abcd"): 1, (2, "abcd"): 1, (3, None): 1}


def test_what_only_delta_can_judge_it_judges(any_spark: SparkSession, table: str) -> None:
    """A constraint with a lambda: if a row breaks it, nothing is released, and all is held."""
    more = "TBLPROPERTIES ('delta.constraints.tagged' = 'exists(tags, t -> t = 1)')"
    make_table(any_spark, table, "id BIGINT, tags ARRAY<INT>", {}, more)
    hold(any_spark, table, "(1, array(1)), (2, array(2))", columns=("id", "tags"))

    with pytest.raises(QuarantineError) as refusal:
        quarantine.release(table, session=any_spark)

    assert refusal.value.rule == "tagged"
    assert states(any_spark, table) == {1: "held", 2: "held"}
    assert quarantine.release(table, where="id = 1", session=any_spark).rows == 1
    assert rows(any_spark, table) == {(1,): 1}


def test_a_row_on_which_a_rule_cannot_be_evaluated_stops_the_release(
    spark: SparkSession, table: str
) -> None:
    """Nothing is claimed; the error does not show the value."""
    make_table(spark, table, "id BIGINT, code STRING", {"number": "CAST(code AS INT) > 0"})
    hold(spark, table, "(1, 5)", columns=("id", "code"))
    spark.sql(f"UPDATE {table}_quarantine SET code = 'secret'")

    with pytest.raises(QuarantineError, match="CAST_INVALID_INPUT") as refusal:
        quarantine.release(table, session=spark)

    assert "secret" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert states(spark, table) == {1: "held"}
