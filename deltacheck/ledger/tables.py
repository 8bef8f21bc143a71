"""What deltacheck's own tables have in common: rows from dataclasses, a format, how one is made.

Knows nothing of what stands in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from deltacheck.config import Environment
from deltacheck.delta.commit import Frame, Statement, Tag, commit
from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.delta.table import exists, read_properties
from deltacheck.delta.warehouse import create_schema
from deltacheck.errors import LedgerError, TableNotFoundError
from deltacheck.names import TableName, literal, quote

FORMAT = 1
"""The format of the ledger that this version writes and reads."""

FORMAT_KEY = "deltacheck.format"
"""The table property that tells it."""

_TYPES = {
    "int": LongType(),
    "float": DoubleType(),
    "datetime": TimestampType(),
    "str": StringType(),
}


def schema_of(entry: type, narrower: Mapping[str, DataType] | None = None) -> StructType:
    """The columns of a table whose rows are objects of a dataclass.

    Args:
        entry: Its fields are ``int``, ``float``, ``str`` or ``datetime``, or one of them or None.
        narrower: Types of columns that differ from those of their field.
    """
    kinds = {one.name: str(one.type).split(" ")[0] for one in fields(entry)}
    types = {name: _TYPES[kind] for name, kind in kinds.items()} | dict(narrower or {})
    return StructType([StructField(name, types[name], True) for name in kinds])


def frame_of(session: SparkSession, entries: Sequence[object], schema: StructType) -> Frame:
    """Entries as rows to be appended, in one file."""
    rows = [tuple(getattr(entry, name) for name in schema.names) for entry in entries]
    return Frame(session.createDataFrame(rows, schema).coalesce(1))


def read_rows(rows: DataFrame, schema: StructType) -> Iterator[dict[str, Any]]:
    """Rows as values by column; times in UTC."""
    # Timestamps travel as microseconds: what collect() makes of them depends on the zones of
    # session and machine.
    times = {one.name for one in schema if isinstance(one.dataType, TimestampType)}
    columns = [
        f"unix_micros({quote(name)}) AS {quote(name)}" if name in times else quote(name)
        for name in schema.names
    ]
    for row in rows.selectExpr(*columns).collect():
        values = row.asDict()
        yield {key: _time(value) if key in times else value for key, value in values.items()}


def sql_time(at: datetime) -> str:
    """SQL for a moment, whatever the zones of session and machine."""
    return f"timestamp_micros({int(at.timestamp() * 1_000_000)})"


def _time(micros: int | None) -> datetime | None:
    if micros is None:
        return None
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=micros)


def own_properties(session: SparkSession, name: TableName, what: str) -> Mapping[str, str] | None:
    """The properties of a table of deltacheck's own; None: there is none yet. Writes nothing.

    Args:
        what: What it should be, for the message.

    Raises:
        LedgerError: A newer deltacheck wrote it, or it is something else.
    """
    try:
        properties = read_properties(session, name)
    except TableNotFoundError:
        return None
    check_format(properties, name, what)
    return properties


@contextmanager
def refused_as(name: TableName, what: str, left: str, hint: str) -> Iterator[None]:
    """Tell what Spark refuses as an error about a table of deltacheck's own.

    Args:
        what: What was refused, as the beginning of a sentence.
        left: What was left as it was, as a sentence.

    Raises:
        LedgerError: Spark or Delta refused.
    """
    try:
        yield
    except EngineFailure as error:
        failure = failure_of(error)
        raise LedgerError(
            f"{what}: Spark says {failure.condition or failure.kind}. {left}",
            hint=hint,
            table=str(name),
        ) from None


def check_format(properties: Mapping[str, str], name: TableName, what: str) -> None:
    """Whether this version can read a table of deltacheck's own.

    Args:
        what: What it should be, for the message.

    Raises:
        LedgerError: A newer deltacheck wrote it, or it is something else.
    """
    text = properties.get(FORMAT_KEY)
    if text is None:
        raise LedgerError(
            f"{name} is not {what} of deltacheck; it was left untouched.",
            hint="Name another schema for deltacheck's own tables in the environment.",
            table=str(name),
        )
    if int(text) > FORMAT:
        raise LedgerError(
            f"{name} has format {text}; this deltacheck knows formats up to {FORMAT}. "
            "Nothing was done.",
            hint="Install the version of deltacheck that the environment is run with.",
            table=str(name),
        )


def create_table(
    session: SparkSession,
    environment: Environment,
    name: TableName,
    schema: StructType,
    comment: str,
    properties: Iterable[tuple[str, str]] = (),
) -> None:
    """Make a table of deltacheck's own where there is none yet.

    Raises:
        PySparkException, Py4JJavaError: It cannot be made.
    """
    # Of an environment that recorded rules tell of, only the session knows where its tables are.
    create_schema(session, environment if environment.warehouse else None, name)
    columns = ", ".join(f"{quote(f.name)} {f.dataType.simpleString()}" for f in schema)
    told = ", ".join(
        f"{literal(key)} = {literal(value)}"
        for key, value in (
            (FORMAT_KEY, str(FORMAT)),
            *properties,
            ("delta.appendOnly", "false"),
            ("delta.enableChangeDataFeed", "false"),
        )
    )
    statement = (
        f"CREATE TABLE IF NOT EXISTS {name.sql} ({columns}) USING delta "
        f"COMMENT {literal(comment)} TBLPROPERTIES ({told})"
    )
    try:
        commit(session, name, Statement(statement), tag=Tag())
    except EngineFailure:
        # Another run may have made it in the same instant, which Delta tells in several ways.
        if not exists(session, name):
            raise
