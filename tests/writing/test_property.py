"""Whatever the batch and the rules: the split by rows is Delta's own, rule by rule.

Delta is the oracle. That ``ADD CONSTRAINT`` counts on all rows what is labelled with a rule,
and takes the rows that are not, proves the two sets equal; and each bad row by itself is
refused by the table.
"""

from __future__ import annotations

import math
from collections import Counter
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import deltacheck
from deltacheck.delta.failures import EngineFailure, new_constraint_violators, violation_of
from deltacheck.delta.log import quiet_query_loggers
from deltacheck.names import literal
from tests.writing.batches import make_table, plain_append

COLUMNS = "id INT, a INT, b STRING, c DOUBLE, d DATE"
RULES = (
    "a > 0",
    "a IS NOT NULL",
    "b IN ('x', 'y')",
    "b IN ('x', NULL)",
    "a > 0 OR b IS NULL",
    "length(b) < 3 AND a < 100",
    "NOT (a = 5)",
    "c = c",
    "c < 10 OR c > 10",
    "coalesce(a, 0) % 2 = 0",
    "b LIKE 'x%'",
    "a <=> 5 OR a > c",
    "CASE WHEN a > 0 THEN b IS NOT NULL END",
    "d >= DATE'2026-01-01'",
    "b = 'it\\'s'",
    "try_cast(c AS INT) = a OR c IS NULL",
    # What two rules, or one of them twice, evaluate behind a guard.
    "a = 0 OR 10 DIV a < 3",
    "a = 0 OR (10 DIV a > -3 AND 10 DIV a < 9)",
)
Rows = list[tuple[object, ...]]

pytestmark = pytest.mark.usefixtures("compiled")

rows = st.lists(
    st.tuples(
        st.one_of(st.none(), st.sampled_from([0, 1, 5, -5, 100, 2**31 - 1])),
        st.one_of(st.none(), st.sampled_from(["x", "y", "xyz", "", "it's", "ä"])),
        st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, 10.0, math.nan, 5.0])),
        st.one_of(st.none(), st.sampled_from(["2025-12-31", "2026-01-01"])),
    ),
    max_size=8,
)
rules = st.lists(st.sampled_from(RULES), min_size=1, max_size=4, unique=True)
# Delta casts a batch to the table's types before it checks rows.
types = st.sampled_from(["INT", "BIGINT", "DECIMAL(12, 2)"])


ON_SPARK = settings(
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def frame(session: SparkSession, found: Rows, a: str = "INT") -> DataFrame:
    """Rows as a DataFrame."""
    made = session.createDataFrame(found, "id INT, a INT, b STRING, c DOUBLE, d STRING")
    return made.selectExpr("id", f"CAST(a AS {a}) AS a", "b", "c", "CAST(d AS DATE) AS d")


def check(session: SparkSession, database: str, found: Rows, texts: list[str], a: str) -> None:
    """Write a batch by rows, and ask Delta whether each row is where it belongs."""
    name = f"{database}.t{uuid4().hex[:8]}"
    named = {f"rule_{number}": text for number, text in enumerate(texts)}
    properties = ", ".join(
        f"'delta.constraints.{rule}' = {literal(text)}" for rule, text in named.items()
    )
    session.sql(f"CREATE TABLE {name} ({COLUMNS}) USING delta TBLPROPERTIES ({properties})")
    numbered = [(number, *row) for number, row in enumerate(found)]
    batch, fitting = frame(session, numbered, a), frame(session, numbered)

    result = deltacheck.write(batch, name, route="rows")

    good = {row["id"] for row in session.table(name).collect()}
    held = (
        {
            row["id"]: set(row["_deltacheck_rules"])
            for row in session.table(f"{name}_quarantine").collect()
        }
        if result.quarantined
        else {}
    )
    assert Counter([*good, *held]) == Counter(range(len(found)))
    assert all(held.values())
    assert result.broken == Counter(rule for broken in held.values() for rule in broken)
    for rule, text in named.items():
        labelled = [number for number, broken in held.items() if rule in broken]
        everything = make_table(session, f"{name}_all_{rule}", COLUMNS, {})
        plain_append(fitting, everything)
        add = f"ALTER TABLE {everything} ADD CONSTRAINT {rule} CHECK ({text})"
        counted = 0
        try:
            with quiet_query_loggers():
                session.sql(add)
        except EngineFailure as error:
            violators = new_constraint_violators(error)
            assert violators is not None, f"{rule}: {text}"
            counted = violators
            wrong = ", ".join(map(str, labelled))
            session.sql(f"DELETE FROM {everything} WHERE id IN ({wrong})")
            session.sql(add)
        assert counted == len(labelled), text
    for number in list(held)[:3]:
        with pytest.raises(EngineFailure) as raised:
            plain_append(fitting.where(f"id = {number}"), name)
        assert violation_of(raised.value) is not None


@given(found=rows, texts=rules, a=types)
@settings(ON_SPARK, max_examples=3, derandomize=True)
def test_a_split_agrees_with_delta_row_by_row(
    spark: SparkSession, database: str, found: Rows, texts: list[str], a: str
) -> None:
    """A few batches."""
    check(spark, database, found, texts, a)


@pytest.mark.slow
@given(found=rows, texts=rules, a=types)
@settings(ON_SPARK, max_examples=25)
def test_many_splits_agree_with_delta_row_by_row(
    spark: SparkSession, database: str, found: Rows, texts: list[str], a: str
) -> None:
    """Other ones each time."""
    check(spark, database, found, texts, a)
