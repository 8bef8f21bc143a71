"""What rules mean on a running table: Spark and Delta are the oracle."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from deltacheck.delta.log import quiet_query_loggers
from deltacheck.delta.session import REPEATED_FIRST
from deltacheck.delta.session import settings as session_settings
from deltacheck.rules.expression import Expression, parse_rule, same_rule, violator_predicate
from deltacheck.rules.functions import REFUSED
from tests.rules import tricky
from tests.rules.random_rules import SCHEMA, Bool, rows, rules

GROUPS = [tricky.RULES[start::3] for start in range(3)]
"""The tricky rules in three groups: one ALTER for each costs minutes."""

_AS_GUARDED = {REPEATED_FIRST: "false"}
"""Else Spark evaluates first what occurs twice, in ADD CONSTRAINT's own count too, even behind a
guard."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """PySpark logs each failing statement with its rows; here they fail on purpose."""
    # A logger that `logging` itself had made first would not take what PySpark tells it.
    with quiet_query_loggers():
        yield


def table_of(spark: SparkSession, name: str, schema: str, values: list[tuple[Any, ...]]) -> str:
    """A Delta table that holds ``values``."""
    spark.sql(
        f"CREATE OR REPLACE TABLE {name} ({schema}) USING delta TBLPROPERTIES "
        "('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', "
        "'delta.minWriterVersion' = '5')"
    )
    frame = spark.createDataFrame(values, spark.table(name).schema)
    frame.coalesce(1).write.format("delta").mode("append").saveAsTable(name)
    return name


def results(frame: DataFrame, texts: list[str]) -> list[list[bool | None]]:
    """What each expression is for each row, in the order of ``id``; one query for all."""
    columns = [f"({text}\n) AS c{number}" for number, text in enumerate(texts)]
    found = frame.orderBy("id").selectExpr(*columns).collect()
    return [[row[number] for row in found] for number in range(len(texts))]


def stored_by_delta(spark: SparkSession, table: str, name: str) -> str:
    """The text of the constraint that the table has."""
    properties = spark.sql(f"SHOW TBLPROPERTIES {table} ('delta.constraints.{name}')").collect()
    return str(properties[0]["value"])


def add(spark: SparkSession, table: str, name: str, rule: Expression) -> None:
    """ADD CONSTRAINT, as an upgrade does it."""
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({rule.stored})")


# Meanings


@pytest.fixture(scope="module")
def tricky_rows(spark: SparkSession) -> Iterator[DataFrame]:
    """The rows that tell tricky rules apart."""
    schema = spark.createDataFrame([], tricky.SCHEMA).schema
    frame = spark.createDataFrame(tricky.rows(), schema).coalesce(1).localCheckpoint()
    yield frame
    frame.unpersist()


def test_the_tricky_rows_tell_every_tricky_rule_from_a_constant(tricky_rows: DataFrame) -> None:
    """Else the tests below would prove nothing."""
    found = results(tricky_rows, tricky.RULES)
    for text, values in zip(tricky.RULES, found, strict=True):
        assert len(set(values)) > 1, text


def test_respelling_keeps_the_meaning_of_a_rule_for_every_row(tricky_rows: DataFrame) -> None:
    """Spark reads what deltacheck stores as it reads what the person wrote."""
    written = results(tricky_rows, tricky.RULES)
    assert written == results(tricky_rows, [parse_rule(text).stored for text in tricky.RULES])


def test_the_conjuncts_of_a_rule_are_the_rule(tricky_rows: DataFrame) -> None:
    """AND-ed again they give the same result for every row."""
    joined = [
        " AND ".join(f"({part})" for part in parse_rule(text).conjuncts) for text in tricky.RULES
    ]
    assert results(tricky_rows, joined) == results(tricky_rows, tricky.RULES)


def test_what_spark_cannot_read_is_respelled_to_what_was_meant(tricky_rows: DataFrame) -> None:
    """Variables stay as they are, letters beyond ASCII need no quotes, try-casts have a sign."""
    meant = {
        "note = '${x}'": "note = concat('$', '{x}')",
        "größe > 1": "`größe` > 1",
        "s?::int > 100": "try_cast(s AS INT) > 100",
        "try_cast(s AS INT) = -1 OR 2nd = 1": "try_cast(s AS INT) = -1 OR `2nd` = 1",
    }
    frame = tricky_rows.withColumnRenamed("b", "2nd")
    found = results(frame, [parse_rule(text).stored for text in meant])
    assert found == results(frame, list(meant.values()))
    assert all(True in values for values in found)


@pytest.mark.parametrize("delimiter", ["'", '"'])
def test_escapes_in_strings_are_read_as_spark_reads_them(
    spark: SparkSession, delimiter: str
) -> None:
    """Every escape of every ASCII character, octal and Unicode ones too."""
    tails = [chr(code) for code in range(32, 127)]
    tails += ["101", "177", "200", "u00e9", "u12", "U0001F600", "U12", "uD83D\\uDE00", "\n"]
    literals = [f"{delimiter}a\\{tail}b{delimiter}" for tail in tails]
    literals += [f"{delimiter}a{delimiter * 2}b{delimiter}", f"{delimiter * 2} 'b' \"c\""]
    literals += [f"{delimiter}'{delimiter}" if delimiter == '"' else "'\"'"]
    read = spark.sql("SELECT " + ", ".join(literals)).collect()[0]
    respelled = [parse_rule(f"s = {text}").stored.removeprefix("s = ") for text in literals]
    again = spark.sql("SELECT " + ", ".join(respelled)).collect()[0]
    for literal, expected, value in zip(literals, read, again, strict=True):
        assert value == expected, literal


# What Delta stores


def stored(spark: SparkSession, table: str, text: str) -> str:
    """What Delta has of a rule after ADD CONSTRAINT; the table is left without it."""
    add(spark, table, "tricky", parse_rule(text))
    back = stored_by_delta(spark, table, "tricky")
    spark.sql(f"ALTER TABLE {table} DROP CONSTRAINT tricky")
    return back


@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_delta_stores_tricky_rules_with_their_meaning(
    spark: SparkSession, database: str, tricky_rows: DataFrame, group: int
) -> None:
    """What is read back is the same rule, and has the same result for every row."""
    table = table_of(spark, f"{database}.t", tricky.SCHEMA, [])
    written = " AND ".join(f"({text}\n)" for text in GROUPS[group])
    back = stored(spark, table, written)
    assert same_rule(back, written)
    kept, meant = parse_rule(back).conjuncts, parse_rule(written).conjuncts
    assert all(same_rule(one, other) for one, other in zip(kept, meant, strict=True))
    assert results(tricky_rows, list(kept)) == results(tricky_rows, list(meant))


@pytest.mark.slow
def test_delta_stores_each_tricky_rule_with_its_meaning(
    spark: SparkSession, database: str, tricky_rows: DataFrame
) -> None:
    """The same, one constraint for each."""
    table = table_of(spark, f"{database}.t", tricky.SCHEMA, [])
    backs = [stored(spark, table, text) for text in tricky.RULES]
    assert all(same_rule(back, text) for back, text in zip(backs, tricky.RULES, strict=True))
    assert results(tricky_rows, backs) == results(tricky_rows, tricky.RULES)


# What Spark has


def test_the_functions_of_the_tricky_rules_are_sparks_own(spark: SparkSession) -> None:
    """What a rule says that it calls can be looked up."""
    own = {str(row[0]) for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    called = {function for text in tricky.RULES for function in parse_rule(text).functions}
    assert len(called) > 20
    assert called <= own


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "conditions"),
    [
        (("", "a", "a, a"), ("WINDOW", "AGGREGATE", "WHERE_CONDITION")),
        (("arr", "m", "1, a"), ("GENERATOR",)),
    ],
)
def test_no_function_of_many_rows_is_missing_from_the_lists(
    spark: SparkSession, arguments: tuple[str, ...], conditions: tuple[str, ...]
) -> None:
    """Whatever Spark refuses in a WHERE because it needs or makes rows, is refused here."""
    schema = "a INT, arr ARRAY<STRUCT<x: INT>>, m MAP<INT, INT>"
    spark.createDataFrame([], schema).createOrReplaceTempView("everything")
    missing, internal = set(), []
    for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect():
        function = str(row[0])
        if not function.isidentifier() or function in REFUSED:
            continue
        for inside in arguments:
            try:
                spark.sql(f"SELECT 1 FROM everything WHERE {function}({inside}) IS NULL")
            except PySparkException as error:
                if any(word in (error.getCondition() or "") for word in conditions):
                    missing.add((function, error.getCondition()))
            except Py4JJavaError as error:
                internal.append(str(error))
    assert missing == set()
    assert all("INTERNAL_ERROR" in error for error in internal)


# Violators


def judge(frame: DataFrame, drawn: list[tuple[Bool, int]]) -> list[tuple[Expression, list[bool]]]:
    """Each rule, and for which rows Spark says that it is not true."""
    written = [rule.spelled(random.Random(seed)) for rule, seed in drawn]
    understood = [parse_rule(text) for text in written]
    texts = [
        (text, rule.stored, violator_predicate(rule), f"({text}\n) IS NOT TRUE")
        for text, rule in zip(written, understood, strict=True)
    ]
    found = results(frame, [text for four in texts for text in four])
    judged = []
    for number, rule in enumerate(understood):
        plain, stored, violators, oracle = found[4 * number : 4 * number + 4]
        assert stored == plain, rule.text
        assert violators == oracle == [value is not True for value in plain], rule.text
        judged.append((rule, [value is not True for value in plain]))
    return judged


def agrees(
    spark: SparkSession, table: str, rule: Expression, bad: Sequence[bool | None], each: bool
) -> None:
    """Delta counts, accepts and refuses exactly the rows that are called bad."""
    original = spark.table(table).localCheckpoint()
    predicate = violator_predicate(rule)
    if any(bad):
        with pytest.raises(AnalysisException) as refused:
            add(spark, table, "drawn", rule)
        assert refused.value.getCondition() == "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"
        parameters = refused.value.getMessageParameters() or {}
        assert parameters["numRows"] == str(bad.count(True)), rule.text
        spark.sql(f"DELETE FROM {table} WHERE {predicate}")
    add(spark, table, "drawn", rule)
    good = original.where(f"NOT ({predicate})")
    good.write.format("delta").mode("append").saveAsTable(table)
    assert spark.table(table).count() == 2 * bad.count(False)
    worst = original.where(predicate).orderBy("id").collect()
    for row in worst if each else worst[:1]:
        with pytest.raises(Py4JJavaError, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
            spark.createDataFrame([row], original.schema).write.format("delta").mode(
                "append"
            ).saveAsTable(table)
    assert spark.table(table).count() == 2 * bad.count(False)
    spark.sql(f"ALTER TABLE {table} DROP CONSTRAINT drawn")
    original.unpersist()


def numbered(values: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows with an ``id`` before them."""
    return [(number, *value) for number, value in enumerate(values, start=1)]


