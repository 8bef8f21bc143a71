"""A Delta table as it is now: version, constraints, columns, properties, history.

Only reads. Raises our own errors for what is missing, a view, or not Delta.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import takewhile
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.delta.warehouse import register
from deltacheck.errors import DeltacheckError, NotDeltaError, TableError, TableNotFoundError
from deltacheck.names import TableName

CONSTRAINT_PREFIX = "delta.constraints."
_FIRST_LOOK = 64
_PARTITIONS = "# Partition Information"
_PROTOCOL = "delta.minReaderVersion"
_MISSING = {
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "DELTA_MISSING_DELTA_TABLE",
    "DELTA_PATH_DOES_NOT_EXIST",
    "DELTA_TABLE_NOT_FOUND",
    "PATH_NOT_FOUND",
}


@dataclass(frozen=True)
class Definition:
    """What a table is made of and promises; reading it costs no Spark job.

    Attributes:
        properties: As ``SHOW TBLPROPERTIES`` tells them.
    """

    name: TableName
    schema: StructType
    properties: Mapping[str, str]

    @cached_property
    def constraints(self) -> Mapping[str, str]:
        """Name as stored to expression as stored, of each CHECK."""
        return {
            key[len(CONSTRAINT_PREFIX) :]: value
            for key, value in self.properties.items()
            if key.startswith(CONSTRAINT_PREFIX)
        }

    @cached_property
    def not_null(self) -> frozenset[tuple[str, ...]]:
        """The paths of the columns that the schema declares NOT NULL."""
        return required_columns(self.schema)

    def requires(self, path: Sequence[str]) -> bool:
        """Whether the schema declares a column NOT NULL, by its path in any case."""
        wanted = tuple(part.lower() for part in path)
        return any(tuple(part.lower() for part in column) == wanted for column in self.not_null)

    def constraint(self, name: str) -> str | None:
        """The stored expression of a CHECK, by its name in any case, or None."""
        wanted = name.lower()
        return next((e for n, e in self.constraints.items() if n.lower() == wanted), None)

    def spellings(self, name: str) -> tuple[str, ...]:
        """The names of CHECKs, as stored, that are ``name`` in any case.

        ``ADD CONSTRAINT`` stores lower case; CREATE TABLE and other engines may store another
        case, even beside it.
        """
        wanted = name.lower()
        return tuple(stored for stored in self.constraints if stored.lower() == wanted)

    @property
    def append_only(self) -> bool:
        """Whether ``delta.appendOnly`` forbids DELETE and UPDATE."""
        return self.properties.get("delta.appendOnly", "false").lower() == "true"


@dataclass(frozen=True)
class Table(Definition):
    """A table as ``DESCRIBE DETAIL`` tells it, for which Delta sums up the table's files."""

    id: str
    location: str
    features: frozenset[str]
    partition_columns: tuple[str, ...]
    files: int
    bytes: int


@dataclass(frozen=True)
class Commit:
    """One entry of a table's history."""

    version: int
    at: datetime
    operation: str
    read_version: int | None
    parameters: Mapping[str, str]
    metrics: Mapping[str, str]
    user_metadata: str | None
    engine: str | None

    @property
    def tag(self) -> Mapping[str, Any]:
        """What deltacheck wrote of the commit, empty where it was not ours."""
        if not self.user_metadata or "deltacheck" not in self.user_metadata:
            return {}
        try:
            value = json.loads(self.user_metadata)
        except ValueError:
            return {}
        own = value.get("deltacheck") if isinstance(value, dict) else None
        return own if isinstance(own, dict) else {}


def read_table(session: SparkSession, table: TableName) -> Table:
    """Read a table's metadata; no Spark job over its data.

    Raises:
        TableNotFoundError: There is no such table.
        NotDeltaError: It is a view, or its format is not Delta.
    """
    register(session, None, table)
    try:
        detail = session.sql(f"DESCRIBE DETAIL {table.sql}").collect()[0]
        if detail["format"] != "delta":
            raise NotDeltaError(
                f"{table} is a {detail['format']} table, not a Delta table; on it ADD "
                "CONSTRAINT says OK and does nothing. It was left untouched.",
                hint="Convert it (CONVERT TO DELTA), or take it out of the migration.",
                table=str(table),
            )
        schema = frame(session, table).schema
    except EngineFailure as error:
        raise table_problem(error, table) from None
    return Table(
        name=table,
        schema=schema,
        properties=dict(detail["properties"] or {}),
        id=detail["id"],
        location=detail["location"],
        features=frozenset(detail["tableFeatures"] or ()),
        partition_columns=tuple(detail["partitionColumns"] or ()),
        files=detail["numFiles"] or 0,
        bytes=detail["sizeInBytes"] or 0,
    )


def read_definition(session: SparkSession, table: TableName) -> Definition:
    """Read what a table is made of; no Spark job.

    Raises:
        TableNotFoundError: There is no such table.
        NotDeltaError: It is a view, or its format is not Delta.
    """
    properties = read_properties(session, table)
    if _PROTOCOL not in properties:
        # Delta tells its protocol there (`DeltaTableV2.properties`), so this is something else.
        return read_table(session, table)
    try:
        schema = frame(session, table).schema
    except EngineFailure as error:
        raise table_problem(error, table) from None
    return Definition(table, schema, properties)


