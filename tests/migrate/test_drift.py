"""Why a constraint is not as it was applied: found in what Delta's history says of commits.

The commits here are written as Delta 4.4 writes them; that it does is what the last test holds
against real tables.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from pyspark.sql import SparkSession

from deltacheck.delta.table import Commit, history, read_table
from deltacheck.migrate.drift import Drift, cause_of_check, cause_of_not_null, find_cause, requires
from deltacheck.names import TableName

SPARK = "Apache-Spark/4.2.0 Delta-Lake/4.4.0"
START = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)


def log(*operations: tuple[str, dict[str, str | None]], first: int = 0) -> list[Commit]:
    """A table's history, newest first."""
    return [
        Commit(
            version=version,
            at=START + timedelta(minutes=version),
            operation=operation,
            read_version=version - 1 if version else None,
            parameters=parameters,  # type: ignore[arg-type]  # Delta gives null for some
            metrics={},
            user_metadata=None,
            engine=SPARK,
        )
        for version, (operation, parameters) in enumerate(operations, first)
    ][::-1]


def create(**constraints: str) -> tuple[str, dict[str, str | None]]:
    """CREATE TABLE with constraints as properties."""
    keys = {f"delta.constraints.{name}": text for name, text in constraints.items()}
    return "CREATE TABLE", {"description": None, "properties": json.dumps(keys)}


def replaced(saved: bool = False, **constraints: str) -> tuple[str, dict[str, str | None]]:
    """CREATE OR REPLACE TABLE, or what saveAsTable in mode overwrite makes of it."""
    parameters = create(**constraints)[1]
    if saved:
        parameters |= {"isV1SaveAsTableOverwrite": "true", "canOverwriteSchema": "true"}
    return "CREATE OR REPLACE TABLE AS SELECT" if saved else "CREATE OR REPLACE TABLE", parameters


def add(name: str = "Pos", text: str = "amount > 0") -> tuple[str, dict[str, str | None]]:
    """ADD CONSTRAINT; the name as it was typed."""
    return "ADD CONSTRAINT", {"name": name, "expr": text}


def drop(name: str = "POS") -> tuple[str, dict[str, str | None]]:
    """DROP CONSTRAINT."""
    return "DROP CONSTRAINT", {"name": name, "existed": "true"}


def unset(name: str = "pos") -> tuple[str, dict[str, str | None]]:
    """UNSET TBLPROPERTIES."""
    return "UNSET TBLPROPERTIES", {"properties": json.dumps([f"delta.constraints.{name}"])}


def restore(version: int | None) -> tuple[str, dict[str, str | None]]:
    """RESTORE to a version; None: to a time."""
    return "RESTORE", {"version": None if version is None else str(version), "timestamp": None}


WRITE: tuple[str, dict[str, str | None]] = ("WRITE", {"mode": "Append"})
OVERWRITE: tuple[str, dict[str, str | None]] = ("WRITE", {"mode": "Overwrite"})
CLONE: tuple[str, dict[str, str | None]] = ("CLONE", {"source": "elsewhere"})


@pytest.mark.parametrize(
    ("operations", "cause", "version"),
    [
        ([create(), add(), drop()], "dropped", 2),
        ([create(), add(), WRITE, drop(), WRITE], "dropped", 3),
        ([create(), add(), drop("other")], "unknown", None),
        ([create(), add(), unset()], "unset", 2),
        ([create(Pos="amount > 0"), unset()], "unset", 1),
        ([create(), add(), replaced()], "replaced", 2),
        ([create(), add(), replaced(other="a > 1")], "replaced", 2),
        ([create(), add(), replaced(saved=True)], "schema_overwritten", 2),
        ([create(), add(), restore(0)], "restored", 2),
        ([create(), add(), drop(), restore(0)], "dropped", 2),
        ([create(), add(), drop(), replaced(), restore(2)], "dropped", 2),
        ([create(), add(), drop(), add(), drop()], "dropped", 4),
        ([create(), add(), drop(), restore(1), unset()], "unset", 4),
        ([create(), WRITE], "never_added", None),
        ([create(), add("other")], "never_added", None),
        ([create(), add(), CLONE], "unknown", None),
        ([create(), add(), restore(None)], "unknown", None),
    ],
)
def test_why_a_check_is_gone(
    operations: list[tuple[str, dict[str, str | None]]], cause: str, version: int | None
) -> None:
    """The last commit that changed it, not the last that could have."""
    found = cause_of_check(log(*operations), "pos", None)
    assert (found.cause, found.version) == (cause, version)