def _check(
    spark: SparkSession,
    table: str,
    drawn: list[tuple[Bool, int]],
    values: list[tuple[Any, ...]],
    by_delta: int,
) -> None:
    table_of(spark, table, SCHEMA, numbered(values))
    judged = judge(spark.table(table), drawn)
    mixed = [(rule, bad) for rule, bad in judged if any(bad) and not all(bad)]
    for number, (rule, bad) in enumerate(mixed[:by_delta]):
        if number:
            table_of(spark, table, SCHEMA, numbered(values))
        agrees(spark, table, rule, bad, each=number == 0)


_drawn = st.tuples(rules, st.integers(0, 2**32))
_unhurried = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


@settings(_unhurried, max_examples=2, derandomize=True)
@given(
    drawn=st.lists(_drawn, min_size=12, max_size=16),
    values=st.lists(rows, min_size=12, max_size=16),
)
def test_the_violators_are_those_of_spark_and_of_delta(
    spark: SparkSession, database: str, drawn: list[tuple[Bool, int]], values: list[Any]
) -> None:
    """The predicate finds exactly the rows whose rule is not true, and that Delta refuses."""
    _check(spark, f"{database}.t", drawn, values, by_delta=1)


@pytest.mark.slow
@settings(_unhurried, max_examples=6)
@given(
    drawn=st.lists(_drawn, min_size=30, max_size=40),
    values=st.lists(rows, min_size=25, max_size=40),
)
def test_the_violators_are_those_of_spark_and_of_delta_at_length(
    spark: SparkSession, database: str, drawn: list[tuple[Bool, int]], values: list[Any]
) -> None:
    """The same with other rules and rows each time."""
    _check(spark, f"{database}.t", drawn, values, by_delta=2)


