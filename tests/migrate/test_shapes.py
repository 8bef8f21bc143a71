"""Every shape that a real table can have: its violators move, the rest stays, nothing changes.

The oracle is Spark's ``(rule) IS NOT TRUE`` on the table before the run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.delta.session import settings
from deltacheck.errors import AppendOnlyError, ConstraintError, DeltacheckError
from deltacheck.revisions.graph import History
from deltacheck.revisions.recorder import Op
from tests.migrate.bench import Bench, Killed, chain, moments

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Shape:
    """A table and one rule of it.

    Attributes:
        moved: How many of its rows break the rule.
        then: Statements after the first rows, with ``{table}`` in them.
    """

    columns: str
    rows: str
    rule: str
    moved: int
    extra: str = ""
    then: tuple[str, ...] = ()
    quick: bool = field(default=False)


MAPPED = "TBLPROPERTIES ('delta.columnMapping.mode' = '{}')"
HOSTILE = "`a b` INT, `c.d` STRING, `e,f` INT, `größe;(x)=1` INT, `_q``t` INT"
HOSTILE_ROWS = "VALUES (1, 'x', 1, 1, 1), (-1, 'y', 2, 2, 2), (2, NULL, 3, 3, 3), (3, 'z', 4, 0, 4)"
HOSTILE_RULE = "`a b` > 0 AND `c.d` IS NOT NULL AND `größe;(x)=1` > 0"
WIDE = ", ".join(f"c{n} INT" for n in range(1000))

SHAPES = {
    "string partitions, '' and NULL among them": Shape(
        "id INT, p STRING",
        "VALUES (1, 'a'), (2, ''), (3, NULL), (3, NULL), (4, 'b')",
        "p IS NOT NULL",
        3,
        "PARTITIONED BY (p)",
        quick=True,
    ),
    "a predicate of partitions alone": Shape(
        "id INT, p INT",
        "VALUES (1, 1), (2, 2), (2, 2), (3, CAST(NULL AS INT))",
        "p < 2",
        3,
        "PARTITIONED BY (p)",
    ),
    "partition and data in one predicate": Shape(
        "id INT, p DATE",
        "VALUES (1, DATE'2024-01-01'), (-2, DATE'2024-01-01'), (3, DATE'2025-01-01'), (4, NULL)",
        "id > 0 AND p < DATE'2025-01-01'",
        3,
        "PARTITIONED BY (p)",
    ),
    "generated column": Shape(
        "id INT, at TIMESTAMP, d DATE GENERATED ALWAYS AS (CAST(at AS DATE))",
        "(id, at) VALUES (1, TIMESTAMP'2024-01-01 23:30:00'), (2, TIMESTAMP'2025-01-01 00:30:00'), "
        "(3, NULL)",
        "d < DATE'2025-01-01'",
        2,
        "PARTITIONED BY (d)",
    ),
    "identity column": Shape(
        "id BIGINT GENERATED ALWAYS AS IDENTITY, a INT",
        "(a) VALUES (1), (-1), (-1), (NULL)",
        "a > 0",
        3,
    ),
    "deletion vectors on": Shape(
        "id INT, a INT",
        "SELECT CAST(id AS INT), CAST(id % 10 AS INT) FROM range(50)",
        "a > 0",
        4,
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        ("DELETE FROM {table} WHERE id = 20",),
    ),
    "deletion vectors off": Shape(
        "id INT, a INT",
        "SELECT CAST(id AS INT), CAST(id % 10 AS INT) FROM range(50)",
        "a > 0",
        5,
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
    ),
    "column mapping by name": Shape(
        HOSTILE, HOSTILE_ROWS, HOSTILE_RULE, 3, MAPPED.format("name"), quick=True
    ),
    "column mapping by id": Shape(HOSTILE, HOSTILE_ROWS, HOSTILE_RULE, 3, MAPPED.format("id")),
    "renamed and dropped columns": Shape(
        "id INT, a INT, gone INT",
        "VALUES (1, 1, 1), (2, -1, 2)",
        "b > 0",
        2,
        MAPPED.format("name"),
        (
            "ALTER TABLE {table} DROP COLUMN gone",
            "ALTER TABLE {table} RENAME COLUMN a TO b",
            "INSERT INTO {table} VALUES (3, -3)",
        ),
    ),
    "change data feed": Shape(
        "id INT, a INT",
        "VALUES (1, 1), (2, -1), (2, -1)",
        "a > 0",
        2,
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    ),
    "liquid clustering": Shape(
        "id INT, a INT", "VALUES (1, 1), (2, -1), (2, NULL)", "a > 0", 2, "CLUSTER BY (a)"
    ),
    "row tracking": Shape(
        "id INT, a INT",
        "VALUES (1, 1), (2, -1)",
        "a > 0",
        1,
        "TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
    ),
    "structs, arrays and maps": Shape(
        "id INT, s STRUCT<x: INT, t: STRUCT<y: STRING>>, l ARRAY<STRUCT<z: INT>>, "
        "m MAP<STRING, ARRAY<INT>>",
        "VALUES "
        "(1, named_struct('x', 1, 't', named_struct('y', 'a')), array(named_struct('z', 1)), "
        "map('k', array(1, NULL))), "
        "(2, named_struct('x', 1, 't', NULL), array(), map()), "
        "(3, NULL, NULL, NULL), "
        "(3, NULL, NULL, NULL)",
        "s.t.y = 'a' AND size(l) > 0 AND m['k'][0] = 1",
        3,
        quick=True,
    ),
    "decimals at their limits": Shape(
        "id INT, d DECIMAL(38, 0), e DECIMAL(38, 38)",
        "VALUES (1, 99999999999999999999999999999999999999, 0.1), "
        "(2, -99999999999999999999999999999999999999, "
        "-0.99999999999999999999999999999999999999), (3, NULL, NULL)",
        "d > 0 AND e > 0",
        2,
    ),
    "NaN, infinities and negative zero": Shape(
        "id INT, x DOUBLE, f FLOAT",
        "VALUES (1, double('NaN'), float('NaN')), (2, double('-Infinity'), 0), "
        "(3, double('Infinity'), float('Infinity')), (4, -0.0D, float(-0.0)), (5, 0.0D, 0)",
        "x >= 0 AND NOT isnan(f)",
        2,
    ),
    "timestamp_ntz, to the microsecond": Shape(
        "id INT, at TIMESTAMP_NTZ",
        "VALUES (1, TIMESTAMP_NTZ'2024-01-01 00:00:00.000001'), "
        "(2, TIMESTAMP_NTZ'2024-01-01 00:00:00.000002'), (3, NULL)",
        "at < TIMESTAMP_NTZ'2024-01-01 00:00:00.000002'",
        2,
    ),
    "binary": Shape("id INT, b BINARY", "VALUES (1, X'00FF'), (2, X''), (3, NULL)", "b > X''", 2),
    "variant": Shape(
        "id INT, v VARIANT",
        """SELECT 1, parse_json('{"a": 1}') UNION ALL SELECT 2, parse_json('{"a": -1}') """
        "UNION ALL SELECT 3, NULL UNION ALL SELECT 4, parse_json('null')",
        "variant_get(v, '$.a', 'int') > 0",
        3,
    ),
    "char and varchar": Shape(
        "id INT, c CHAR(3), v VARCHAR(4)",
        "VALUES (1, 'ab', 'x'), (2, 'abc', 'y'), (3, NULL, 'z')",
        "c = 'ab ' AND v != 'y'",
        2,
    ),
    "default values": Shape(
        "id INT, a INT DEFAULT 5",
        "VALUES (1, DEFAULT), (2, -1)",
        "a > 0",
        1,
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
    ),
    "type widening": Shape(
        "id INT, a SMALLINT",
        "VALUES (1, 1), (2, -1)",
        "a > 0 AND a < 100000",
        2,
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        (
            "ALTER TABLE {table} ALTER COLUMN a TYPE INT",
            "INSERT INTO {table} VALUES (3, 100000)",
        ),
    ),
    "a thousand columns": Shape(
        WIDE, "VALUES (" + "1," * 999 + "1), (" + "-1," * 999 + "-1)", "c0 > 0 AND c999 > 0", 1
    ),
    "no statistics": Shape(
        "id INT, a INT",
        "VALUES (1, 1), (1, 1)",
        "a > 0",
        3,
        "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '0')",
        ("INSERT INTO {table} VALUES (2, -1), (2, -1), (3, -2)",),
    ),
    "no statistics, and a predicate of partitions alone": Shape(
        "id INT, p INT",
        "VALUES (1, 1), (1, 1), (2, 2), (2, 2), (3, NULL)",
        "p = 1",
        3,
        "PARTITIONED BY (p) TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '0')",
    ),
    "no rows": Shape("id INT, a INT", "", "a > 0", 0),
    "nothing but violators": Shape("id INT, a INT", "VALUES (1, -1), (1, -1)", "a > 0", 2),
    "two checkpoints of the second kind": Shape(
        "id INT, a INT",
        "VALUES (1, 1), (2, -1)",
        "a > 0",
        1,
        "TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', "
        "'delta.enableInCommitTimestamps' = 'true')",
    ),
}


def one_rule(table: str, rule: str) -> History:
    return chain(lambda op: op.add_check(table, "good", rule, gate="100%"))


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(shape, id=name, marks=() if shape.quick else pytest.mark.slow)
        for name, shape in SHAPES.items()
    ],
)
def test_moves_what_the_rule_does_not_allow(bench: Bench, shape: Shape) -> None:
    """Exactly the rows for which the rule is not true are moved, with all their values."""
    table = bench.table("t", shape.columns, shape.rows, shape.extra)
    for statement in shape.then:
        bench.session.sql(statement.format(table=table))
    before, schema = bench.rows(table), bench.read(table).schema
    good = bench.rows(table, f"({shape.rule}) IS TRUE")
    assert sum((before - good).values()) == shape.moved
    result = bench.upgrade(one_rule(table, shape.rule))
    assert bench.rows(table) == good
    assert bench.held(table) == before - good
    assert bench.read(table).schema == schema
    assert result.tables[0].moved == shape.moved
    assert list(bench.constraints(table)) == ["good"]
    assert bench.upgrade(one_rule(table, shape.rule)).nothing_to_do


AT = "at < TIMESTAMP'2025-01-01 00:00:00'"


@pytest.mark.parametrize("rule", [AT, "d < DATE'2025-01-01'"])
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
def test_a_date_partition_generated_in_another_zone(bench: Bench, zone: str, rule: str) -> None:
    """Its partitions are other days than those of the verdict; a filter by day would mislead.

    Where Delta would have to write a row that stays anew, it finds a wrong generated value in it
    and refuses: nothing has moved then, and deletion vectors help.
    """
    with settings(bench.session, {"spark.sql.session.timeZone": zone}):
        table = bench.table(
            "t",
            "id INT, at TIMESTAMP, d DATE GENERATED ALWAYS AS (CAST(at AS DATE))",
            "(id, at) VALUES (1, TIMESTAMP'2024-12-31 16:30:00Z'), "
            "(2, TIMESTAMP'2025-01-01 03:30:00Z'), (3, TIMESTAMP'2024-06-01 00:00:00Z'), "
            "(3, TIMESTAMP'2025-06-01 00:00:00Z'), (4, NULL)",
            "PARTITIONED BY (d)",
        )
    before = bench.rows(table)
    if (zone, rule) == ("Asia/Tokyo", AT):
        with pytest.raises(ConstraintError) as refused:
            bench.upgrade(one_rule(table, rule))
        assert "deletion vectors" in refused.value.hint
        assert (bench.rows(table), bench.held(table)) == (before, Counter())
        vectors = "'delta.enableDeletionVectors' = 'true'"
        bench.session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({vectors})")
    bench.upgrade(one_rule(table, rule))
    assert bench.rows(table) + bench.held(table) == before
    assert list(bench.constraints(table)) == ["good"]
    if rule.startswith("d"):
        assert bench.rows(table, f"id IN (SELECT id FROM {table} WHERE ({rule}) IS NOT TRUE)") == {}
    assert bench.rows(table)
    assert bench.held(table)


def test_a_column_with_a_name_of_the_change_data_feed(bench: Bench) -> None:
    """A table without the feed may have it; the quarantine must hold it all the same, also where
    the session's defaults would give new tables a feed."""
    table = bench.table("t", "id INT, _change_type STRING", "VALUES (1, 'a'), (-1, 'b')")
    default = "spark.databricks.delta.properties.defaults.enableChangeDataFeed"
    with settings(bench.session, {default: "true"}):
        bench.upgrade(one_rule(table, "id > 0"))
    assert (bench.rows(table), bench.held(table)) == ({"(1, 'a')": 1}, {"(-1, 'b')": 1})


