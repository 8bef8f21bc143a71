"""The rows that one version of a table has and a later one lacks, each as often as it is gone.

The last word where a SELECT and a DELETE disagree about a predicate. EXCEPT ALL refuses maps
and variants and takes -0.0 for 0.0, so rows are compared by a key of our own: equal for two rows
exactly if nothing tells them apart. Knows nothing of rules.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructType,
    VariantType,
)

from deltacheck.delta.table import frame
from deltacheck.names import TableName, quote

_KEY, _ROW, _NTH = "_key", "_row", "_nth"


def rows_gone(session: SparkSession, table: TableName, before: int, after: int) -> DataFrame:
    """The rows, with multiplicity, that a version has and a later one lacks.

    Reads both versions whole.
    """
    left, right = _numbered(session, table, before), _numbered(session, table, after)
    gone = left.join(right.select(_KEY, _NTH), [_KEY, _NTH], "left_anti")
    return gone.select(f"{_ROW}.*")


def _numbered(session: SparkSession, table: TableName, version: int) -> DataFrame:
    rows = frame(session, table, version)
    fields = [comparable(quote(field.name), field.dataType) for field in rows.schema.fields]
    keyed = rows.selectExpr(f"struct({', '.join(fields)}) AS {_KEY}", f"struct(*) AS {_ROW}")
    nth = f"row_number() OVER (PARTITION BY {_KEY} ORDER BY 1) AS {_NTH}"
    return keyed.selectExpr("*", nth)


def comparable(value: str, dtype: DataType, depth: int = 0) -> str:
    """SQL for a value that Spark groups and joins by without taking two values for one.

    Args:
        value: SQL of the value.
        depth: How many lambdas are around it.

    >>> comparable("`a`", DoubleType())
    'CAST(`a` AS STRING)'
    """
    each = f"x{depth}"
    if isinstance(dtype, (FloatType, DoubleType)):
        # Grouping takes -0.0 for 0.0; the text of a number tells any two apart.
        return f"CAST({value} AS STRING)"
    if isinstance(dtype, StringType):
        return value if dtype.simpleString() == "string" else f"CAST({value} AS BINARY)"
    if isinstance(dtype, VariantType):
        return _unless_null(value, f"struct(schema_of_variant({value}), to_json({value}))")
    if isinstance(dtype, StructType):
        fields = [
            comparable(f"{value}.{quote(field.name)}", field.dataType, depth)
            for field in dtype.fields
        ]
        return _unless_null(value, f"struct({', '.join(fields)})")
    if isinstance(dtype, ArrayType):
        element = comparable(each, dtype.elementType, depth + 1)
        return value if element == each else f"transform({value}, {each} -> {element})"
    if isinstance(dtype, MapType):
        # A rewritten row keeps the order of its entries.
        key = comparable(f"{each}.key", dtype.keyType, depth + 1)
        entry = comparable(f"{each}.value", dtype.valueType, depth + 1)
        return f"transform(map_entries({value}), {each} -> struct({key}, {entry}))"
    return value


def _unless_null(value: str, sql: str) -> str:
    return f"CASE WHEN {value} IS NOT NULL THEN {sql} END"
