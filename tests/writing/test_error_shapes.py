"""Delta's violation is known in every shape it takes, and nothing else is taken for one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import deltacheck
from deltacheck.delta.failures import (
    LENGTH_RULE,
    EngineFailure,
    Failure,
    Violation,
    failure_of,
    violation_in,
    violation_of,
)
from deltacheck.delta.log import quiet_query_loggers
from tests.writing.batches import batch, good, held, ids, make_table, mixed, record, versions

COLUMNS = (
    "id INT NOT NULL, amount INT, code VARCHAR(3), part STRING, place STRUCT<zip: INT NOT NULL>"
)
ROW = "id, amount, code, part, place"
GOOD = "(1, 10, 'abc', 'x', named_struct('zip', 1))"


@pytest.fixture
def table(any_spark: SparkSession, database: str) -> str:
    """A table with one rule of each kind, partitioned by ``part``, and one good row."""
    name = make_table(
        any_spark,
        f"{database}.t",
        COLUMNS,
        {"amount_positive": "amount > 0", "part_there": "part IS NOT NULL"},
        "PARTITIONED BY (part)",
    )
    batch(any_spark, GOOD, columns=ROW).write.format("delta").mode("append").saveAsTable(name)
    return name


def caught(action: Callable[[], object]) -> BaseException:
    """What an action of Spark raises."""
    with quiet_query_loggers(), pytest.raises(EngineFailure) as raised:
        action()
    error: BaseException = raised.value
    return error


def test_every_rule_that_a_write_breaks_is_named(any_spark: SparkSession, table: str) -> None:
    """CHECK by its name, NOT NULL by its column, at any depth, lengths by a name of ours."""

    def violation(values: str) -> Violation | None:
        rows = batch(any_spark, values, columns=ROW)
        write = rows.write.format("delta").mode("append")
        return violation_of(caught(lambda: write.saveAsTable(table)))

    assert violation("(2, -1, 'a', 'x', named_struct('zip', 1))") == Violation("amount_positive")
    assert violation("(INT(NULL), 1, 'a', 'x', named_struct('zip', 1))") == Violation(column="id")
    assert violation("(2, 1, 'a', 'x', named_struct('zip', INT(NULL)))") == Violation(
        column="place.zip"
    )
    assert violation("(2, 1, 'a', 'x', CAST(NULL AS STRUCT<zip: INT>))") == Violation(
        column="place.zip"
    )
    assert violation("(2, 1, 'abcd', 'x', named_struct('zip', 1))") == Violation(
        "char_varchar_length"
    )
    assert violation("(2, 1, 'a', '', named_struct('zip', 1))") == Violation("part_there")


def test_every_way_of_writing_gives_a_violation(any_spark: SparkSession, table: str) -> None:
    """insertInto, writeTo, SQL, UPDATE, MERGE and dynamic overwrites are refused alike."""
    bad = batch(any_spark, "(9, -1, 'a', 'x', named_struct('zip', 1))", columns=ROW)
    bad.createOrReplaceTempView("source")
    merge = (
        f"MERGE INTO {table} t USING source s ON t.id + 8 = s.id "
        "WHEN MATCHED THEN UPDATE SET amount = s.amount"
    )
    ways: list[Callable[[], object]] = [
        lambda: bad.write.insertInto(table),
        lambda: bad.writeTo(table).append(),
        lambda: bad.writeTo(table).overwritePartitions(),
        lambda: any_spark.sql(f"INSERT INTO {table} SELECT * FROM source").collect(),
        lambda: any_spark.sql(f"INSERT OVERWRITE {table} SELECT * FROM source").collect(),
        lambda: any_spark.sql(f"UPDATE {table} SET amount = -1").collect(),
        lambda: any_spark.sql(merge).collect(),
    ]
    assert [violation_of(caught(way)) for way in ways] == [Violation("amount_positive")] * len(ways)


def test_under_replace_where_a_violation_is_possible_and_not_named(
    any_spark: SparkSession, table: str
) -> None:
    """A rule broken and a row outside look the same but for text, which data can imitate."""

    def refused(part: str, amount: int) -> Violation | None:
        values = f"(2, {amount}, 'a', '{part}', named_struct('zip', 1))"
        writer = batch(any_spark, values, columns=ROW).write.format("delta").mode("overwrite")
        where = writer.option("replaceWhere", "part = 'x'")
        return violation_of(caught(lambda: where.saveAsTable(table)))

    either = Violation(certain=False, replaces="part = 'x'")
    assert refused("x", -1) == either
    assert refused("y", 1) == either


NEVER = {
    "2 AS id, 10 AS amount, 'a' AS code, 'x' AS part, 1 AS more": "DELTA_METADATA_MISMATCH",
    "2 AS id, array(1) AS amount, 'a' AS code, 'x' AS part": "DATATYPE_MISMATCH",
    "2 AS id, 5000000000L AS amount, 'a' AS code, 'x' AS part": "CAST_OVERFLOW_IN_TABLE_INSERT",
    "2 AS id, 'many' AS amount, 'a' AS code, 'x' AS part": "CAST_INVALID_INPUT",
    "10 AS amount, 'a' AS code, 'x' AS part": "DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
}
"""Batches that no rule is to blame for, and what Delta says of them."""


def test_a_fault_of_the_job_is_never_quarantined(any_spark: SparkSession, table: str) -> None:
    """Another column, another type, a value that does not fit, a mandatory column left out.

    Each is raised as it came, and nothing is written anywhere.
    """
    before = versions(any_spark, table)
    said = {}
    for select in NEVER:
        rows = any_spark.sql(f"SELECT {select}, named_struct('zip', 1) AS place")
        with pytest.raises(EngineFailure) as raised:
            deltacheck.write(rows, table, route="rows")
        said[select] = failure_of(raised.value).family

    assert said == NEVER
    assert versions(any_spark, table) == before
    assert not any_spark.catalog.tableExists(f"{table}_quarantine")


def test_a_mandatory_column_left_out_is_a_fault_of_the_job_under_a_check_as_well(
    any_spark: SparkSession, database: str
) -> None:
    """``CHECK (c IS NOT NULL)`` is how NOT NULL reaches a table that exists."""
    table = make_table(any_spark, f"{database}.t", rules={"id_present": "id IS NOT NULL"})
    record(any_spark, table, {"id_present": {"not_null": "id"}})

    with pytest.raises(EngineFailure) as raised:
        deltacheck.write(any_spark.sql("SELECT 10 AS amount, 'new' AS status"), table)

    assert violation_of(raised.value) == Violation("id_present")
    assert not any_spark.catalog.tableExists(f"{table}_quarantine")


def test_a_wrong_generated_value_is_never_quarantined(
    any_spark: SparkSession, database: str
) -> None:
    """Delta reports it like a rule of the name ``Generated Column``."""
    table = f"{database}.g"
    columns = "id INT, twice INT GENERATED ALWAYS AS (id * 2)"
    make_table(any_spark, table, columns, {"id_positive": "id > 0"})

    with pytest.raises(EngineFailure) as raised:
        deltacheck.write(any_spark.sql("SELECT 1 AS id, 3 AS twice"), table)

    assert failure_of(raised.value).parameters["constraintName"] == "Generated Column"
    assert violation_of(raised.value) is None
    assert ids(any_spark, table) == []
    assert not any_spark.catalog.tableExists(f"{table}_quarantine")


def test_a_rule_that_crashes_is_never_quarantined(any_spark: SparkSession, database: str) -> None:
    """A rule that cannot be evaluated says nothing about the row."""
    table = make_table(
        any_spark, f"{database}.t", "id INT, code STRING", {"number": "int(code) > 0"}
    )

    with pytest.raises(EngineFailure) as raised:
        deltacheck.write(any_spark.sql("SELECT 1 AS id, 'none' AS code"), table)

    assert violation_of(raised.value) is None
    assert ids(any_spark, table) == []
    assert not any_spark.catalog.tableExists(f"{table}_quarantine")


@pytest.mark.parametrize(
    ("number", "route", "left"),
    [(7, "clean", [1, 2]), (-7, "rows", [1])],
    ids=["clean", "beside a violation"],
)
def test_a_warn_rule_that_crashes_stops_no_job(
    any_spark: SparkSession,
    database: str,
    caplog: pytest.LogCaptureFixture,
    number: int,
    route: str,
    left: list[int],
) -> None:
    """It is not counted, and the log tells so.

    Kind of bug: a rule that is only to warn kept a batch from being written.
    """
    table = make_table(any_spark, f"{database}.t", "id INT, n INT, code STRING", {"n_up": "n > 0"})
    rows = any_spark.createDataFrame(
        [(1, 1, "4"), (2, number, "none")], "id INT, n INT, code STRING"
    )

    result = deltacheck.write(
        rows,
        table,
        route="rows",
        rules={"code": {"check": "int(code) > 5", "on_violation": "warn"}},
    )

    assert (result.route, ids(any_spark, table)) == (route, left)
    assert "code" not in result.broken
    assert "the warn rules code were not looked at" in caplog.text


def test_a_warn_rule_fails_on_more_than_data_exceptions(
    any_spark: SparkSession, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark gives a map with a key twice a state of its own."""
    table = make_table(any_spark, f"{database}.t", "id INT, tags STRING", {"id_up": "id > 0"})
    rows = any_spark.createDataFrame([(1, "k:1"), (2, "k:1,k:2"), (-3, "")], "id INT, tags STRING")
    warned = {"has_k": {"check": "str_to_map(tags)['k'] IS NOT NULL", "on_violation": "warn"}}

    deltacheck.write(rows.where("id > 0"), table, rules=warned)
    deltacheck.write(rows.where("id != 1"), table, route="rows", rules=warned)

    assert ids(any_spark, table) == [1, 2, 2]
    assert caplog.text.count("the warn rules has_k were not looked at") == 2