def test_a_table_that_has_no_columns(bench: Bench) -> None:
    """Delta drops no last column, but a table may be made without any: no rule of it can hold,
    which is said before a row of another table moves."""
    table = bench.table("t", "id INT", "VALUES (1), (-1)", MAPPED.format("name"))
    with pytest.raises(EngineFailure) as refused:
        bench.session.sql(f"ALTER TABLE {table} DROP COLUMN id")
    assert failure_of(refused.value).family == "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA"
    empty = f"{bench.database}.empty"
    bench.session.sql(f"CREATE TABLE {empty} USING delta")

    def both(op: Op) -> None:
        op.add_check(table, "good", "id > 0", gate="100%")
        op.add_check(empty, "good", "id > 0", gate="100%")

    with pytest.raises(DeltacheckError, match="empty"):
        bench.upgrade(chain(both))
    assert bench.rows(table) == Counter({"(1,)": 1, "(-1,)": 1})
    assert bench.constraints(table) == {}


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_rule_means_the_same_whatever_the_callers_ansi_mode_is(bench: Bench, ansi: str) -> None:
    """A cast that fails under ANSI mode is refused before a row moves, in either mode; one that
    does not is judged alike."""
    table = bench.table("t", "s STRING", "VALUES ('1'), ('x'), ('-1')")
    before = bench.rows(table)
    with settings(bench.session, {"spark.sql.ansi.enabled": ansi}):
        with pytest.raises(DeltacheckError):
            bench.upgrade(one_rule(table, "CAST(s AS INT) > 0"))
        assert (bench.rows(table), bench.held(table)) == (before, Counter())
        bench.upgrade(one_rule(table, "try_cast(s AS INT) > 0"))
    assert (bench.rows(table), bench.held(table)) == ({"('1',)": 1}, {"('x',)": 1, "('-1',)": 1})


