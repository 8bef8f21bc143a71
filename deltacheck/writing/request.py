"""What a job asks for when it hands over a batch, checked before Spark is asked anything."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Union

from pyspark.sql import DataFrame

from deltacheck.errors import UsageError
from deltacheck.names import TableName
from deltacheck.quarantine import layout as own
from deltacheck.rules.checks import BatchCheck
from deltacheck.rules.given import checks_given, rules_given
from deltacheck.rules.model import Gate, Rule
from deltacheck.writing.once import Batch, job_batch

if TYPE_CHECKING:
    from deltacheck.writing.result import WriteResult

Mode = Literal["append", "overwrite", "replace"]
Route = Literal["batch", "rows"]
Rules = Union[Mapping[str, object], Iterable[Rule]]
Figure = Union[int, float, Decimal, Fraction]
OnQuarantine = Callable[["WriteResult"], object]

_OURS = ("txnappid", "txnversion")


@dataclass(frozen=True)
class Request:
    """One batch's errand.

    Attributes:
        dynamic: Whether an overwrite replaces only the partitions that the batch has; None:
            the session says.
        options: Options of the DataFrame writer that deltacheck does not take care of itself.
        rules: Rules for this batch, by key.
        checks: Checks for this batch, by name in lower case.
        figures: What the job says of the batch, by name.
        source: How the quarantine tells where its rows come from.
    """

    table: TableName
    mode: Mode = "append"
    route: Route = "batch"
    batch: Batch | None = None
    partition_by: tuple[str, ...] = ()
    replace_where: str | None = None
    dynamic: bool | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    user_metadata: str | None = None
    rules: Mapping[str, Rule] = field(default_factory=dict)
    checks: Mapping[str, BatchCheck] = field(default_factory=dict)
    figures: Mapping[str, Fraction] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    quarantine: TableName | None = None
    max_bad: Gate | None = None
    gate: Gate | None = None
    strict: bool = False
    create: bool = True
    job: str | None = None
    on_quarantine: OnQuarantine | None = None
    source: str = own.WRITE

    @property
    def batch_id(self) -> str | None:
        """The id that the batch was given."""
        return None if self.batch is None else self.batch.id

    @property
    def evolves(self) -> bool:
        """Whether the write may add columns to the table or widen them."""
        options = {key.lower(): value for key, value in self.options.items()}
        return str(options.get("mergeschema", "false")).lower() == "true"


def request(
    table: str,
    *,
    mode: str = "append",
    route: str = "batch",
    batch_id: object = None,
    batch: Batch | None = None,
    partition_by: str | Iterable[str] | None = None,
    replace_where: str | None = None,
    options: Mapping[str, object] | None = None,
    rules: Rules | None = None,
    checks: Mapping[str, object] | None = None,
    figures: Mapping[str, Figure] | None = None,
    keep: str | Iterable[str] = (),
    quarantine: str | None = None,
    max_bad: str | int | None = None,
    gate: str | int | None = None,
    strict: bool = False,
    create: bool = True,
    job: str | None = None,
    on_quarantine: OnQuarantine | None = None,
) -> Request:
    """Read the arguments of a write.

    Raises:
        UsageError: They contradict each other.
        DeclarationError: A gate or a rule is malformed.
        IdentifierError: A table's name is not one.
    """
    if mode not in ("append", "overwrite", "replace"):
        raise _usage(table, f"mode={mode!r}", "mode is append, overwrite or replace")
    if route not in ("batch", "rows"):
        raise _usage(table, f"route={route!r}", "route is batch or rows")
    if replace_where is not None and mode != "overwrite":
        raise _usage(table, "replace_where", 'replace_where goes with mode="overwrite"')
    if max_bad is not None and route != "rows":
        raise _usage(table, "max_bad", 'max_bad goes with route="rows"')
    if batch_id is not None:
        if not str(batch_id).strip():
            raise _usage(table, f"batch_id={batch_id!r}", "give the batch an id that is not empty")
        batch = job_batch(str(batch_id))
    name = TableName.parse(table)
    rest = {key: str(value) for key, value in (options or {}).items()}
    taken = {key.lower(): key for key in rest}
    if batch is not None and any(key in taken for key in _OURS):
        raise _usage(table, "txnAppId", "with a batch id, Delta's transaction ids are deltacheck's")
    user_metadata = _pop(rest, taken, "userMetadata")
    where = _pop(rest, taken, "replaceWhere")
    overwrite = _pop(rest, taken, "partitionOverwriteMode")
    given = {} if rules is None else {rule.key: rule for rule in rules_given(name, rules).rules}
    return Request(
        table=name,
        mode=mode,  # type: ignore[arg-type]
        route=route,  # type: ignore[arg-type]
        batch=batch,
        partition_by=_names(partition_by or ()),
        replace_where=replace_where if replace_where is not None else where,
        dynamic=None if overwrite is None else overwrite.lower() == "dynamic",
        options=rest,
        user_metadata=user_metadata,
        rules=given,
        checks={check.name.lower(): check for check in checks_given(name, checks or {})},
        figures=read_figures(table, figures or {}),
        keep=_names(keep),
        quarantine=None if quarantine is None else TableName.parse(quarantine),
        max_bad=None if max_bad is None else Gate.parse(max_bad),
        gate=None if gate is None else Gate.parse(gate),
        strict=strict,
        create=create,
        job=job,
        on_quarantine=on_quarantine,
        source=own.WRITE if mode == "append" else own.OVERWRITE,
    )


def read_figures(table: str, figures: Mapping[str, Figure]) -> dict[str, Fraction]:
    """What a job says of a batch, by name.

    Raises:
        UsageError: A figure is not a number.
    """
    return {key: _figure(table, key, value) for key, value in figures.items()}


def _figure(table: str, name: str, value: Figure) -> Fraction:
    # NaN and infinity agree with nothing.
    if isinstance(value, bool) or not math.isfinite(value):
        raise _usage(table, f"the figure {name}={value!r}", "a figure is a number")
    return Fraction(value)


def check_frame(df: DataFrame, asked: Request) -> None:
    """Whether a batch can be written as asked.

    Raises:
        UsageError: It is a stream, or lacks a column that is to be kept.
    """
    if df.isStreaming:
        raise UsageError(
            f"A stream cannot be written to {asked.table} as a batch; nothing was written.",
            hint="Use writeStream.foreachBatch(deltacheck.foreach_batch(...)).",
            table=str(asked.table),
        )
    there = {name.lower() for name in df.columns}
    for name in asked.keep:
        if name.lower() not in there:
            raise UsageError(
                f"The batch for {asked.table} has no column {name}, which is to be kept with "
                "quarantined rows; nothing was written.",
                hint=f"It has: {', '.join(df.columns[:12])}.",
                table=str(asked.table),
            )


def _pop(options: dict[str, str], keys: Mapping[str, str], name: str) -> str | None:
    # The writer's options compare without regard to case.
    key = keys.get(name.lower())
    return None if key is None else options.pop(key)


def _names(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _usage(table: str, what: str, hint: str) -> UsageError:
    return UsageError(
        f"{what} cannot be asked of a write to {table}; nothing was written.",
        hint=hint[0].upper() + hint[1:] + ".",
        table=table,
    )
