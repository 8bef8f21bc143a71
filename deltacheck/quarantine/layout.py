"""How a quarantine table is laid out: deltacheck's own columns first, then the source's.

A column keeps its name for as long as its type stays; under another type it goes on beside the
old one, in a column whose comment says of which it is. Knows nothing of how rows get there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from deltacheck.config import Environment
from deltacheck.errors import ConfigError, IdentifierError, QuarantineError
from deltacheck.names import TableName, literal, quote

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
REASON = PREFIX + "reason"

UPGRADE, WRITE, GUARD, OVERWRITE = "upgrade", "write", "guard", "overwrite"
"""Where a row comes from: it was moved out of the table, or it is of a batch that was appended,
handed to a guarded write of the user's own, or meant to overwrite the table."""

APPENDABLE = (UPGRADE, WRITE)
"""The origins whose rows are as the table would have them. Any other row is a source row:
only its owner knows what is to be done with it."""

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
        StructField(REASON, StringType()),
    ]
)

_OWN_NAMES = frozenset(name.lower() for name in OWN.names)


def quarantine_name(table: TableName, pattern: str | None = None) -> TableName:
    """Where the bad rows of a table go.

    Args:
        pattern: As in an environment's ``quarantine``; default: beside the table.

    Raises:
        ConfigError: The pattern does not tell tables apart, asks for a part that the table's
            name lacks, is not a name, or names the table itself.

    >>> str(quarantine_name(TableName.parse("shop.orders")))
    'shop.orders_quarantine'
    >>> str(quarantine_name(TableName.parse("shop.orders"), "{schema}_bad.{table}"))
    'shop_bad.orders'
    """
    if pattern is None:
        return TableName((*table.parts[:-1], table.name + "_quarantine"))
    if "{table}" not in pattern and "{path}" not in pattern:
        raise ConfigError(
            f"The quarantine pattern {pattern!r} leads every table to one place, and a quarantine "
            "holds the rows of one table; nothing was done.",
            hint="Put {table} into it, or {path} for tables that are named by their path.",
        )
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
        return found.replace("`", "``")

    # Each placeholder stands inside back-quotes, so a dot in a name stays in its part.
    text = re.sub(r"\{(catalog|schema|table|path)\}", value, _quoted(pattern))
    try:
        name = TableName.parse(text)
    except IdentifierError:
        raise _no_name(pattern) from None
    if name.path is None and "/" in pattern:
        raise _no_name(pattern)
    if name == table:
        raise ConfigError(
            f"The quarantine pattern {pattern!r} names {table} itself; nothing was done.",
            hint="Let the pattern lead to another table.",
        )
    return name


def _no_name(pattern: str) -> ConfigError:
    return ConfigError(
        f"The quarantine pattern {pattern!r} makes no name of a table; nothing was done.",
        hint="Write {schema}_quarantine.{table}, or delta.`/folder/{schema}/{table}`.",
    )


def _quoted(pattern: str) -> str:
    if "`" in pattern or "/" in pattern:
        return pattern
    return ".".join(quote(part) for part in pattern.split("."))


def environment_quarantine(table: TableName, environment: Environment | None) -> TableName:
    """Where the bad rows of a table go in an environment."""
    return quarantine_name(table, None if environment is None else environment.quarantine)


def check_apart(tables: Iterable[TableName], environment: Environment | None) -> None:
    """Whether the quarantines of some tables are as many tables, and none of them is a source.

    Raises:
        ConfigError: Two of the tables would share one, or one is another's.
    """
    sources = list(dict.fromkeys(tables))
    owners: dict[TableName, TableName] = {}
    for table in sources:
        quarantine = environment_quarantine(table, environment)
        other = owners.setdefault(quarantine, table)
        if other != table:
            raise ConfigError(
                f"The rows of {other} and of {table} would share the quarantine {quarantine}; "
                "nothing was done.",
                hint="Put {schema}, or {catalog}, into the environment's `quarantine` pattern.",
                table=str(table),
            )
    for quarantine, table in owners.items():
        if quarantine in sources:
            raise ConfigError(
                f"{quarantine} is to be the quarantine of {table}, and is a table with rules of "
                "its own; nothing was done.",
                hint="Name another place with `quarantine` in the environment.",
                table=str(table),
            )