def die_before_delete(number: int, when: str, what: str) -> None:
    """Die with a copy in the quarantine whose rows are still in the table."""
    if when == "before" and what.rsplit("/", 1)[-1] == "t":
        raise Killed


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["identity column", "generated column", "column mapping by name", "char and varchar"],
)
def test_is_settled_after_a_death(bench: Bench, name: str) -> None:
    """The fence that settling puts on a table fits its shape: no row, no value is needed."""
    shape = SHAPES[name]
    table = bench.table("t", shape.columns, shape.rows, shape.extra)
    before = bench.rows(table)
    with moments(die_before_delete), pytest.raises(Killed):
        bench.upgrade(one_rule(table, shape.rule))
    bench.upgrade(one_rule(table, shape.rule))
    assert bench.rows(table) + bench.held(table) == before
    assert sum(bench.held(table).values()) == shape.moved


@pytest.mark.slow
def test_a_table_by_its_path(bench: Bench, tmp_path: Path) -> None:
    """A path table, blanks and dots in its path; the quarantine is the folder beside it."""
    path = tmp_path / "some path.d" / "t"
    table = f"delta.`{path}`"
    bench.session.sql(f"CREATE TABLE {table} (id INT, a INT) USING delta")
    bench.session.sql(f"INSERT INTO {table} VALUES (1, 1), (2, -1), (2, -1)")
    with moments(die_before_delete), pytest.raises(Killed):
        bench.upgrade(one_rule(table, "a > 0"))
    bench.upgrade(one_rule(table, "a > 0"))
    assert bench.rows(table) == Counter({"(1, 1)": 1})
    assert bench.held(table) == Counter({"(2, -1)": 2})
    assert bench.quarantine(table).path == f"{path}_quarantine"


