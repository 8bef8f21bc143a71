"""What is moved is what was deleted, row for row, even where SELECT and DELETE disagree."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from deltacheck.delta.commit import Fence
from deltacheck.delta.session import verdict_session
from deltacheck.delta.table import history, latest_version
from deltacheck.names import TableName
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.difference import rows_gone
from deltacheck.quarantine.layout import quarantine_name
from deltacheck.quarantine.move import Attempt, Moved, move

numbers = itertools.count(1)


def next_fence() -> Fence:
    return Fence("deltacheck-test", next(numbers))


@pytest.fixture
def ours(session: SparkSession) -> Iterator[SparkSession]:
    with verdict_session(session) as own_session:
        yield own_session


def attempt_of(rules: dict[str, str], **more: str) -> Attempt:
    return Attempt(id=uuid4().hex, run="run", revision="0001", rules=rules, named=more)


def moved_from(session: SparkSession, table: str, attempt: Attempt) -> Moved:
    name = TableName.parse(table)
    place = quarantine_name(name)
    return move(session, name, place, attempt, latest_version(session, name), next_fence)


def rows_of(session: SparkSession, sql: str) -> Counter[str]:
    return Counter(repr(tuple(row)) for row in session.sql(sql).collect())


def held_in(session: SparkSession, table: str, columns: str) -> Counter[str]:
    return rows_of(session, f"SELECT {columns} FROM {quarantine_name(TableName.parse(table)).sql}")


TRICKY = "id INT, m MAP<STRING, INT>, v VARIANT, x DOUBLE, at TIMESTAMP_NTZ, s STRUCT<a: INT>"
SHOWN = "id, m, to_json(v), x, at, s"
TRICKY_ROWS = """
    SELECT 1, map('a', 1), parse_json('{"k": 1}'), 0.0D,
        TIMESTAMP_NTZ'2024-01-01 00:00:00.000001', named_struct('a', CAST(NULL AS INT))
    UNION ALL SELECT 1, map('a', 1), parse_json('{"k": 1}'), -0.0D,
        TIMESTAMP_NTZ'2024-01-01 00:00:00.000001', named_struct('a', CAST(NULL AS INT))
    UNION ALL SELECT 1, map('a', 1), parse_json('{"k": 1}'), 0.0D,
        TIMESTAMP_NTZ'2024-01-01 00:00:00.000002', NULL
    UNION ALL SELECT 2, map('b', NULL), parse_json('null'), double('NaN'), NULL, NULL
    UNION ALL SELECT 2, map('b', NULL), parse_json('null'), double('NaN'), NULL, NULL
    UNION ALL SELECT 3, NULL, NULL, double('-Infinity'), NULL, NULL
    UNION ALL SELECT 4, map(), parse_json('"1"'), NULL, NULL, NULL
    UNION ALL SELECT 4, map(), parse_json('1'), NULL, NULL, NULL
