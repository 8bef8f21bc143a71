"""A batch as the table would hold it: what Delta looks at when it checks a row.

Delta casts a batch to the table's types by name, fills in defaults and generated columns, and
reads an empty string in a partition column as NULL, all before it checks constraints
(`TransactionalWrite.writeFiles`). A verdict on the batch as it came would differ. Knows
nothing of rules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
)

from deltacheck.delta.failures import EngineFailure
from deltacheck.delta.table import Definition, partition_columns, read_table
from deltacheck.names import quote
from deltacheck.quarantine.layout import ddl, plain

BATCH = "_deltacheck_batch"
"""The struct that holds a row as it came, where it is seen otherwise."""

_DEFAULT = "CURRENT_DEFAULT"
_GENERATED = "delta.generationExpression"
_IDENTITY = "delta.identity.start"
_COMPUTED = ("generatedColumns", "identityColumns")
_LEGACY_COMPUTED = range(4, 7)
"""Writer versions that imply generated columns, or identity columns too (Delta's protocol)."""


@dataclass(frozen=True)
class Seen:
    """How a batch is seen by its table.

    Attributes:
        columns: Column, as the table or else the batch names it, to SQL over the batch.
        generated: Column to SQL over ``columns``.
        unknown: Columns, in lower case, whose values nobody knows before the write.
        missing: Columns of the table, in lower case, that the batch lacks and nothing fills.
        as_it_came: Whether the batch is seen as it is.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    generated: Mapping[str, str] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    as_it_came: bool = True


AS_IT_CAME = Seen()


def seen_by(
    session: SparkSession,
    df: DataFrame,
    table: Definition,
    *,
    widening: bool,
    computing: bool = True,
) -> Seen:
    """How a table sees a batch.

    Args:
        widening: Whether the write may change the table's columns (``mergeSchema``).
        computing: Whether to find out, by a Spark job, how the table computes columns that the
            batch lacks; else their values are unknown.
    """
    given = {column.name.lower(): column for column in df.schema.fields}
    columns: dict[str, str] = {}
    lacking: list[StructField] = []
    same = True
    partitions = _string_partitions(session, table, given)
    for column in table.schema.fields:
        came = given.pop(column.name.lower(), None)
        if came is None:
            lacking.append(column)
            continue
        value = _fit(quote(came.name), came.dataType, column.dataType, widening)
        if column.name in partitions:
            value = f"nullif({value}, '')"
        same = same and value == quote(came.name)
        columns[column.name] = value
    columns |= {came.name: quote(came.name) for came in given.values()}
    computed: dict[str, str | None] | None = {}
    if lacking and _may_compute(table):
        computed = _computed(session, table) if computing else None
    untold = computed is None
    generated: dict[str, str] = {}
    unknown: set[str] = set()
    missing: set[str] = set()
    for column in lacking:
        default = column.metadata.get(_DEFAULT)
        if default is None and (untold or column.name in (computed or ())):
            expression = (computed or {}).get(column.name)
            if expression is None:
                unknown.add(column.name.lower())
            else:
                generated[column.name] = f"CAST(({expression}) AS {ddl(column.dataType)})"
            continue
        if default is None:
            missing.add(column.name.lower())
        columns[column.name] = f"CAST(({default or 'NULL'}) AS {ddl(column.dataType)})"
    return Seen(columns, generated, frozenset(unknown), frozenset(missing), same and not lacking)


def _string_partitions(
    session: SparkSession, table: Definition, given: Mapping[str, StructField]
) -> frozenset[str]:
    strings = frozenset(
        column.name
        for column in table.schema.fields
        if isinstance(column.dataType, StringType) and column.name.lower() in given
    )
    if not strings:
        return frozenset()
    return strings & frozenset(partition_columns(session, table.name))


def _may_compute(table: Definition) -> bool:
    """Whether the table's protocol allows for generated or identity columns."""
    writer = int(table.properties.get("delta.minWriterVersion", 0))
    named = any(f"delta.feature.{feature}" in table.properties for feature in _COMPUTED)
    return named or writer in _LEGACY_COMPUTED


def view(df: DataFrame, seen: Seen, *kept: str) -> DataFrame:
    """The rows of a batch as the table sees them.

    Args:
        kept: SQL of further columns over the batch.
    """
    if seen.as_it_came:
        return df.selectExpr("*", *kept) if kept else df
    rows = df.selectExpr(
        *kept, *(f"{value} AS {quote(name)}" for name, value in seen.columns.items())
    )
    if not seen.generated:
        return rows
    return rows.selectExpr(
        "*", *(f"{value} AS {quote(name)}" for name, value in seen.generated.items())
    )


def _fit(value: str, came: DataType, wanted: DataType, widening: bool) -> str:
    """SQL for a value in the table's type: by name at every depth, as a write resolves it."""
    if plain(came) == plain(wanted):
        return value
    if isinstance(came, StructType) and isinstance(wanted, StructType):
        return _fit_struct(value, came, wanted, widening)
    if isinstance(came, ArrayType) and isinstance(wanted, ArrayType):
        item = _fit("x", came.elementType, wanted.elementType, widening)
        return f"transform({value}, x -> {item})"
    if isinstance(came, MapType) and isinstance(wanted, MapType):
        key = _fit("k", came.keyType, wanted.keyType, widening)
        item = _fit("v", came.valueType, wanted.valueType, widening)
        changed = value if key == "k" else f"transform_keys({value}, (k, v) -> {key})"
        return changed if item == "v" else f"transform_values({changed}, (k, v) -> {item})"
    if widening and isinstance(came, NumericType):
        return value
    if isinstance(came, NumericType) and isinstance(wanted, NumericType):
        # Delta refuses what does not fit. A cast would make it NULL where ANSI mode is off,
        # and the value would be lost from the quarantine.
        fits = f"try_cast({value} AS {ddl(wanted)})"
        wrong = f"raise_error('a value does not fit into {ddl(wanted)}')"
        return f"CASE WHEN {value} IS NULL OR {fits} IS NOT NULL THEN {fits} ELSE {wrong} END"
    return f"CAST({value} AS {ddl(wanted)})"


def _fit_struct(value: str, came: StructType, wanted: StructType, widening: bool) -> str:
    given = {child.name.lower(): child for child in came.fields}
    parts: list[str] = []
    for child in wanted.fields:
        there = given.pop(child.name.lower(), None)
        if there is None:
            item = f"CAST(NULL AS {ddl(child.dataType)})"
        else:
            name = f"{value}.{quote(there.name)}"
            item = _fit(name, there.dataType, child.dataType, widening)
        parts.append(f"{item} AS {quote(child.name)}")
    parts += [f"{value}.{quote(child.name)} AS {quote(child.name)}" for child in given.values()]
    return f"CASE WHEN {value} IS NOT NULL THEN struct({', '.join(parts)}) END"


def _computed(session: SparkSession, table: Definition) -> dict[str, str | None] | None:
    """Generated column to its expression, identity column to None; None: nobody can tell.

    Read from the table's log, as Delta's protocol describes it, since Delta shows neither in
    a schema nor in a description of the table.
    """
    location = read_table(session, table.name).location
    for kind, files in (("json", "*.json"), ("parquet", "*.checkpoint*.parquet")):
        reader = session.read.format(kind).schema("metaData struct<schemaString:string>")
        try:
            rows = (
                reader.load(f"{location}/_delta_log/{files}")
                .where("metaData.schemaString IS NOT NULL")
                .selectExpr("_metadata.file_name AS file", "metaData.schemaString AS text")
                .orderBy("file")
                .collect()
            )
        except EngineFailure:
            # No such files, or no right to read them.
            continue
        if rows:
            return {
                entry["name"]: entry["metadata"].get(_GENERATED)
                for entry in json.loads(rows[-1]["text"])["fields"]
                if _GENERATED in entry["metadata"] or _IDENTITY in entry["metadata"]
            }
    return None
