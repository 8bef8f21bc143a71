"""Labels are right: rows are judged as the table would hold them, which is how Delta sees them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import Row

import deltacheck
from deltacheck.delta.failures import EngineFailure
from tests.writing.batches import batch, ids, make_table

DEFAULTS = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"


def bad_of(session: SparkSession, table: str) -> dict[int, Row]:
    """The quarantined rows of a table, by id."""
    return {row["id"]: row for row in session.table(f"{table}_quarantine").collect()}


def test_a_default_is_filled_in_before_rows_are_judged(spark: SparkSession, database: str) -> None:
    """The batch lacks ``status``; the rule on it is kept by the default."""
    table = make_table(
        spark,
        f"{database}.t",
        "id INT, amount INT, status STRING DEFAULT 'new'",
        {"amount_positive": "amount > 0", "status_known": "status IN ('new', 'paid')"},
        DEFAULTS,
    )
    rows = batch(spark, "(1, 1)", "(2, -1)", columns="id, amount")

    deltacheck.write(rows, table, route="rows")

    assert [tuple(row) for row in spark.table(table).collect()] == [(1, 1, "new")]
    bad = bad_of(spark, table)[2]
    assert (bad["_deltacheck_rules"], bad["status"]) == (["amount_positive"], "new")


def test_a_generated_column_is_computed_before_rows_are_judged(
    any_spark: SparkSession, database: str
) -> None:
    """Its expression stands in the table's log alone."""
    table = make_table(
        any_spark,
        f"{database}.t",
        "id INT, amount INT, twice INT GENERATED ALWAYS AS (amount * 2)",
        {"twice_small": "twice < 10", "amount_positive": "amount > 0"},
    )
    rows = batch(any_spark, "(1, 1)", "(2, 50)", "(3, -1)", columns="id, amount")

    result = deltacheck.write(rows, table, route="rows")

    assert ids(any_spark, table) == [1]
    bad = bad_of(any_spark, table)
    assert {key: row["_deltacheck_rules"] for key, row in bad.items()} == {
        2: ["twice_small"],
        3: ["amount_positive"],
    }
    assert bad[2]["twice"] == 100
    assert result.broken == {"twice_small": 1, "amount_positive": 1}


def test_a_rule_on_a_value_that_nobody_knows_before_the_write_is_not_judged(
    spark: SparkSession, database: str
) -> None:
    """An identity: where Delta names such a rule, the batch goes to quarantine whole."""
    table = make_table(
        spark,
        f"{database}.t",
        "n BIGINT GENERATED ALWAYS AS IDENTITY, id INT",
        {"n_small": "n < 3", "id_positive": "id > 0"},
    )
    deltacheck.write(spark.sql("SELECT INT(id) + 1 AS id FROM range(0, 2, 1, 1)"), table)

    other = deltacheck.write(
        spark.sql("SELECT INT(id) AS id FROM range(0, 1, 1, 1)"), table, route="rows"
    )
    unknown = deltacheck.write(
        spark.sql("SELECT INT(id) + 5 AS id FROM range(0, 4, 1, 1)"), table, route="rows"
    )

    assert (other.quarantined, other.broken) == (1, {"id_positive": 1})
    assert (unknown.route, unknown.rule, unknown.broken) == ("batch", "n_small", {})
    assert unknown.quarantined == 4


@pytest.mark.parametrize(
    ("column", "more"),
    [("twice INT GENERATED ALWAYS AS (amount * 2)", ""), ("twice INT DEFAULT 9", DEFAULTS)],
    ids=["generated", "a default"],
)
def test_a_gate_on_a_warning_looks_at_what_the_table_fills_in(
    spark: SparkSession, database: str, column: str, more: str
) -> None:
    """A gate that holds of itself: the batch lacks the column that its rule reads."""
    table = make_table(spark, f"{database}.t", f"id INT, amount INT, {column}", {}, more)
    rules = {"twice_small": {"check": "twice < 9", "on_violation": "warn", "gate": 0}}
    rows = batch(spark, "(1, 50)", columns="id, amount")

    with pytest.raises(deltacheck.GateError, match=r"1 row of 1 of a batch .* break twice_small"):
        deltacheck.write(rows, table, rules=rules)
    assert ids(spark, table) == []