"""


@pytest.fixture
def tricky(session: SparkSession, database: str) -> str:
    """Rows that differ only where a careless comparison takes them for the same."""
    table = f"{database}.tricky"
    session.sql(f"CREATE TABLE {table} ({TRICKY}) USING delta")
    session.sql(f"INSERT INTO {table} {TRICKY_ROWS}")
    return table


@pytest.mark.parametrize(
    "where",
    [
        "CAST(x AS STRING) = '-0.0'",
        "at = TIMESTAMP_NTZ'2024-01-01 00:00:00.000002'",
        "id = 2",
        "id >= 2",
        "schema_of_variant(v) = 'BIGINT'",
    ],
)
def test_the_difference_of_two_versions_is_what_a_delete_took(
    ours: SparkSession, tricky: str, where: str
) -> None:
    """Maps, variants, NaN, negative zero, microseconds: no row is taken for another."""
    name = TableName.parse(tricky)
    wanted = rows_of(ours, f"SELECT {SHOWN} FROM {tricky} WHERE {where}")
    before = latest_version(ours, name)
    ours.sql(f"DELETE FROM {tricky} WHERE {where}")
    gone = rows_gone(ours, name, before, before + 1).selectExpr(*SHOWN.split(", "))
    assert Counter(repr(tuple(row)) for row in gone.collect()) == wanted
    assert wanted


@dataclass(frozen=True)
class Fickle(Attempt):
    """An attempt whose predicate means other rows each time that it is used."""

    meanings: list[str] = field(default_factory=list)

    @property
    def where(self) -> str:
        return self.meanings.pop(0)


@pytest.mark.parametrize(
    ("copied", "again"),
    [("id = 3", "id = 3"), ("id <= 3", "id <= 3"), ("false", "id = 1"), ("id < 3", "id < 3")],
)
def test_where_select_and_delete_disagree_the_delete_is_followed(
    ours: SparkSession, tricky: str, copied: str, again: str
) -> None:
    """Whatever a SELECT of the same predicate says, exactly what was deleted is quarantined."""
    deleted = "id >= 2 AND (x != x OR x IS NULL)"
    before = rows_of(ours, f"SELECT {SHOWN} FROM {tricky}")
    wanted = rows_of(ours, f"SELECT {SHOWN} FROM {tricky} WHERE {deleted}")
    attempt = Fickle(uuid4().hex, "run", "0001", {"r": "id > 9"}, {}, [copied, deleted, again])
    done = moved_from(ours, tricky, attempt)
    assert done.rows == sum(wanted.values())
    assert held_in(ours, tricky, SHOWN) == wanted
    assert rows_of(ours, f"SELECT {SHOWN} FROM {tricky}") == before - wanted


def test_a_rule_of_the_clock_moves_what_its_delete_took(ours: SparkSession, database: str) -> None:
    """The clock goes on between SELECT and DELETE, so the copy is made from what was deleted."""
    table = f"{database}.t"
    ours.sql(f"CREATE TABLE {table} (id INT, at TIMESTAMP) USING delta")
    ours.sql(
        f"INSERT INTO {table} VALUES (1, TIMESTAMP'2020-01-01'), (2, TIMESTAMP'9000-01-01'), "
        "(2, TIMESTAMP'9000-01-01'), (3, NULL)"
    )
    attempt = attempt_of({"past": "at <= current_timestamp()"})
    assert attempt.uses_clock
    assert moved_from(ours, table, attempt).rows == 3
    assert held_in(ours, table, "id") == Counter({"(2,)": 2, "(3,)": 1})
    place = quarantine_name(TableName.parse(table))
    assert [entry.operation for entry in history(ours, place, limit=2)] == ["WRITE", "WRITE"]


def test_a_row_carries_every_rule_that_it_breaks(ours: SparkSession, database: str) -> None:
    """Also those that other revisions of the run are to add, and after a repair as well."""
    table = f"{database}.t"
    ours.sql(f"CREATE TABLE {table} (id INT, a INT) USING delta")
    ours.sql(f"INSERT INTO {table} VALUES (1, 1), (-1, -1), (2, -2)")
    attempt = Fickle(
        uuid4().hex, "run", "1", {"a": "a > 0"}, {"id": "id > 0"}, ["false", "a < 0", "a < 0"]
    )
    moved_from(ours, table, attempt)
    assert held_in(ours, table, f"id, array_join({own.RULES}, ' ')") == Counter(
        {"(-1, 'a id')": 1, "(2, 'a')": 1}
    )


A, B, S, D = (
    st.none() | st.integers(-2, 3),
    st.none() | st.sampled_from([0.0, -0.0, 1.5, -1.5, float("nan"), float("inf")]),
    st.none() | st.sampled_from(["", "a", "A", "b%", "it's"]),
    st.none() | st.sampled_from(["2024-01-01", "2024-06-30", "1900-01-01"]),
)
ATOMS = st.sampled_from(
    [
        "a > 0",
        "a <= 2",
        "a != 1",
        "a IN (1, 2)",
        "a NOT IN (0, NULL)",
        "a BETWEEN 0 AND 2",
        "a IS NOT NULL",
        "b >= 0",
        "b < 1.5",
        "NOT isnan(b)",
        "b = 0",
        "s = 'a'",
        "s LIKE 'b%'",
        "s IS NOT NULL",
        "length(s) > 0",
        "coalesce(s, 'x') != 'x'",
        "d >= DATE'2024-01-01'",
        "a <=> 1",
        "CAST(a AS DOUBLE) > b",
        "if(a > 0, b > 0, s IS NOT NULL)",
    ]
)
RULES = st.recursive(
    ATOMS,
    lambda inner: (
        st.builds("({}) AND ({})".format, inner, inner)
        | st.builds("({}) OR ({})".format, inner, inner)
        | st.builds("NOT ({})".format, inner)
    ),
    max_leaves=4,
)


def _literal(value: object, kind: str) -> str:
    if value is None:
        return f"CAST(NULL AS {kind})"
    if kind == "STRING":
        return '"' + str(value) + '"'
    return f"CAST('{value}' AS {kind})"


@pytest.mark.slow
@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    rows=st.lists(st.tuples(A, B, S, D), min_size=1, max_size=12),
    rules=st.lists(RULES, min_size=1, max_size=3, unique=True),
    vectors=st.booleans(),
    partition=st.sampled_from([None, "s", "a", "d"]),
)
def test_moved_rows_are_those_of_the_oracle(
    ours: SparkSession,
    database: str,
    rows: list[tuple[object, ...]],
    rules: list[str],
    vectors: bool,
    partition: str | None,
) -> None:
    """Of random rows, rules and tables ``(rule) IS NOT TRUE`` is moved, and the rest stays."""
    table = f"{database}.t{uuid4().hex[:8]}"
    kinds = ("INT", "DOUBLE", "STRING", "DATE")
    values = ", ".join(
        "(" + ", ".join(map(_literal, row, kinds)) + ")" for row in (*rows, *rows[:2])
    )
    ours.sql(
        f"CREATE TABLE {table} (a INT, b DOUBLE, s STRING, d DATE) USING delta "
        f"{'' if partition is None else f'PARTITIONED BY ({partition})'} "
        f"TBLPROPERTIES ('delta.enableDeletionVectors' = '{str(vectors).lower()}')"
    )
    ours.sql(f"INSERT INTO {table} VALUES {values}")
    oracle = " OR ".join(f"({rule}) IS NOT TRUE" for rule in rules)
    bad = rows_of(ours, f"SELECT * FROM {table} WHERE {oracle}")
    good = rows_of(ours, f"SELECT * FROM {table} WHERE NOT ({oracle})")
    attempt = attempt_of({f"r{place}": rule for place, rule in enumerate(rules)})
    assert moved_from(ours, table, attempt).rows == sum(bad.values())
    assert held_in(ours, table, "a, b, s, d") == bad
    assert rows_of(ours, f"SELECT * FROM {table}") == good