def read_properties(session: SparkSession, table: TableName) -> dict[str, str]:
    """A table's properties alone; no Spark job.

    Raises:
        TableNotFoundError: There is no such table.
        NotDeltaError: It is a view.
    """
    register(session, None, table)
    try:
        rows = session.sql(f"SHOW TBLPROPERTIES {table.sql}").collect()
    except EngineFailure as error:
        raise table_problem(error, table) from None
    return {row["key"]: row["value"] for row in rows}


def partition_columns(session: SparkSession, table: TableName) -> tuple[str, ...]:
    """The columns that partition a table; no Spark job.

    Raises:
        PySparkException, Py4JJavaError: Whatever Spark raises.
    """
    rows = [row["col_name"] for row in session.sql(f"DESCRIBE TABLE {table.sql}").collect()]
    if _PARTITIONS not in rows:
        return ()
    # A line of headings, the columns, and an empty line or a further section.
    _, *names = rows[len(rows) - rows[::-1].index(_PARTITIONS) :]
    return tuple(takewhile(lambda name: name and not name.startswith("# "), names))


def exists(session: SparkSession, table: TableName) -> bool:
    """Whether there is a Delta table of that name.

    Raises:
        NotDeltaError: There is something else of that name.
    """
    try:
        read_definition(session, table)
    except TableNotFoundError:
        return False
    return True


def table_problem(error: BaseException, table: TableName) -> DeltacheckError:
    """The error of ours for what Spark said of a table; the caller raises it."""
    failure = failure_of(error)
    if failure.family in _MISSING:
        return TableNotFoundError(
            f"There is no table {table}; nothing was changed.",
            hint="Create it first, or correct its name.",
            table=str(table),
        )
    if failure.family == "EXPECT_TABLE_NOT_VIEW":
        return NotDeltaError(
            f"{table} is a view; constraints live on tables. It was left untouched.",
            hint="Name the table that it reads.",
            table=str(table),
        )
    if failure.family in {"DELTA_ONLY_OPERATION", "DELTA_TABLE_ONLY_OPERATION"}:
        return NotDeltaError(
            f"{table} is not a Delta table; it was left untouched.",
            hint="Convert it (CONVERT TO DELTA), or take it out of the migration.",
            table=str(table),
        )
    return TableError(
        f"{table} cannot be read: Spark says {failure.condition or failure.kind}.",
        hint="Its log has the details.",
        table=str(table),
    )


def frame(session: SparkSession, table: TableName, version: int | None = None) -> DataFrame:
    """The rows of a table, now or as of a version."""
    if version is None:
        return session.table(table.sql)
    return session.sql(f"SELECT * FROM {at_version(table, version)}")


def at_version(table: TableName, version: int) -> str:
    """SQL for a table as of a version."""
    return f"{table.sql} VERSION AS OF {version}"


def latest_version(session: SparkSession, table: TableName) -> int:
    """The number of the table's last commit."""
    return history(session, table, limit=1)[0].version


def history(
    session: SparkSession, table: TableName, *, limit: int | None = None, since: int | None = None
) -> list[Commit]:
    """The table's commits, newest first.

    Args:
        limit: At most so many.
        since: Only those with a greater version number. Fewer come back where the log of
            the oldest of them has been cleaned up; see :func:`reaches`.
    """
    if since is None or limit is not None:
        return [
            one for one in _latest(session, table, limit) if since is None or one.version > since
        ]
    # DESCRIBE HISTORY reads the log of each commit, and knows no WHERE.
    count = _FIRST_LOOK
    while True:
        commits = _latest(session, table, count)
        if len(commits) < count or commits[-1].version <= since + 1:
            return [entry for entry in commits if entry.version > since]
        count *= 8


def _latest(session: SparkSession, table: TableName, limit: int | None) -> list[Commit]:
    count = "" if limit is None else f" LIMIT {limit}"
    return [_commit(row) for row in session.sql(f"DESCRIBE HISTORY {table.sql}{count}").collect()]


def reaches(commits: list[Commit], since: int) -> bool:
    """Whether a history, read with ``since``, has every commit after that version."""
    return not commits or commits[-1].version <= since + 1


def _commit(row: Row) -> Commit:
    return Commit(
        version=row["version"],
        at=row["timestamp"],
        operation=row["operation"],
        read_version=row["readVersion"],
        parameters=dict(row["operationParameters"] or {}),
        metrics=dict(row["operationMetrics"] or {}),
        user_metadata=row["userMetadata"],
        engine=row["engineInfo"],
    )


def count_rows(session: SparkSession, table: TableName, version: int | None = None) -> int:
    """How many rows the table has, or had at a version; from metadata alone where Delta can."""
    source = table.sql if version is None else at_version(table, version)
    rows = session.sql(f"SELECT count(*) AS rows FROM {source}").collect()
    return int(rows[0]["rows"])


def required_columns(schema: StructType) -> frozenset[tuple[str, ...]]:
    """The paths of the columns that a schema declares NOT NULL."""
    return frozenset(_required(schema))


def _required(dtype: DataType, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(dtype, StructType):
        for child in dtype.fields:
            here = (*path, child.name)
            if not child.nullable:
                yield here
            if not isinstance(child.dataType, (ArrayType, MapType)):
                yield from _required(child.dataType, here)
