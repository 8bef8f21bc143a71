"""Quarantined rows themselves: shown, or written to files, because somebody asked for them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    VariantType,
)

from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.delta.warehouse import warehouse_of
from deltacheck.errors import QuarantineError, UsageError
from deltacheck.names import literal, quote
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.holding import Holding, Selection, is_state

State = Literal["held", "released", "discarded", "all"]
"""Which rows are meant."""

Format = Literal["csv", "json", "parquet"]

_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_CSV = {
    "header": "true",
    "escape": '"',
    # Spark's writer trims texts by default.
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
    **_TIMES,
}
_JSON = {"ignoreNullFields": "false", **_TIMES}


@dataclass(frozen=True)
class Shown:
    """Quarantined rows.

    Attributes:
        columns: Their columns, deltacheck's own before the source's.
        rows: Each a mapping from column to value as JSON has it: numbers, texts, booleans,
            lists, mappings, None; times as ISO 8601 in UTC, decimals and bytes (base64) as
            text.
        total: How many rows there are; those beyond the limit are not among ``rows``.
    """

    table: str
    quarantine: str
    columns: tuple[str, ...] = ()
    rows: tuple[Mapping[str, Any], ...] = ()
    total: int = 0


@dataclass(frozen=True)
class Exported:
    """Quarantined rows that were written to a folder of files."""

    table: str
    quarantine: str
    path: str
    format: Format
    rows: int


def show_rows(
    place: Holding, selection: Selection, columns: Sequence[str], limit: int, state: State
) -> Shown:
    """Read quarantined rows, the oldest first; see ``deltacheck.quarantine.show``."""
    if place.held is None:
        return Shown(str(place.source), str(place.name))
    fields = _fields(place, columns or [own.RULES, *_source_columns(place)])
    rows = _rows(place, selection, state)
    listed = ", ".join(_as_json(one) for one in fields)
    options = ", ".join(f"{literal(key)}, {literal(value)}" for key, value in _JSON.items())
    found = (
        rows.orderBy(own.AT)
        .limit(limit)
        .selectExpr(f"to_json(struct({listed}), map({options})) AS row")
    )
    return Shown(
        str(place.source),
        str(place.name),
        tuple(one.name for one in fields),
        tuple(json.loads(row["row"]) for row in found.collect()),
        rows.count(),
    )


def export_rows(
    place: Holding,
    path: str,
    format: str | None,
    selection: Selection,
    columns: Sequence[str],
    state: State,
) -> Exported:
    """Write quarantined rows to files; see ``deltacheck.quarantine.export``."""
    chosen = _format(path, format)
    if warehouse_of(place.session) is not None and "://" not in path:
        # The Java of an embedded session keeps the folder in which it was started.
        path = str(Path(path).absolute())
    if place.held is None:
        raise QuarantineError(
            f"Nothing of {place.source} was ever quarantined: there is no {place.name}; nothing "
            "was written.",
            table=str(place.source),
        )
    fields = _fields(place, columns or place.held.schema.names)
    rows = _rows(place, selection, state)
    count = rows.count()
    if chosen == "csv":
        rows = rows.selectExpr(*map(_as_text, fields)).coalesce(1)
        writer = rows.write.options(**_CSV)
    else:
        rows = rows.selectExpr(*(quote(one.name) for one in fields))
        writer = rows.coalesce(1).write.options(**_JSON) if chosen == "json" else rows.write
    try:
        writer.format(chosen).mode("error").save(path)
    except EngineFailure as error:
        failure = failure_of(error)
        if failure.family == "PATH_ALREADY_EXISTS":
            raise UsageError(
                f"{path} is there already; nothing was written.", hint="Name another path."
            ) from None
        raise QuarantineError(
            f"{path} cannot be written: Spark says {failure.condition or failure.kind}.",
            hint="It must be a place that Spark itself can write to.",
            table=str(place.source),
        ) from None
    return Exported(str(place.source), str(place.name), path, chosen, count)


def _format(path: str, named: str | None) -> Format:
    match (named or path.rstrip("/").rsplit(".", 1)[-1]).lower():
        case "csv":
            return "csv"
        case "json":
            return "json"
        case "parquet":
            return "parquet"
    raise UsageError(
        f"{path} does not say in which format; nothing was written.",
        hint="End it in .csv, .json or .parquet, or name one of them with --format.",
    )


def _rows(place: Holding, selection: Selection, state: State) -> DataFrame:
    states = (own.HELD, own.RELEASED, own.DISCARDED) if state == "all" else (state,)
    where = f"{is_state(*states)} AND {selection.predicate(place)}"
    return place.session.table(place.name.sql).where(where)


def _source_columns(place: Holding) -> list[str]:
    assert place.held is not None, "there is something to read"
    return [name for name in place.held.schema.names if not own.is_own(name)]


def _fields(place: Holding, columns: Sequence[str]) -> list[StructField]:
    assert place.held is not None, "there is something to read"
    there = {one.name.lower(): one for one in place.held.schema.fields}
    unknown = [name for name in columns if name.lower() not in there]
    if unknown:
        raise UsageError(
            f"{place.name} has no column {unknown[0]}; nothing was read.",
            hint=f"It has: {', '.join(one.name for one in there.values())}.",
            table=str(place.source),
        )
    return [there[name.lower()] for name in columns]


def _as_json(one: StructField) -> str:
    name = quote(one.name)
    # A JSON number of so many digits is another number to most of its readers.
    return f"CAST({name} AS string) AS {name}" if isinstance(one.dataType, DecimalType) else name


def _as_text(one: StructField) -> str:
    name = quote(one.name)
    if isinstance(one.dataType, BinaryType):
        return f"base64({name}) AS {name}"
    if _is_nested(one.dataType):
        options = ", ".join(f"{literal(key)}, {literal(value)}" for key, value in _JSON.items())
        return f"to_json({name}, map({options})) AS {name}"
    return name


def _is_nested(dtype: DataType) -> bool:
    return isinstance(dtype, (ArrayType, MapType, StructType, VariantType))