_GUARDED = {
    "a != 0 AND 10 DIV a > 1": [True, False, True, True],
    "a = 0 OR 10 DIV a > 1": [False, False, True, True],
    "a = 0 OR (10 DIV a > 1 AND 10 DIV a < 100)": [False, False, True, True],
    "(a = 0 OR 10 DIV a > 1) AND (a = 0 OR 10 DIV a < 100) AND id > 0": [False, False, True, True],
    "CASE WHEN a = 0 THEN true WHEN 10 DIV a > 100 THEN false ELSE 10 DIV a > 1 END AND id > 0": [
        False,
        False,
        True,
        True,
    ],
    "id = 1 OR s::int > 1": [False, False, False, True],
}


def _guarded_rows(spark: SparkSession, database: str) -> str:
    values = [(1, 0, "x"), (2, 5, "2"), (3, None, "3"), (4, 20, None)]
    return table_of(spark, f"{database}.t", "id INT, a INT, s STRING", values)


def test_what_a_guard_guards_is_guarded_in_the_violator_predicate_too(
    spark: SparkSession, database: str
) -> None:
    """A division that the rules never reach is not reached by the search for violators."""
    table = _guarded_rows(spark, database)
    understood = {text: parse_rule(text) for text in _GUARDED}
    with session_settings(spark, _AS_GUARDED):
        found = results(spark.table(table), [violator_predicate(understood[r]) for r in _GUARDED])
        assert found == list(_GUARDED.values())
        for rule in understood.values():
            single = results(spark.table(table), [violator_predicate(rule)])
            assert single == [_GUARDED[rule.text]]


@pytest.mark.slow
@pytest.mark.parametrize("text", _GUARDED)
def test_delta_agrees_about_rules_with_guards(
    spark: SparkSession, database: str, text: str
) -> None:
    """ADD CONSTRAINT counts them, writes are refused by them, and neither ends in an error."""
    table = _guarded_rows(spark, database)
    with session_settings(spark, _AS_GUARDED):
        agrees(spark, table, parse_rule(text), _GUARDED[text], each=True)
