"""The keys for which checks fail, written to a table for whoever asks for them.

They are values of rows: they stand there, and in no message and no log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from deltacheck.config import Environment
from deltacheck.delta.commit import Frame, Tag, commit
from deltacheck.delta.session import aside
from deltacheck.delta.table import at_version, read_definition
from deltacheck.errors import LedgerError, TableNotFoundError
from deltacheck.ledger.tables import check_format, create_table, refused_as, schema_of, sql_time
from deltacheck.names import TableName, literal
from deltacheck.quality.scan import failing_keys
from deltacheck.rules.checks import TableCheck

STEP = "keys"
"""What the commit says of itself."""

_APPEND_TRIES = 5


@dataclass(frozen=True)
class Key:
    """One row of the table.

    Attributes:
        at: When the run began (UTC).
        version: The version of the table that was looked at.
        key: The values, as a JSON object.
        rows: How many rows have them.
    """

    at: datetime
    environment: str
    run: str
    table: str
    version: int
    check: str
    key: str
    rows: int


SCHEMA = schema_of(Key)


@dataclass(frozen=True)
class Fault:
    """A check that failed, on one version of its table."""

    table: TableName
    version: int
    check: TableCheck


def open_keys(session: SparkSession, environment: Environment, place: TableName) -> None:
    """Make sure that there is a table of keys, before anything is looked at.

    Raises:
        LedgerError: It is something else, or of a newer deltacheck; or it cannot be made.
        NotDeltaError: It is a view, or not Delta.
    """
    try:
        table = read_definition(session, place)
    except TableNotFoundError:
        _create(session, environment, place)
        return
    what = "a table of failing keys"
    check_format(table.properties, place, what)
    if _columns(table.schema) != _columns(SCHEMA):
        raise LedgerError(
            f"{place} is not {what} of deltacheck; it was left untouched.",
            hint="Name a table that is not there yet.",
            table=str(place),
        )


def _columns(schema: StructType) -> list[tuple[str, str]]:
    return [(one.name, one.dataType.simpleString()) for one in schema]


def _create(session: SparkSession, environment: Environment, place: TableName) -> None:
    what = f"{place} cannot be made for failing keys"
    hint = "Name another table, and see to your rights there."
    # Its statement takes its tag from the session's settings, which other threads share.
    with refused_as(place, what, "Nothing was checked.", hint), aside(session) as other:
        create_table(other, environment, place, SCHEMA, "Keys for which checks failed")


def write_keys(
    session: SparkSession,
    environment: Environment,
    place: TableName,
    faults: Iterable[Fault],
    at: datetime,
    run: str,
) -> bool:
    """Append the keys at fault, in one commit, to a table that ``open_keys`` has seen to.

    Only uniqueness and references have keys.

    Returns:
        Whether there was a check whose keys could be written.

    Raises:
        LedgerError: It cannot be written.
    """
    about = [
        f"{sql_time(at)} AS at",
        f"{literal(environment.name)} AS environment",
        f"{literal(run)} AS run",
    ]
    what = f"The keys for which checks failed could not be written to {place}"
    hint = "See to your rights there and to its constraints, and run the checks again."
    with refused_as(place, what, "What the checks found is in the log.", hint):
        found = [rows for one in faults if (rows := _keys(session, one)) is not None]
        if found:
            keys = reduce(DataFrame.unionByName, found)
            rows = keys.selectExpr(*about, *SCHEMA.names[len(about) :])
            commit(session, place, Frame(rows), tag=Tag(run=run, step=STEP), tries=_APPEND_TRIES)
    return bool(found)


def _keys(session: SparkSession, fault: Fault) -> DataFrame | None:
    sql = failing_keys(fault.check, at_version(fault.table, fault.version))
    if sql is None:
        return None
    return session.sql(sql).selectExpr(
        f"{literal(str(fault.table))} AS `table`",
        f"{fault.version}L AS version",
        f"{literal(fault.check.name)} AS `check`",
        "key",
        "rows",
    )
