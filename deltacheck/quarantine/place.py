"""Quarantine tables: made on first need, widened as their source gains columns, counted.

Knows how rows are labelled, not why they are bad.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from deltacheck.delta.commit import Statement, Tag, commit
from deltacheck.delta.failures import EngineFailure, failure_of, is_conflict
from deltacheck.delta.session import verdict_session
from deltacheck.delta.table import Definition, read_definition, read_table
from deltacheck.delta.warehouse import create_schema
from deltacheck.errors import QuarantineError, TableNotFoundError
from deltacheck.names import TableName, literal, quote
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.layout import Layout, columns_ddl, layout, needs_mapping

_FORMAT_KEY = "deltacheck.quarantine"
_SOURCE_KEY = "deltacheck.source"
_ID_KEY = "deltacheck.source_id"

NO_RULES = "CAST(array() AS array<string>)"
"""SQL for the names of the rules that a good row breaks."""


@dataclass(frozen=True)
class Place:
    """A quarantine table that can take the rows of a source.

    Attributes:
        columns: Source column to quarantine column.
    """

    source: TableName
    name: TableName
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Labels:
    """What the quarantine says of rows beside the rules that they broke.

    Attributes:
        rule: The rule that Delta named, for a written batch.
        source: upgrade, write, guard or overwrite.
        version: The source's version that the rows were read from or meant for.
    """

    source: str
    attempt: str
    version: int
    run: str | None = None
    batch: str | None = None
    revision: str | None = None
    job: str | None = None
    rule: str | None = None


def check_place(
    session: SparkSession, source: TableName, schema: StructType, name: TableName
) -> Layout:
    """Whether the quarantine can take the rows of a source; writes nothing.

    Raises:
        QuarantineError: A column's name is deltacheck's own, or the quarantine's name is
            taken by a table that is not this source's quarantine.
        NotDeltaError: There is something of that name that is not a Delta table.
    """
    return _fit(source, schema, read_place(session, source, name))


def prepare(
    session: SparkSession, source: TableName, schema: StructType, name: TableName, tag: Tag
) -> Place:
    """Make the quarantine table, or widen it, so that it can take the rows of a source.

    Raises:
        QuarantineError: It cannot be made, or the name is taken; no row was moved.
    """
    there = read_place(session, source, name)
    fit = _fit(source, schema, there)
    try:
        if there is None:
            create_schema(session, None, name)
            _create(session, source, name, fit, tag)
        elif fit.missing:
            _widen(session, there, fit.missing, tag)
    except EngineFailure as error:
        failure = failure_of(error)
        if is_conflict(error) or failure.family in _OVERTAKEN:
            # Another writer made or widened it in the same instant.
            now = _fit(source, schema, read_place(session, source, name))
            if not now.missing:
                return Place(source, name, now.columns)
        raise QuarantineError(
            f"The quarantine {name} of {source} cannot be made or widened: Spark says "
            f"{failure.condition or failure.kind}. What was to go there was not taken from the "
            "table.",
            hint="Check your rights on its schema, or name another place with `quarantine` in "
            "the environment.",
            table=str(source),
        ) from None
    return Place(source, name, fit.columns)


_OVERTAKEN = {
    "TABLE_OR_VIEW_ALREADY_EXISTS",
    "FIELD_ALREADY_EXISTS",
    "FIELDS_ALREADY_EXISTS",
    "DELTA_TABLE_ALREADY_EXISTS",
}


def read_place(session: SparkSession, source: TableName, name: TableName) -> Definition | None:
    """The quarantine table of a source, or None where there is none yet.

    Raises:
        QuarantineError: The name is taken by a table that is not this source's quarantine,
            or the quarantine has constraints, by which it could refuse rows.
        NotDeltaError: There is something of that name that is not a Delta table.
    """
    try:
        there = read_definition(session, name)
    except TableNotFoundError:
        return None
    if _FORMAT_KEY not in there.properties:
        raise QuarantineError(
            f"{name} is there already and is not a quarantine table of deltacheck; nothing was "
            f"moved from {source}.",
            hint="Name another place with `quarantine` in the environment.",
            table=str(source),
        )
    owner = TableName.parse(there.properties[_SOURCE_KEY])
    if not (owner == source or _same_table(session, there, owner, source)):
        raise QuarantineError(
            f"{name} is the quarantine of {owner}; nothing was moved from {source}.",
            hint="Let the environment's `quarantine` pattern lead each table to a place of its "
            "own.",
            table=str(source),
        )
    if there.constraints or there.not_null:
        raise QuarantineError(
            f"The quarantine {name} has constraints of its own, so it could refuse bad rows; "
            f"nothing was moved from {source}.",
            hint="Drop its constraints.",
            table=str(source),
        )
    return there


def _same_table(
    session: SparkSession, there: Definition, owner: TableName, source: TableName
) -> bool:
    """Whether a source is a quarantine's under another name: `orders`, its path, renamed."""
    identity = _identity(session, source)
    return identity is not None and identity in (
        there.properties.get(_ID_KEY),
        _identity(session, owner),
    )


def _identity(session: SparkSession, table: TableName) -> str | None:
    try:
        return read_table(session, table).id
    except TableNotFoundError:
        return None


def _fit(source: TableName, schema: StructType, there: Definition | None) -> Layout:
    return layout(schema, StructType([]) if there is None else there.schema, source)


