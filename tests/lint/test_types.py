"""Where comparing converts the column. The oracle is Spark's analyser."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlglot import parse_one

from deltacheck.lint.types import converts, literal_of
from tests.lint.projects import lint_check

NUMBERS = (
    *("10", "-10", "5Y", "5S", "10L", "3000000000", "10.5", "10.555", "0.00001", "10BD"),
    *("123456789.5", "1e1", "10D", "10.5F"),
)
TIMES = (
    "DATE'2024-01-01'",
    "TIMESTAMP'2024-01-01 00:00:00'",
    "TIMESTAMP_NTZ'2024-01-01 00:00:00'",
    "'2024-01-01'",
)

COMPARABLE = {
    **dict.fromkeys(["tinyint", "smallint", "int", "bigint", "float", "double"], (*NUMBERS, "'1'")),
    **dict.fromkeys(["decimal(10,2)", "decimal(5,0)", "decimal(38,10)"], (*NUMBERS, "'1'")),
    **dict.fromkeys(["date", "timestamp", "timestamp_ntz"], TIMES),
    **dict.fromkeys(["string", "varchar(10)"], (*NUMBERS, *TIMES, "TRUE")),
    "boolean": ("TRUE", "'true'"),
}


def converted_by_spark(spark: SparkSession, column: str, literals: tuple[str, ...]) -> list[bool]:
    """Whether Spark's analysed plan casts the column, for each comparison with a literal."""
    view = f"SELECT CAST(NULL AS {column}) AS c FROM range(1)"
    compared = ", ".join(f"(c > {text}) AS r{index}_" for index, text in enumerate(literals))
    plan = spark.sql(f"EXPLAIN EXTENDED SELECT {compared} FROM ({view})").collect()[0][0]
    analysed = plan.partition("== Analyzed Logical Plan ==")[2].partition("\nProject [")[2]
    found = []
    for index in range(len(literals)):
        before, _, analysed = analysed.partition(f" AS r{index}_#")
        found.append("cast(c#" in before)
    return found


@pytest.mark.parametrize("column", COMPARABLE)
def test_a_column_is_converted_where_spark_converts_it(spark: SparkSession, column: str) -> None:
    literals = COMPARABLE[column]

    expected = converted_by_spark(spark, column, literals)

    found = []
    for text in literals:
        literal = literal_of(parse_one(text, dialect="spark"))
        assert literal is not None
        found.append(converts(column, literal))
    assert dict(zip(literals, found, strict=True)) == dict(zip(literals, expected, strict=True))


@pytest.mark.parametrize(
    ("check", "kind", "fires"),
    [
        ("amount < 10L", "int", True),
        ("10L > amount", "int", True),
        ("amount < 10", "bigint", False),
        ("amount < -10.5", "int", True),
        ("AMOUNT < 10L", "INT", True),
        ("amount < '10'", "int", True),
        ("d > '2024-01-01'", "date", False),
        ("s.amount < 10L", "int", True),
        ("amount + 1 < 10L", "int", False),
        ("amount < other", "int", False),
        ("amount < 10", "struct<a:int>", False),
        ("amount < 10L", "unheard_of", False),
    ],
)
def test_the_lint_knows_the_columns_type(
    tmp_path: Path, check: str, kind: str, fires: bool
) -> None:
    types = dict.fromkeys(["amount", "d", "s.amount"], kind)

    assert ("DC112" in lint_check(tmp_path, check, types=types)) is fires


def test_a_name_of_a_type_is_read_as_people_write_it() -> None:
    literal = literal_of(parse_one("10L", dialect="spark"))

    assert literal is not None
    assert [converts(kind, literal) for kind in ("INTEGER", "LONG", "Decimal(10, 2)")] == [
        True,
        False,
        False,
    ]
    assert literal.type == "bigint"