@dataclass(frozen=True)
class Layout:
    """Which quarantine column holds each source column, and which are still to be added.

    Attributes:
        columns: Source column to the quarantine column that takes its values.
        missing: The quarantine columns that are not there yet.
        beside: Source column to the quarantine columns that hold its values of other types.
        foreign: Quarantine columns of no source column: the table lost them, or never had
            them.
    """

    columns: Mapping[str, str]
    missing: tuple[StructField, ...]
    beside: Mapping[str, tuple[StructField, ...]] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()


def layout(source: StructType, held: StructType, table: TableName) -> Layout:
    """Fit the columns of a source into a quarantine table.

    Args:
        source: The columns of the source.
        held: The columns that the quarantine table has; empty for a new one.
        table: The source, for the error.

    Raises:
        QuarantineError: The source has a column whose name is deltacheck's own.
    """
    clashing = [name for name in source.names if is_own(name)]
    if clashing:
        raise QuarantineError(
            f"{table} has a column {clashing[0]}, a name that quarantine tables keep for "
            "themselves; nothing was moved.",
            hint="Rename the column in the table.",
            table=str(table),
        )
    there = [one for one in held.fields if not is_own(one.name)]
    taken = {name.lower() for name in (*OWN.names, *held.names)}
    columns: dict[str, str] = {}
    beside: dict[str, tuple[StructField, ...]] = {}
    missing: list[StructField] = []
    for column in source.fields:
        dtype = plain(column.dataType)
        of = [one for one in there if origin(one).lower() == column.name.lower()]
        match = next((one for one in of if plain(one.dataType) == dtype), None)
        if match is None:
            match = _new_field(column.name, dtype, taken)
            taken.add(match.name.lower())
            missing.append(match)
        columns[column.name] = match.name
        if others := tuple(one for one in of if one.name != match.name):
            beside[column.name] = others
    known = {name.lower() for name in source.names}
    foreign = tuple(one.name for one in there if origin(one).lower() not in known)
    return Layout(columns, tuple(missing), beside, foreign)


def is_own(name: str) -> bool:
    """Whether a column of a quarantine table is deltacheck's, not the source's."""
    return name.lower() in _OWN_NAMES


_COMMENT = "deltacheck: values of "


def origin(held: StructField) -> str:
    """The source column whose values a quarantine column holds."""
    comment = str(held.metadata.get("comment", ""))
    return comment.removeprefix(_COMMENT) if comment.startswith(_COMMENT) else held.name


def _new_field(name: str, dtype: DataType, taken: Collection[str]) -> StructField:
    free = next(one for one in _candidates(name, dtype) if one.lower() not in taken)
    return StructField(free, dtype, True, {} if free == name else {"comment": _COMMENT + name})


def _candidates(name: str, dtype: DataType) -> Iterator[str]:
    yield name
    base = f"{name}_{re.sub(r'[^a-z0-9]+', '_', dtype.simpleString()).strip('_')[:40]}"
    yield base
    number = 2
    while True:
        yield f"{base}_{number}"
        number += 1


def value_of(fit: Layout, column: StructField) -> str:
    """SQL for the value that a quarantined row has for a source column.

    A value of a type that the column had once is cast where Spark casts it; where that cannot
    be, and where the row has none, it is NULL.
    """
    kept = [quote(fit.columns[column.name])]
    kept += [
        f"try_cast({quote(one.name)} AS {ddl(column.dataType)})"
        for one in fit.beside.get(column.name, ())
        if _castable(one, column)
    ]
    return kept[0] if len(kept) == 1 else f"coalesce({', '.join(kept)})"


def is_whole(fit: Layout, column: StructField) -> str | None:
    """SQL that is true where ``value_of`` says all that the row holds for a source column.

    None where that is so for every row.
    """
    others = fit.beside.get(column.name, ())
    if not others:
        return None
    tests = []
    for one in others:
        old = quote(one.name)
        test = f"{old} IS NULL"
        if _castable(one, column):
            cast = f"try_cast({old} AS {ddl(column.dataType)})"
            test += f" OR try_cast({cast} AS {ddl(one.dataType)}) <=> {old}"
        tests.append(f"({test})")
    return " AND ".join(tests)


def _castable(old: StructField, column: StructField) -> bool:
    # Spark casts structs by position, which says nothing of what a field means.
    return isinstance(old.dataType, AtomicType) and isinstance(column.dataType, AtomicType)


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
    return ", ".join(_column_ddl(one) for one in fields)


def _column_ddl(one: StructField) -> str:
    comment = one.metadata.get("comment")
    told = "" if comment is None else f" COMMENT {literal(comment)}"
    return f"{quote(one.name)} {ddl(one.dataType)}{told}"