@pytest.mark.slow
def test_three_parts_and_mixed_case(bench: Bench) -> None:
    """Names are found in any case and with the catalog, and are shown as declared."""
    bench.table("Orders", "Id INT, Amount INT", "VALUES (1, 1), (2, -1)")
    declared = f"spark_catalog.{bench.database}.oRDERS"
    result = bench.upgrade(one_rule(declared, "AMOUNT > 0"))
    assert result.tables[0].table == declared
    assert bench.held(declared) == Counter({"(2, -1)": 1})


@pytest.mark.parametrize("bad", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_append_only_table(bench: Bench, bad: bool) -> None:
    """Without violators the constraint is added; with them the refusal comes before all else."""
    rows = "VALUES (1, 1), (2, -1)" if bad else "VALUES (1, 1)"
    table = bench.table("t", "id INT, a INT", rows, "TBLPROPERTIES ('delta.appendOnly' = 'true')")
    if not bad:
        bench.upgrade(one_rule(table, "a > 0"))
        assert list(bench.constraints(table)) == ["good"]
        return
    with pytest.raises(AppendOnlyError):
        bench.upgrade(one_rule(table, "a > 0"))
    assert bench.constraints(table) == {}
    assert [run.state for run in bench.journal.runs] == ["stopped"]


@pytest.mark.slow
def test_a_column_whose_type_changed_goes_on_beside_the_old_one(bench: Bench) -> None:
    """The quarantine keeps the old column and its values, and gains one of the new type."""
    table = bench.table("t", "id INT, a INT", "VALUES (1, 1), (2, -1)")
    first = one_rule(table, "a > 0")
    bench.upgrade(first)
    bench.downgrade(first, "base")
    bench.session.sql(f"CREATE OR REPLACE TABLE {table} (id INT, a STRING) USING delta")
    bench.session.sql(f"INSERT INTO {table} VALUES (3, 'x'), (4, '')")
    bench.upgrade(one_rule(table, "a != ''"))
    assert bench.held(table) == Counter({"(2, -1, None)": 1, "(4, None, '')": 1})
    assert bench.rows(table) == Counter({"(3, 'x')": 1})


SESSION = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "Pacific/Auckland",
    "spark.databricks.delta.properties.defaults.appendOnly": "true",
    "spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true",
    "spark.databricks.delta.properties.defaults.constraints.no": "id > 0",
}