def _create(
    session: SparkSession, source: TableName, name: TableName, fit: Layout, tag: Tag
) -> None:
    properties = {
        _FORMAT_KEY: "1",
        _SOURCE_KEY: str(source),
        _ID_KEY: _identity(session, source) or "",
        "delta.appendOnly": "false",
        "delta.enableChangeDataFeed": "false",
        "delta.columnMapping.mode": "name" if needs_mapping(_struct(fit.missing)) else "none",
    }
    listed = ", ".join(f"{literal(k)} = {literal(v)}" for k, v in properties.items())
    columns = columns_ddl((*own.OWN.fields, *fit.missing))
    statement = (
        f"CREATE TABLE {name.sql} ({columns}) USING delta "
        f"COMMENT {literal(f'Rows of {source} that broke its rules')} TBLPROPERTIES ({listed})"
    )
    # A session's defaults for new tables must not reach it; and the session of a job may be
    # used by other threads, whose settings stay as they are.
    with verdict_session(session) as own_session:
        commit(own_session, name, Statement(statement), tag=tag)


def _widen(
    session: SparkSession, there: Definition, missing: tuple[StructField, ...], tag: Tag
) -> None:
    name = there.name
    mapped = there.properties.get("delta.columnMapping.mode", "none") != "none"
    if not mapped and needs_mapping(_struct(missing)):
        _set_property(session, name, "delta.columnMapping.mode", "name", tag)
    add = Statement(f"ALTER TABLE {name.sql} ADD COLUMNS ({columns_ddl(missing)})")
    try:
        commit(session, name, add, tag=tag)
    except EngineFailure as error:
        failure = failure_of(error)
        # Some types are a feature that a table made without them does not have yet
        # (`Protocol.assertMetadataTableFeaturesAutomaticallySupported`).
        if failure.family != "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT":
            raise
        for feature in failure.parameters["unsupportedFeatures"].split(","):
            key = f"delta.feature.{feature.strip()}"
            _set_property(session, name, key, "supported", tag)
        commit(session, name, add, tag=tag)


def _set_property(session: SparkSession, name: TableName, key: str, value: str, tag: Tag) -> None:
    pair = f"{literal(key)} = {literal(value)}"
    commit(session, name, Statement(f"ALTER TABLE {name.sql} SET TBLPROPERTIES ({pair})"), tag=tag)


def _struct(fields: tuple[StructField, ...]) -> StructType:
    return StructType(list(fields))


def broken_rules(violators: Mapping[str, str]) -> str:
    """SQL for the array of the names of all the rules that a row breaks.

    Args:
        violators: Rule name to the predicate of its violators.
    """
    if not violators:
        return NO_RULES
    # No name is empty. array_compact, a filter by a lambda, would keep Spark from compiling the
    # projection that it stands in (`CodegenFallback`).
    cases = ", ".join(
        f"CASE WHEN {predicate} THEN {literal(name)} ELSE '' END"
        for name, predicate in violators.items()
    )
    return f"array_remove(array({cases}), '')"


def labelled(
    rows: DataFrame, place: Place, labels: Labels, violators: Mapping[str, str] | str
) -> DataFrame:
    """Rows of the source as rows of its quarantine.

    Args:
        rows: Rows with the source's columns.
        violators: Rule name to the predicate of its violators, over the source's columns; or
            the column of ``rows`` that holds the names of the rules that the row broke, NULL
            where it broke none.
    """
    broken = (
        f"coalesce({quote(violators)}, {NO_RULES})"
        if isinstance(violators, str)
        else broken_rules(violators)
    )
    values: Sequence[tuple[str, str]] = (
        (own.RULES, broken),
        (own.RULE, _text(labels.rule)),
        (own.SOURCE, _text(labels.source)),
        (own.RUN, _text(labels.run)),
        (own.BATCH, _text(labels.batch)),
        (own.ATTEMPT, _text(labels.attempt)),
        (own.REVISION, _text(labels.revision)),
        (own.JOB, _text(labels.job)),
        (own.VERSION, f"CAST({labels.version} AS bigint)"),
        (own.AT, "current_timestamp()"),
        (own.STATE, literal(own.HELD)),
        (own.RELEASE, _text(None)),
        (own.REASON, _text(None)),
    )
    present = {name.lower() for name in rows.columns}
    return rows.selectExpr(
        *(f"{sql} AS {quote(name)}" for name, sql in values),
        *(
            f"{quote(column)} AS {quote(target)}"
            for column, target in place.columns.items()
            if column.lower() in present
        ),
    )


def _text(value: str | None) -> str:
    return "CAST(NULL AS string)" if value is None else literal(value)


def held_by_rule(session: SparkSession, source: TableName, name: TableName) -> dict[str, int]:
    """How many rows the quarantine of a source holds, per rule (lower case) that they broke."""
    if read_place(session, source, name) is None:
        return {}
    rows = session.sql(
        f"SELECT lower(rule) AS rule, count(*) AS rows FROM "
        f"(SELECT explode({quote(own.RULES)}) AS rule FROM {name.sql} "
        f"WHERE {quote(own.STATE)} = '{own.HELD}') GROUP BY lower(rule)"
    ).collect()
    return {row["rule"]: row["rows"] for row in rows}