def test_what_an_overwrite_keeps_is_no_cause() -> None:
    """saveAsTable in mode overwrite lists the constraints that it keeps."""
    commits = log(create(), add(), replaced(saved=True, pos="amount > 0"), drop())
    assert cause_of_check(commits, "pos", None).version == 3


@pytest.mark.parametrize(
    ("operations", "cause", "version"),
    [
        ([create(), add(), drop(), add(text="amount > 5")], "changed", 3),
        ([create(), add(), replaced(pos="amount > 5")], "replaced", 2),
        ([create(), add(text="amount > 5"), drop(), add(), restore(1)], "restored", 4),
    ],
)
def test_why_a_check_is_another_one(
    operations: list[tuple[str, dict[str, str | None]]], cause: str, version: int
) -> None:
    """A constraint of the name is there, with another expression."""
    found = find_cause(log(*operations), "POS", "amount > 5")
    assert (found.cause, found.version) == (cause, version)


@pytest.mark.parametrize(
    ("operations", "cause", "version"),
    [
        ([create(), WRITE, add()], "added", 2),
        ([create(pos="amount > 0"), WRITE], "added", 0),
        ([create(), add(), drop(), restore(1)], "restored", 3),
        ([create(), CLONE], "unknown", None),
    ],
)
def test_where_an_unmanaged_check_comes_from(
    operations: list[tuple[str, dict[str, str | None]]], cause: str, version: int | None
) -> None:
    """Added by hand, with the table, or back by RESTORE."""
    found = cause_of_check(log(*operations), "pos", "amount > 0")
    assert (found.cause, found.version) == (cause, version)


def test_a_log_that_was_cleaned_up_tells_what_is_left() -> None:
    """What happened after its oldest entry is known; what came before is not guessed."""
    assert cause_of_check(log(WRITE, drop(), first=40), "pos", None).version == 41
    assert cause_of_check(log(WRITE, WRITE, first=40), "pos", None).cause == "unknown"
    assert cause_of_check(log(WRITE, restore(12), first=40), "pos", None).cause == "unknown"
    assert cause_of_check(log(WRITE, first=40), "pos", "amount > 0").cause == "unknown"
    assert cause_of_check([], "pos", None).cause == "never_added"


def test_parameters_that_are_no_json_are_no_error() -> None:
    """Another tool may write anything there."""
    commits = log(create(), add(), ("UNSET TBLPROPERTIES", {"properties": "pos"}), drop())
    assert cause_of_check(commits, "pos", None).version == 3
    broken = log(create(), ("UNSET TBLPROPERTIES", {"properties": '{"a": 1}'}))
    assert cause_of_check(broken, "pos", None).cause == "never_added"


@pytest.mark.parametrize(
    ("operation", "cause"),
    [
        (("CHANGE COLUMN", {"column": "{}"}), "dropped"),
        (OVERWRITE, "schema_overwritten"),
        (replaced(saved=True), "schema_overwritten"),
        (replaced(), "replaced"),
        (restore(0), "restored"),
        (CLONE, "replaced"),
    ],
)
def test_why_a_not_null_is_gone(operation: tuple[str, dict[str, str | None]], cause: str) -> None:
    """The last commit before which the schema had it."""
    commits = log(create(), OVERWRITE, operation, WRITE, OVERWRITE)
    found = cause_of_not_null(commits, lambda version: version < 2)
    assert (found.cause, found.version) == (cause, 2)


