"""How a quarantine table is laid out: deltacheck's own columns first, then the source's.

Knows nothing of how rows get there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from deltacheck.config import Environment
from deltacheck.errors import ConfigError, QuarantineError
from deltacheck.names import TableName, quote

PREFIX = "_deltacheck_"
RULES = PREFIX + "rules"
RULE = PREFIX + "rule"
SOURCE = PREFIX + "source"
RUN = PREFIX + "run"
BATCH = PREFIX + "batch"
ATTEMPT = PREFIX + "attempt"
REVISION = PREFIX + "revision"
JOB = PREFIX + "job"
VERSION = PREFIX + "version"
AT = PREFIX + "at"
STATE = PREFIX + "state"
RELEASE = PREFIX + "release"

HELD, RELEASED, DISCARDED = "held", "released", "discarded"

OWN = StructType(
    [
        StructField(RULES, ArrayType(StringType())),
        StructField(RULE, StringType()),
        StructField(SOURCE, StringType()),
        StructField(RUN, StringType()),
        StructField(BATCH, StringType()),
        StructField(ATTEMPT, StringType()),
        StructField(REVISION, StringType()),
        StructField(JOB, StringType()),
        StructField(VERSION, LongType()),
        StructField(AT, TimestampType()),
        StructField(STATE, StringType()),
        StructField(RELEASE, StringType()),
    ]
)


def quarantine_name(table: TableName, pattern: str | None = None) -> TableName:
    """Where the bad rows of a table go.

    Args:
        pattern: As in an environment's ``quarantine``; default: beside the table.

    Raises:
        ConfigError: The pattern asks for a part that the table's name lacks, or names the
            table itself.

    >>> str(quarantine_name(TableName.parse("shop.orders")))
    'shop.orders_quarantine'
    >>> str(quarantine_name(TableName.parse("shop.orders"), "{schema}_bad.{table}"))
    'shop_bad.orders'
    """
    if pattern is None:
        return TableName((*table.parts[:-1], table.name + "_quarantine"))
    values = {
        "catalog": table.catalog,
        "schema": table.schema,
        "table": None if table.path else table.name,
        "path": table.path,
    }

    def value(match: re.Match[str]) -> str:
        found = values[match[1]]
        if found is None:
            raise ConfigError(
                f"The quarantine pattern {pattern!r} needs the {match[1]} of {table}, whose name "
                "does not have one; nothing was done.",
                hint="Name the table in full, or leave that part out of the pattern.",
            )
        return found if match[1] == "path" else found.replace("`", "``")

    # Each placeholder stands inside back-quotes, so a dot in a name stays in its part.
    text = re.sub(r"\{(catalog|schema|table|path)\}", value, _quoted(pattern))
    name = TableName.parse(text)
    if name == table:
        raise ConfigError(
            f"The quarantine pattern {pattern!r} names {table} itself; nothing was done.",
            hint="Let the pattern lead to another table.",
        )
    return name


def _quoted(pattern: str) -> str:
    if "`" in pattern or "/" in pattern:
        return pattern
    return ".".join(quote(part) for part in pattern.split("."))


def environment_quarantine(table: TableName, environment: Environment | None) -> TableName:
    """Where the bad rows of a table go in an environment."""
    return quarantine_name(table, None if environment is None else environment.quarantine)


@dataclass(frozen=True)
class Layout:
    """Which quarantine column holds each source column, and which are still to be added.

    Attributes:
        columns: Source column to quarantine column.
        missing: The quarantine columns that are not there yet.
    """

    columns: Mapping[str, str]
    missing: tuple[StructField, ...]


def layout(source: StructType, held: StructType, table: TableName) -> Layout:
    """Fit the columns of a source into a quarantine table.

    A column whose type changed goes on beside the old one, under a name with its type.

    Args:
        source: The columns of the source.
        held: The columns that the quarantine table has; empty for a new one.
        table: The source, for the error.

    Raises:
        QuarantineError: The source has a column whose name is deltacheck's own.
    """
    own = {name.lower() for name in OWN.names}
    clashing = [name for name in source.names if name.lower() in own]
    if clashing:
        raise QuarantineError(
            f"{table} has a column {clashing[0]}, a name that quarantine tables keep for "
            "themselves; nothing was moved.",
            hint="Rename the column in the table.",
            table=str(table),
        )
    there = {field.name.lower(): field for field in held.fields if field.name.lower() not in own}
    columns: dict[str, str] = {}
    missing: list[StructField] = []
    for column in source.fields:
        dtype = plain(column.dataType)
        for name in _candidates(column.name, dtype):
            found = there.get(name.lower())
            if found is None:
                field = StructField(name, dtype, True)
                there[name.lower()] = field
                missing.append(field)
            elif plain(found.dataType) != dtype:
                continue
            else:
                name = found.name
            columns[column.name] = name
            break
    return Layout(columns, tuple(missing))


def _candidates(name: str, dtype: DataType) -> Iterator[str]:
    yield name
    base = f"{name}_{re.sub(r'[^a-z0-9]+', '_', dtype.simpleString()).strip('_')[:40]}"
    yield base
    number = 2
    while True:
        yield f"{base}_{number}"
        number += 1


def plain(dtype: DataType) -> DataType:
    """A type with nothing but its shape: all nullable, no metadata (defaults, generation)."""
    if isinstance(dtype, StructType):
        return StructType([StructField(f.name, plain(f.dataType), True) for f in dtype.fields])
    if isinstance(dtype, ArrayType):
        return ArrayType(plain(dtype.elementType), True)
    if isinstance(dtype, MapType):
        return MapType(plain(dtype.keyType), plain(dtype.valueType), True)
    return dtype


def needs_mapping(schema: StructType) -> bool:
    """Whether a name, at any depth, has a character that only column mapping allows."""
    return any(re.search(r"[ ,;{}()\n\t=]", name) for name in _all_names(schema))


def _all_names(dtype: DataType) -> Iterator[str]:
    if isinstance(dtype, StructType):
        for field in dtype.fields:
            yield field.name
            yield from _all_names(field.dataType)
    elif isinstance(dtype, ArrayType):
        yield from _all_names(dtype.elementType)
    elif isinstance(dtype, MapType):
        yield from _all_names(dtype.keyType)
        yield from _all_names(dtype.valueType)


def ddl(dtype: DataType) -> str:
    """A type as SQL spells it, with nested names quoted.

    >>> ddl(StructType([StructField("a b", LongType())]))
    'struct<`a b`:bigint>'
    """
    if isinstance(dtype, StructType):
        fields = ",".join(f"{quote(f.name)}:{ddl(f.dataType)}" for f in dtype.fields)
        return f"struct<{fields}>"
    if isinstance(dtype, ArrayType):
        return f"array<{ddl(dtype.elementType)}>"
    if isinstance(dtype, MapType):
        return f"map<{ddl(dtype.keyType)},{ddl(dtype.valueType)}>"
    return dtype.simpleString()


def columns_ddl(fields: tuple[StructField, ...]) -> str:
    """Column definitions for CREATE TABLE and ADD COLUMNS."""
    return ", ".join(f"{quote(f.name)} {ddl(f.dataType)}" for f in fields)
