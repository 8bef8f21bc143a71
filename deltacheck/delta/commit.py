"""The one door: every write that deltacheck makes to any Delta table goes through ``commit``.

A commit carries a tag in its ``userMetadata``, so that the table's history tells who made
it, and where asked for a fence: Delta's ``txnAppId`` and ``txnVersion``. A fenced write
that is still in flight when a later one commits fails; one that starts after it is skipped
(`DeltaCommand.hasBeenExecuted`). Knows nothing of rules, runs or quarantines.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Union

from pyspark.sql import DataFrame, Row, SparkSession

from deltacheck.delta.failures import EngineFailure, is_conflict
from deltacheck.delta.session import settings
from deltacheck.delta.warehouse import exclusive
from deltacheck.names import TableName

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
TXN_APP = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"


@dataclass(frozen=True)
class Fence:
    """A place in the order of writes of one application to one table."""

    app: str
    version: int


@dataclass(frozen=True)
class Tag:
    """Who makes a commit: kept under the key ``deltacheck`` of its ``userMetadata``.

    >>> Tag(run="r1", revision="0001").text()
    '{"deltacheck":{"run":"r1","revision":"0001"}}'
    """

    run: str | None = None
    revision: str | None = None
    step: str | None = None
    attempt: str | None = None
    batch: str | None = None
    job: str | None = None
    rules: Mapping[str, str] | None = None
    named: Mapping[str, str] | None = None
    detail: Mapping[str, object] | None = None

    def text(self, user: str | None = None) -> str:
        """The ``userMetadata``; a user's own keeps its place beside ours.

        Args:
            user: The user's own metadata: a JSON object gains our key, other text goes
                under ``user``.

        >>> Tag(job="j").text('{"mine": 1}'), Tag(job="j").text("[1]")
        ('{"mine":1,"deltacheck":{"job":"j"}}', '{"user":"[1]","deltacheck":{"job":"j"}}')
        """
        own = {key: value for key, value in vars(self).items() if value is not None}
        return json.dumps({**_as_object(user), "deltacheck": own}, separators=(",", ":"))


def _as_object(user: str | None) -> dict[str, object]:
    if not user:
        return {}
    try:
        value = json.loads(user)
    except ValueError:
        return {"user": user}
    return value if isinstance(value, dict) else {"user": user}


@dataclass(frozen=True)
class Statement:
    """A SQL statement that commits to the table, and settings for it alone."""

    sql: str
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Frame:
    """Rows to be written to the table, and the options of the writer."""

    rows: DataFrame
    mode: Literal["append", "overwrite"] = "append"
    options: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Own:
    """Rows to be written in a way of the caller's own.

    Attributes:
        write: Writes them, with the options that it is given: they carry tag and fence.
        options: Further options of the writer.
    """

    write: Callable[[Mapping[str, str]], None]
    options: Mapping[str, str] = field(default_factory=dict)


Write = Union[Statement, Frame, Own]


def commit(
    session: SparkSession,
    table: TableName | None,
    write: Write,
    *,
    tag: Tag,
    fence: Fence | None = None,
    user_metadata: str | None = None,
    tries: int = 1,
) -> list[Row]:
    """Write to a table.

    Args:
        session: The session to write with.
        table: The table that is written to; None: only the statement knows.
        write: What to write.
        tag: What to say of it in the table's history.
        fence: Its place in the order of our writes to this table.
        user_metadata: The user's own commit metadata.
        tries: How often to try where another writer's commit wins. Only for writes that
            mean the same whatever that writer did.

    Returns:
        What the statement returned; nothing for a frame. A statement that its fence
        skipped returns nothing.

    Raises:
        PySparkException, Py4JJavaError: Whatever Spark or Delta raises.
    """
    moment("before", table, tag)
    for left in range(tries - 1, -1, -1):
        try:
            with exclusive(session):
                result = _perform(session, table, write, tag.text(user_metadata), fence)
            break
        except EngineFailure as error:
            if not left or not is_conflict(error):
                raise
            back_off(tries - left)
    moment("after", table, tag)
    return result


def back_off(attempt: int) -> None:
    """Wait before trying again: longer each time, and never in step with another writer."""
    time.sleep(min(0.1 * 2**attempt, 5.0) * (0.5 + random.random()))


def moment(when: Literal["before", "after"], table: TableName | None, tag: Tag) -> None:
    """Called before and after each commit. Does nothing; tests put faults here."""


def _perform(
    session: SparkSession, table: TableName | None, write: Write, metadata: str, fence: Fence | None
) -> list[Row]:
    if isinstance(write, Statement):
        values: dict[str, str | None] = {
            **write.conf,
            USER_METADATA: metadata,
            TXN_APP: None if fence is None else fence.app,
            TXN_VERSION: None if fence is None else str(fence.version),
        }
        with settings(session, values):
            return session.sql(write.sql).collect()
    assert table is not None, "only a statement can do without"
    # A frame's tag and fence are options of the writer, so no other thread's write through
    # this session can pick them up.
    options: dict[str, str] = {**write.options, "userMetadata": metadata}
    if fence is not None:
        options |= {"txnAppId": fence.app, "txnVersion": str(fence.version)}
    if isinstance(write, Own):
        write.write(options)
        return []
    writer = write.rows.write.format("delta").mode(write.mode).options(**options)
    if write.partition_by:
        writer = writer.partitionBy(*write.partition_by)
    if table.path is None:
        writer.saveAsTable(table.sql)
    else:
        writer.save(table.path)
    return []