def test_a_gate_on_a_value_that_nobody_knows_before_the_write_is_refused(
    spark: SparkSession, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A gate that holds of itself; a warning without a gate is not looked at, and that is told."""
    columns = "n BIGINT GENERATED ALWAYS AS IDENTITY, id INT"
    table = make_table(spark, f"{database}.t", columns, {})
    rows = spark.sql("SELECT 1 AS id")
    warn = {"check": "n < 0", "on_violation": "warn"}
    some: dict[str, object] = {"some": {"row_count": {"min": 1}}}

    with pytest.raises(deltacheck.UsageError, match="The gate of the rule n_small cannot be held"):
        deltacheck.write(rows, table, rules={"n_small": {**warn, "gate": 0}})
    assert ids(spark, table) == []

    for checks in (None, some):
        with caplog.at_level("WARNING", "deltacheck"):
            assert deltacheck.write(rows, table, rules={"n_small": warn}, checks=checks).ok
        assert "the rule n_small was not looked at" in caplog.text
        caplog.clear()


def test_a_check_of_a_rule_on_such_a_value_is_not_judged_and_that_is_told(
    spark: SparkSession, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A share that is 0 of itself, or an error of ours: nobody knows the identity before."""
    columns = "n BIGINT GENERATED ALWAYS AS IDENTITY, id INT"
    table = make_table(spark, f"{database}.t", columns, {"n_small": "n < 9", "id_there": "id > 0"})
    checks = {
        "all": {"broken_share": {"max": 0}},
        "small": {"broken_share": {"rule": "N_small", "max": 0}},
        "there": {"broken_share": {"rule": "id_there", "max": "1/2"}},
    }

    assert deltacheck.write(spark.sql("SELECT 1 AS id"), table, checks=checks).ok

    for check in ("all", "small"):
        assert f"the check {check} was not judged, its rows cannot be held against n_small" in (
            caplog.text
        )
    with pytest.raises(deltacheck.CheckError, match="there: 1 of 1 row break id_there"):
        deltacheck.write(spark.sql("SELECT -1 AS id"), table, checks=checks)


def test_an_empty_string_in_a_partition_column_is_null(spark: SparkSession, database: str) -> None:
    """Delta turns it to NULL before it checks."""
    table = make_table(
        spark,
        f"{database}.t",
        "id INT, part STRING",
        {"part_there": "part IS NOT NULL", "id_positive": "id > 0"},
        "PARTITIONED BY (part)",
    )
    rows = batch(spark, "(1, 'a')", "(2, '')", "(3, '')", columns="id, part")

    deltacheck.write(rows, table, route="rows")

    assert ids(spark, table) == [1]
    assert {row["_deltacheck_rules"][0] for row in bad_of(spark, table).values()} == {"part_there"}


def test_types_are_the_tables_and_structs_go_by_name(spark: SparkSession, database: str) -> None:
    """At every depth; a field that the batch lacks is NULL."""
    table = make_table(
        spark,
        f"{database}.t",
        "id INT, place STRUCT<zip: INT, city: STRING>, items ARRAY<STRUCT<n: INT, price: INT>>, "
        "tags MAP<STRING, STRUCT<a: INT, b: INT>>",
        {
            "zip_positive": "place.zip > 0",
            "city_short": "place.city IS NULL OR length(place.city) < 5",
            "price_positive": "items[0].price > 0",
            "tag_small": "tags['k'].b IS NULL OR tags['k'].b < 9",
        },
    )
    rows = spark.sql(
        "SELECT id, named_struct('city', city, 'ZIP', zip) AS place, "
        "array(named_struct('price', price, 'n', 1L)) AS items, "
        "map('k', named_struct('b', b, 'a', 1)) AS tags FROM VALUES "
        "(1L, 'Rome', 1, 5, 1), (2L, 'Rome', -1, 5, 1), (3L, 'Berlin', 1, 5, 1), "
        "(4L, 'Rome', 1, -5, 1), (5L, 'Rome', 1, 5, 99) AS t(id, city, zip, price, b)"
    )

    result = deltacheck.write(rows, table, route="rows")

    assert ids(spark, table) == [1]
    bad = bad_of(spark, table)
    assert {key: row["_deltacheck_rules"] for key, row in bad.items()} == {
        2: ["zip_positive"],
        3: ["city_short"],
        4: ["price_positive"],
        5: ["tag_small"],
    }
    assert bad[2]["place"] == Row(zip=-1, city="Rome")
    assert bad[4]["items"] == [Row(n=1, price=-5)]
    assert bad[5]["tags"] == {"k": Row(a=1, b=99)}
    assert bad[2].asDict()["id"] == 2
    assert result.written == 1
    assert dict(spark.table(f"{table}_quarantine").dtypes)["id"] == "int"


def test_a_column_left_out_is_null(spark: SparkSession, database: str) -> None:
    """So a rule on it is broken, unless it is true for NULL."""
    table = make_table(
        spark,
        f"{database}.t",
        "id INT, amount INT, note STRING",
        {"amount_positive": "amount > 0", "note_short": "note IS NULL OR length(note) < 5"},
    )
    deltacheck.write(spark.sql("SELECT 1 AS id"), table)
    assert bad_of(spark, table)[1]["_deltacheck_rules"] == ["amount_positive"]


def test_lengths_of_char_and_varchar_are_judged(spark: SparkSession, database: str) -> None:
    """Delta names no rule for them; ours is ``char_varchar_length``."""
    table = make_table(
        spark,
        f"{database}.t",
        "id INT, code VARCHAR(3), kind CHAR(2), more ARRAY<VARCHAR(1)>",
        {"id_positive": "id > 0"},
    )
    rows = batch(
        spark,
        "(1, 'abc', 'a', array('x'))",
        "(2, 'abcd', 'a', array('x'))",
        "(3, 'abc', 'abc', array('x'))",
        columns="id, code, kind, more",
    )
    result = deltacheck.write(rows, table, route="rows")
    nested = deltacheck.write(
        batch(spark, "(4, 'abc', 'a', array('xyz'))", columns="id, code, kind, more"), table
    )

    assert ids(spark, table) == [1]
    assert (result.rule, result.broken) == ("char_varchar_length", {"char_varchar_length": 2})
    assert (nested.route, nested.rule, nested.quarantined) == ("batch", "char_varchar_length", 1)


def test_new_columns_of_a_batch_that_may_change_the_table_are_kept(
    spark: SparkSession, database: str
) -> None:
    """With ``mergeSchema`` they are the table's, and go to quarantine as well."""
    table = make_table(spark, f"{database}.t", "id INT, amount INT", {"ok": "amount > 0"})
    rows = batch(spark, "(1, 1, 'x')", "(2, -1, 'y')", columns="id, amount, note")

    deltacheck.write(rows, table, route="rows", options={"mergeSchema": "true"})

    assert [tuple(row) for row in spark.table(table).collect()] == [(1, 1, "x")]
    assert bad_of(spark, table)[2]["note"] == "y"


def test_a_value_that_does_not_fit_is_not_made_null_without_ansi_mode(
    spark: SparkSession, database: str
) -> None:
    """Delta refuses it whatever the mode; a plain cast would lose it from quarantine."""
    table = make_table(spark, f"{database}.t", "id INT, amount INT", {"ok": "amount > 0"})
    rows = batch(spark, "(1, -1L)", "(2, 5000000000L)", columns="id, amount").coalesce(1)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(EngineFailure):
            deltacheck.write(rows, table)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert ids(spark, table) == []
    assert not spark.catalog.tableExists(f"{table}_quarantine")


def test_names_are_told_apart_as_spark_does(spark: SparkSession, database: str) -> None:
    """Case does not matter; dots and spaces in a name are part of it."""
    table = make_table(
        spark,
        f"{database}.t",
        "id INT, `unit price` INT, `a.b` INT",
        {"price_positive": "`unit price` > 0", "ab_small": "`a.b` < 5"},
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    )
    rows = batch(spark, "(1, 1, 1L)", "(2, -1, 9L)", columns="ID, `Unit Price`, `A.B`")

    deltacheck.write(rows, table, route="rows")

    assert ids(spark, table) == [1]
    bad = bad_of(spark, table)[2]
    assert sorted(bad["_deltacheck_rules"]) == ["ab_small", "price_positive"]
    assert (bad["unit price"], bad["a.b"]) == (-1, 9)


def test_constraints_that_no_rule_may_have_are_judged_as_they_stand(
    spark: SparkSession, database: str
) -> None:
    """Made without deltacheck: a lambda, a comment at the end."""
    spark.sql(
        f"CREATE TABLE {database}.t (id INT, parts ARRAY<INT>) USING delta TBLPROPERTIES "
        "('delta.constraints.all_positive' = 'forall(parts, x -> x > 0)', "
        "'delta.constraints.id_small' = 'id < 5 -- for now')"
    )
    rows = batch(spark, "(1, array(1))", "(2, array(-1))", "(9, array(1))", columns="id, parts")

    deltacheck.write(rows, f"{database}.t", route="rows")

    assert ids(spark, f"{database}.t") == [1]
    bad = bad_of(spark, f"{database}.t")
    assert {key: row["_deltacheck_rules"] for key, row in bad.items()} == {
        2: ["all_positive"],
        9: ["id_small"],
    }