def test_a_not_null_that_cannot_be_followed_back() -> None:
    """An old version that cannot be read any more, and a table that never had it."""
    commits = log(create(), OVERWRITE)
    assert cause_of_not_null(commits, lambda _: None).cause == "unknown"
    assert cause_of_not_null(commits, lambda _: False).cause == "never_added"
    assert cause_of_not_null(log(WRITE, first=7), lambda _: False).cause == "unknown"


def test_other_tools_and_other_runs_are_named() -> None:
    """The engine where it is not Delta on Spark; the run where deltacheck itself did it."""
    commits = log(create(), add(), drop())
    by_other = [replace(commits[0], engine="delta-rs:py-1.6.0"), *commits[1:]]
    assert cause_of_check(by_other, "pos", None).sentence == (
        "dropped by hand: DROP CONSTRAINT, version 2, 2026-05-01 12:02 UTC, by delta-rs:py-1.6.0"
    )
    metadata = json.dumps({"deltacheck": {"run": "r7"}})
    by_us = [replace(commits[0], user_metadata=metadata), *commits[1:]]
    found = cause_of_check(by_us, "pos", None)
    assert found.run == "r7"
    assert "run r7 of deltacheck" in found.sentence
    assert Drift("never_added").sentence == "this table never had it"


def test_deltas_own_history_is_read_right(spark: SparkSession, database: str) -> None:
    """On a real table, each way of losing a constraint is found with its version."""
    name = TableName.parse(f"{database}.t")
    sql = spark.sql
    expected = []

    def lose(key: str, cause: str, statement: str | None) -> None:
        if statement is None:
            frame = spark.table(name.sql).write.format("delta").mode("overwrite")
            frame.option("overwriteSchema", "true").saveAsTable(str(name))
        else:
            sql(statement)
        expected.append((key, cause, history(spark, name, limit=1)[0].version))

    sql(
        f"CREATE TABLE {name} (id INT NOT NULL, a INT, s STRUCT<b: INT NOT NULL>) USING delta "
        "TBLPROPERTIES ('delta.constraints.Made' = 'a > -9')"
    )
    for key in ("dropped", "unset", "replaced"):
        sql(f"ALTER TABLE {name} ADD CONSTRAINT {key.title()} CHECK (a > 0)")
    lose("dropped", "dropped", f"ALTER TABLE {name} DROP CONSTRAINT DROPPED")
    lose("unset", "unset", f"ALTER TABLE {name} UNSET TBLPROPERTIES ('delta.constraints.unset')")
    lose("s.b", "dropped", f"ALTER TABLE {name} ALTER COLUMN s.b DROP NOT NULL")
    sql(f"ALTER TABLE {name} ADD CONSTRAINT restored CHECK (a > 1)")
    before = history(spark, name, limit=1)[0].version - 1
    lose("restored", "restored", f"RESTORE TABLE {name} TO VERSION AS OF {before}")
    lose("id", "schema_overwritten", None)
    replacing = f"CREATE OR REPLACE TABLE {name} (id INT, a INT) USING delta"
    lose("replaced", "replaced", replacing)
    expected.append(("made", "replaced", expected[-1][2]))

    table, commits = read_table(spark, name), history(spark, name)
    assert table.constraints == {}
    found = []
    for key, _, _ in expected:
        column = tuple(key.split(".")) if key in ("id", "s.b") else ("?",)
        drift = find_cause(commits, key, None, requires(spark, name, column))
        found.append((key, drift.cause, drift.version))
    assert found == expected
    now = datetime.now(timezone.utc)
    at = cause_of_check(commits, "made", None).at
    assert at is not None
    assert abs(now - at) < timedelta(minutes=20)