@pytest.mark.parametrize("rule", [None, "code"])
def test_a_check_of_broken_rules_fails_where_nobody_can_tell(
    spark: SparkSession, database: str, caplog: pytest.LogCaptureFixture, rule: str | None
) -> None:
    """The batch is not held against a check by rows that were never judged."""
    table = make_table(spark, f"{database}.t", "id INT, code STRING", {"id_up": "id > 0"})
    rows = spark.createDataFrame([(1, "9"), (2, "none")], "id INT, code STRING")
    share = {"max": "50%"} | ({} if rule is None else {"rule": rule})
    checks = {"few": {"broken_share": share, "on_failure": "warn"}}
    warned = {"code": {"check": "int(code) > 5", "on_violation": "warn"}}

    result = deltacheck.write(rows, table, rules=warned, checks=checks)

    assert result.checks == {"few": "Spark failed to evaluate code on each row"}
    assert ids(spark, table) == [1, 2]
    assert "the warn rules code were not looked at" in caplog.text
    only = {"few": {"broken_share": {"max": "50%", "rule": "id_up"}}}
    assert deltacheck.write(rows, table, rules=warned, checks=only).checks == {}


def test_a_crash_is_not_blamed_on_warn_rules(
    any_spark: SparkSession, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The batch itself cannot be computed: that is raised as it came."""
    table = make_table(any_spark, f"{database}.t", "id INT, n INT", {})
    rows = any_spark.createDataFrame([(1, "none")], "id INT, n STRING")

    with pytest.raises(EngineFailure):
        deltacheck.write(
            rows.selectExpr("id", "int(n) AS n"),
            table,
            rules={"small": {"check": "id < 5", "on_violation": "warn"}},
        )

    assert ids(any_spark, table) == []
    assert "not looked at" not in caplog.text


def test_text_in_the_data_is_no_violation(any_spark: SparkSession, database: str) -> None:
    """Errors are told by condition and parameters, which no row can imitate."""
    text = "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint amount_positive (amount > 0)"
    table = make_table(any_spark, f"{database}.t")
    rows = any_spark.sql(f"SELECT 1 AS id, raise_error('{text}') AS amount, 'new' AS status")

    with pytest.raises(EngineFailure) as raised:
        deltacheck.write(rows.selectExpr("id", "INT(amount) AS amount", "status"), table)

    assert violation_of(raised.value) is None
    assert not any_spark.catalog.tableExists(f"{table}_quarantine")


def test_a_violation_is_found_in_the_causes_of_an_error(spark: SparkSession, database: str) -> None:
    """OPTIMIZE wraps it: a stored violator, written before the rule was there."""
    table = make_table(spark, f"{database}.t", rules={})
    for number in (-1, 1):
        spark.sql(f"INSERT INTO {table} VALUES ({number}, {number}, 'new')")
    clone = f"{database}.c"
    rule = "'delta.constraints.amount_positive' = 'amount > 0'"
    spark.sql(f"CREATE TABLE {clone} SHALLOW CLONE {table} TBLPROPERTIES ({rule})")

    error = caught(lambda: spark.sql(f"OPTIMIZE {clone}").collect())

    assert failure_of(error).condition is None
    assert violation_of(error) == Violation("amount_positive")


def test_a_not_null_is_told_by_the_name_of_its_rule(any_spark: SparkSession, database: str) -> None:
    """As declared where that is recorded, else by a clear name of its own."""
    table = make_table(any_spark, f"{database}.n", "id INT NOT NULL, amount INT", {})
    bad = batch(any_spark, "(CAST(NULL AS INT), 1)", columns="id, amount")
    for name in ("id_not_null", "id_there"):
        result = deltacheck.write(bad, table)
        assert (result.rule, result.broken) == (name, {name: 1})
        record(any_spark, table, {"id_there": {"not_null": "id"}})


CHECK = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
NOT_NULL = "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"


@pytest.mark.parametrize(
    ("failure", "violation"),
    [
        (Failure(CHECK, {"constraintName": "a"}), Violation("a")),
        (Failure(NOT_NULL, {"columnName": "a"}), Violation(column="a")),
        (Failure("DELTA_EXCEED_CHAR_VARCHAR_LIMIT"), Violation(LENGTH_RULE)),
        # Before Delta 3.3 there are no parameters, and before 2.0 no condition.
        (Failure(CHECK), Violation(certain=False)),
        (Failure(NOT_NULL), Violation(certain=False)),
        (Failure(kind="InvariantViolationException"), Violation(certain=False)),
        (Failure(kind="DeltaInvariantViolationException"), Violation(certain=False)),
        (Failure(CHECK, {"constraintName": "Generated Column"}), None),
        (Failure("DELTA_MISSING_NOT_NULL_COLUMN_VALUE", {"columnName": "a"}), None),
        (Failure("CAST_INVALID_INPUT", kind="SparkNumberFormatException"), None),
        (Failure(kind="RuntimeException"), None),
    ],
)
def test_what_is_a_violation_is_told_by_condition_and_parameters(
    failure: Failure, violation: Violation | None
) -> None:
    """Also of versions of Delta that name no rule: then it is not certain that one was broken."""
    assert violation_in(failure) == violation


def test_a_violation_without_parameters_is_routed_by_the_rows_themselves(
    spark: SparkSession, database: str
) -> None:
    """No rule is named; a batch without a bad row is no violation of its rules, so the error
    is raised as it came."""
    table = make_table(spark, f"{database}.t")
    nameless = PySparkException("", errorClass=CHECK, messageParameters={})

    def refuse(_: DataFrame) -> None:
        raise nameless

    with pytest.raises(PySparkException) as raised:
        deltacheck.guard(good(spark), table, refuse)
    assert raised.value is nameless

    result = deltacheck.guard(mixed(spark), table, refuse)

    assert (result.rule, result.quarantined, result.ok) == (None, 4, False)
    assert result.broken == {"amount_positive": 2, "status_known": 1}
    assert set(held(spark, table)) == {1, 2, 3, 4}


def test_a_quarantined_batch_leaves_the_table_as_it_was(
    any_spark: SparkSession, database: str
) -> None:
    """On both kinds of session the batch is routed, and the result says where it is."""
    table = make_table(any_spark, f"{database}.t")
    before = versions(any_spark, table)

    result = deltacheck.write(mixed(any_spark), table)

    assert (result.ok, result.route, result.quarantined) == (False, "batch", 4)
    assert result.rule in {"amount_positive", "status_known"}
    assert result.broken == {"amount_positive": 2, "status_known": 1}
    assert result.quarantine == f"{table}_quarantine"
    assert (result.written, result.version) == (0, before - 1)
    assert ids(any_spark, table) == []