@pytest.mark.slow
def test_settings_of_the_session_do_not_reach_the_verdict(bench: Bench) -> None:
    """Zone, ANSI mode, case and default table properties of the caller change nothing."""
    rows = (
        "VALUES (1, TIMESTAMP'2024-01-01 12:00:00'), (-2, TIMESTAMP'2023-12-31 12:00:00'), "
        "(-2, TIMESTAMP'2023-12-31 12:00:00')"
    )
    table = bench.table("t", "id INT, at TIMESTAMP", rows)
    before = bench.rows(table)
    kept = {key: bench.session.conf.get(key, None) for key in SESSION}
    for key, value in SESSION.items():
        bench.session.conf.set(key, value)
    try:
        bench.upgrade(one_rule(table, "AT >= TIMESTAMP'2024-01-01 00:00:00'"))
    finally:
        for key, old in kept.items():
            if old is None:
                bench.session.conf.unset(key)
            else:
                bench.session.conf.set(key, old)
    assert sum(bench.held(table).values()) == 2
    assert bench.rows(table) + bench.held(table) == before
    for own in (str(bench.quarantine(table)), f"{bench.environment.schema}.journal"):
        properties = bench.read(own).properties
        assert properties["delta.appendOnly"] == "false"
        assert properties["delta.enableChangeDataFeed"] == "false"
        assert bench.constraints(own) == {}


def test_plan_and_result_warn_of_streams(bench: Bench) -> None:
    """Who reads the table as a stream is told before and after that rows are deleted from it.

    No table knows its readers, so it is said wherever rows move.
    """
    table = bench.table("t", "id INT, a INT", "VALUES (1, 1), (2, -1)")
    history = one_rule(table, "a > 0")
    plan = bench.upgrade(history, dry_run=True)
    assert any("will be deleted" in n and "skipChangeCommits" in n for n in plan.notes)
    assert any("were deleted" in note for note in bench.upgrade(history).notes)


@pytest.mark.slow
def test_constraints_that_other_tools_stored_in_mixed_case(bench: Bench) -> None:
    """A key in capitals is found, kept where it is right, replaced and dropped.

    Kind of bug: DROP CONSTRAINT does not find it, and ADD makes a second one beside it.
    """
    upper = "TBLPROPERTIES ('delta.constraints.Upper' = 'a > 0')"
    table = bench.table("t", "id INT, a INT", "VALUES (1, 1), (2, 2)", upper)

    def second(op: Op) -> None:
        op.replace_check(table, "upper", "a > 1", gate="100%")

    history = chain(
        lambda op: op.add_check(table, "upper", "a > 0"),
        second,
        lambda op: op.drop_check(table, "upper"),
    )
    bench.upgrade(history, "0001")
    assert bench.constraints(table) == {"Upper": "a > 0"}
    bench.upgrade(history, "0002")
    assert bench.constraints(table) == {"upper": "a > 1"}
    bench.session.sql(f"ALTER TABLE {table} DROP CONSTRAINT upper")
    bench.upgrade(history)
    assert bench.constraints(table) == {}
