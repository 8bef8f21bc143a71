"""The commit that puts rows into the table: append, overwrite or replace.

An overwrite goes through Spark's ``writeTo``: ``saveAsTable`` would replace the whole table
(CREATE OR REPLACE TABLE AS SELECT), its metadata included. A replacement loses every
constraint, so they are restated in the same commit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession
from pyspark.sql.functions import expr

from deltacheck.delta.commit import Fence, Frame, Own, Tag, Write, commit
from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.delta.table import CONSTRAINT_PREFIX, Definition, Table, history, read_table
from deltacheck.delta.warehouse import create_schema, warehouse_of
from deltacheck.errors import ConstraintError, UsageError
from deltacheck.names import TableName, quote
from deltacheck.writing.judge import BatchRule, batch_rules
from deltacheck.writing.once import find_commit
from deltacheck.writing.request import Request
from deltacheck.writing.survey import Survey

_APPEND_TRIES = 4
"""An append means the same whatever another writer did, so it may try again."""

_DYNAMIC = "spark.sql.sources.partitionOverwriteMode"
_NOT_RESTATED = (
    # What Delta keeps for itself, and derives anew.
    "delta.minReaderVersion",
    "delta.minWriterVersion",
    "delta.feature.",
    "delta.columnMapping.maxColumnId",
    "delta.rowTracking.materialized",
    CONSTRAINT_PREFIX,
)


def deliver(
    session: SparkSession,
    asked: Request,
    known: Survey,
    rows: DataFrame,
    tag: Tag,
    fence: Fence | None = None,
) -> None:
    """Write rows to the table in one commit.

    Args:
        rows: Rows with the columns that the table is to get.

    Raises:
        UsageError: The table is partitioned otherwise than the overwrite asks for.
        ConstraintError: A replacement lacks a column that a constraint reads.
        PySparkException, Py4JJavaError: Whatever Spark or Delta raises; nothing was written.
    """
    if not known.exists and warehouse_of(session) is not None and asked.mode == "replace":
        create_schema(session, None, asked.table)
    if not known.exists and asked.mode != "replace":
        make_table(session, asked, rows)
        known = dataclasses.replace(known, exists=True)
    try:
        commit(
            session,
            asked.table,
            _write(session, asked, known, rows),
            tag=tag,
            fence=fence,
            user_metadata=asked.user_metadata,
            tries=_APPEND_TRIES if asked.mode == "append" else 1,
        )
    except EngineFailure as error:
        # Spark's in-memory catalog refuses its entry of a partitioned table when that is
        # replaced a second time, after Delta has committed.
        failed = failure_of(error).family
        if asked.mode != "replace" or failed != "INTERNAL_ERROR":
            raise
        if not _is_there(session, asked.table, tag, fence):
            raise


def make_table(session: SparkSession, asked: Request, rows: DataFrame) -> None:
    """Make a table that is not there, without rows.

    A commit of its own: the one by which ``saveAsTable`` makes a table says nothing of
    ``userMetadata``, so nobody could tell which attempt made it.

    Args:
        rows: Rows with the columns that the table is to get.
    """
    if warehouse_of(session) is not None:
        create_schema(session, None, asked.table)
    empty = Frame(rows.where("false"), options=asked.options, partition_by=asked.partition_by)
    commit(session, asked.table, empty, tag=Tag(job=asked.job), tries=_APPEND_TRIES)


def _is_there(session: SparkSession, table: TableName, tag: Tag, fence: Fence | None) -> bool:
    if find_commit(session, table, str(tag.attempt)) is not None:
        return True
    # A replacement that its fence skips ends in the same error.
    tags = [entry.tag for entry in history(session, table)]
    return fence is not None and any(other.get("batch") == tag.batch for other in tags)


def _write(session: SparkSession, asked: Request, known: Survey, rows: DataFrame) -> Write:
    if asked.mode == "replace":
        return _replacement(session, asked, known, rows)
    if asked.mode == "append" or _evolves_whole(asked):
        return _frame(asked, rows)
    if asked.partition_by:
        _check_partitions(read_table(session, asked.table), asked.partition_by)
    dynamic = is_dynamic(session, asked)

    def overwrite(options: Mapping[str, str]) -> None:
        writer = _writer(rows, asked.table, options)
        if asked.replace_where is not None:
            writer.overwrite(expr(asked.replace_where))
        elif dynamic:
            writer.overwritePartitions()
        else:
            writer.overwrite(expr("true"))

    return Own(overwrite, asked.options)


def _frame(asked: Request, rows: DataFrame) -> Frame:
    options = dict(asked.options)
    if asked.mode == "overwrite":
        if asked.replace_where is not None:
            options["replaceWhere"] = asked.replace_where
        if asked.dynamic is not None:
            options["partitionOverwriteMode"] = "dynamic" if asked.dynamic else "static"
    mode: Literal["append", "overwrite"] = "append" if asked.mode == "append" else "overwrite"
    return Frame(rows, mode=mode, options=options, partition_by=asked.partition_by)


def _evolves_whole(asked: Request) -> bool:
    options = {key.lower(): value for key, value in asked.options.items()}
    return options.get("overwriteschema", "false").lower() == "true"


def is_dynamic(session: SparkSession, asked: Request) -> bool:
    """Whether an overwrite replaces only the partitions that the batch has."""
    if asked.dynamic is not None:
        return asked.dynamic
    return str(session.conf.get(_DYNAMIC, "static")).lower() == "dynamic"


def _writer(rows: DataFrame, table: TableName, options: Mapping[str, str]) -> DataFrameWriterV2:
    writer = rows.writeTo(table.sql)
    for key, value in options.items():
        writer = writer.option(key, value)
    return writer


def _check_partitions(table: Table, wanted: tuple[str, ...]) -> None:
    there = table.partition_columns
    if [name.lower() for name in there] == [name.lower() for name in wanted]:
        return
    raise UsageError(
        f"{table.name} is partitioned by {', '.join(there) or 'nothing'}, not by "
        f"{', '.join(wanted)}; nothing was written.",
        hint='Leave out partition_by, or rebuild the table with mode="replace".',
        table=str(table.name),
    )


def _replacement(session: SparkSession, asked: Request, known: Survey, rows: DataFrame) -> Write:
    table = read_table(session, asked.table) if known.exists else None
    there = {name.lower(): name for name in rows.columns}
    properties = _restated(known, table, there)
    wanted = asked.partition_by
    if (
        not wanted
        and table is not None
        and all(c.lower() in there for c in table.partition_columns)
    ):
        wanted = table.partition_columns

    def replace(options: Mapping[str, str]) -> None:
        writer = _writer(rows, asked.table, options).using("delta")
        for key, value in properties.items():
            writer = writer.tableProperty(key, value)
        if wanted:
            first, *others = (rows[quote(there.get(name.lower(), name))] for name in wanted)
            writer = writer.partitionedBy(first, *others)
        writer.createOrReplace()

    return Own(replace, asked.options)


def _restated(
    known: Survey, table: Definition | None, columns: Mapping[str, str]
) -> dict[str, str]:
    kept = {
        key: value for key, value in known.properties.items() if not key.startswith(_NOT_RESTATED)
    }
    if table is None:
        return kept
    # A NOT NULL of the schema can only be restated as a CHECK: Spark makes every column of a
    # replacement nullable.
    for rule in batch_rules(known, table):
        if rule.enforced and not rule.built_in:
            _check_columns(rule, table, columns)
            kept[CONSTRAINT_PREFIX + rule.name.lower()] = rule.sql
    return kept


def _check_columns(rule: BatchRule, table: Definition, columns: Mapping[str, str]) -> None:
    # One that only Delta can read is Delta's to refuse.
    lacking = sorted(name for name in rule.reads or () if name.lower() not in columns)
    if lacking:
        raise ConstraintError(
            f"The rule {rule.name} of {table.name} reads {', '.join(lacking)}, which the batch "
            "that is to replace the table does not have; nothing was replaced.",
            hint="Add the column to the batch, or drop the rule by a migration first.",
            table=str(table.name),
            rule=rule.name,
        )
