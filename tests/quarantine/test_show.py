"""`quarantine show` and `quarantine export`: values, because somebody asked for them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltacheck import quarantine
from deltacheck.errors import ExpressionError, UsageError
from tests.quarantine.held import hold, make_table

pytestmark = pytest.mark.slow

COLUMNS = (
    "id BIGINT, amount DECIMAL(20, 2), note STRING, at TIMESTAMP, day DATE, raw BINARY, "
    "tags ARRAY<STRING>, s STRUCT<`a b`: INT, c: STRING>, m MAP<STRING, INT>, d DOUBLE"
)
NAMES = ("id", "amount", "note", "at", "day", "raw", "tags", "s", "m", "d")
ROW = """(
    1, CAST(-12345678901234567.50 AS DECIMAL(20, 2)), 'a "quoted", text\n', \
    TIMESTAMP '2026-01-02 03:04:05.678901Z', DATE '2026-01-02', X'00FF', array('x', NULL), \
    named_struct('a b', 1, 'c', CAST(NULL AS STRING)), map('k', 1), double('NaN'))"""
EMPTY = "(2, NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL)"


@pytest.fixture
def table(session: SparkSession, database: str) -> str:
    """A table with a row of every kind of value in quarantine, and one of NULLs."""
    name = f"{database}.orders"
    more = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    make_table(session, name, COLUMNS, {"amount_positive": "amount > 0"}, more)
    hold(session, name, f"{ROW}, {EMPTY}", columns=NAMES, attempt="b1")
    return name


def test_rows_are_shown_as_json_has_them(any_spark: SparkSession, table: str) -> None:
    """Times in UTC, decimals as text, so that no digit is lost."""
    found = quarantine.show(table, where="id = 1", session=any_spark)

    assert found.columns == ("_deltacheck_rules", *NAMES)
    assert found.total == 1
    assert dict(found.rows[0]) == {
        "_deltacheck_rules": ["amount_positive"],
        "id": 1,
        "amount": "-12345678901234567.50",
        "note": 'a "quoted", text\n',
        "at": "2026-01-02T03:04:05.678901Z",
        "day": "2026-01-02",
        "raw": "AP8=",
        "tags": ["x", None],
        "s": {"a b": 1, "c": None},
        "m": {"k": 1},
        "d": "NaN",
    }


def test_columns_and_rows_can_be_chosen(session: SparkSession, table: str) -> None:
    """Columns in any case, deltacheck's own among them; at most so many rows."""
    found = quarantine.show(table, columns=["ID", "_deltacheck_attempt"], limit=1, session=session)

    assert found.columns == ("id", "_deltacheck_attempt")
    assert (len(found.rows), found.total) == (1, 2)
    assert found.rows[0]["_deltacheck_attempt"] == "b1"
    assert quarantine.show(table, state="released", session=session).rows == ()
    assert quarantine.show(table, state="all", session=session).total == 2
    with pytest.raises(UsageError, match="price"):
        quarantine.show(table, columns=["price"], session=session)
    with pytest.raises(ExpressionError):
        quarantine.show(table, where="price > 0", session=session)


def test_csv_is_one_file_that_any_reader_reads(
    any_spark: SparkSession, table: str, tmp_path: Path
) -> None:
    """Nested values are JSON, bytes base64; an empty text is not a missing one."""
    path = tmp_path / "rows.csv"

    done = quarantine.export(table, path, columns=NAMES, session=any_spark)

    assert (done.format, done.rows) == ("csv", 2)
    (file,) = path.glob("part-*.csv")
    with file.open(newline="", encoding="utf-8") as text:
        rows = {row["id"]: row for row in csv.DictReader(text)}
    assert rows["1"] == {
        "id": "1",
        "amount": "-12345678901234567.50",
        "note": 'a "quoted", text\n',
        "at": "2026-01-02T03:04:05.678901Z",
        "day": "2026-01-02",
        "raw": "AP8=",
        "tags": '["x",null]',
        "s": '{"a b":1,"c":null}',
        "m": '{"k":1}',
        "d": "NaN",
    }
    assert '2,,"",,,,,,,' in file.read_text(encoding="utf-8").splitlines()


def test_json_and_parquet_keep_types_and_refuse_to_overwrite(
    session: SparkSession, table: str, tmp_path: Path
) -> None:
    """What is there already stays as it is."""
    as_json, as_parquet = tmp_path / "rows.json", tmp_path / "rows"

    quarantine.export(table, as_json, where="id = 1", session=session)
    quarantine.export(table, as_parquet, format="parquet", session=session)

    (file,) = as_json.glob("part-*.json")
    row = json.loads(file.read_text(encoding="utf-8"))
    assert row["s"] == {"a b": 1, "c": None}
    assert row["_deltacheck_state"] == "held"
    held = session.table(f"{table}_quarantine")
    back = session.read.parquet(str(as_parquet))
    assert back.schema.names == held.schema.names
    assert back.select("s", "amount").schema == held.select("s", "amount").schema
    assert back.count() == 2
    with pytest.raises(UsageError, match="already"):
        quarantine.export(table, as_json, session=session)
    with pytest.raises(UsageError, match="format"):
        quarantine.export(table, tmp_path / "rows.xlsx", session=session)
