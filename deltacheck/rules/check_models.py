"""What may stand under ``batch:`` and ``checks:``, as pydantic models, and the checks they make.

Each check has a name and one test; the key of the test says what it looks at. Reads no files.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from typing import Annotated, Optional, Union

from pydantic import ConfigDict, Field, model_validator

from deltacheck.names import TableName
from deltacheck.rules.checks import (
    BatchCheck,
    BatchTest,
    BrokenShare,
    Columns,
    Freshness,
    NullShare,
    OnFailure,
    Other,
    QuarantineLimits,
    Reconcile,
    References,
    Requires,
    RowCount,
    TableCheck,
    TableTest,
    Trend,
    Unique,
)
from deltacheck.rules.fields import (
    AgeText,
    Condition,
    Count,
    GateText,
    MeasureText,
    NumberText,
    Sql,
    SqlList,
    Strict,
    Text,
    ToleranceText,
    WindowText,
    Word,
    one_of,
    refuse_whole,
)
from deltacheck.rules.model import Origin
from deltacheck.rules.quantities import Measure, MeasureKind, Tolerance, Window

EXACTLY = Tolerance.parse("0")
USUAL_WINDOW = Window.parse("14 runs")
USUAL_SPREADS = Fraction(4)

_RECONCILED = (MeasureKind.ROW_COUNT, MeasureKind.SUM)


class NullsWord(str, Enum):
    """Whether a reference may be NULL."""

    ALLOWED = "allowed"
    REFUSED = "refused"


class FailureWord(str, Enum):
    """What a failed check of a table means."""

    FAIL = "fail"
    WARN = "warn"


Tests = dict[str, str]
"""Key of a test to an example of it."""

TABLE_TESTS: Tests = {
    "row_count": "row_count: {min: 1}",
    "unique": "unique: order_id",
    "references": "references: {columns: customer_id, table: shop.customers}",
    "freshness": "freshness: {column: placed_at, max_age: 26h}",
    "reconcile": "reconcile: {measure: sum(amount), against: {table: finance.ledger}}",
    "trend": "trend: {measure: row_count, last: 14 runs}",
    "quarantine": "quarantine: {rows: 100, oldest: 7d}",
}
BATCH_TESTS: Tests = {
    "row_count": "row_count: {min: 100, max: 5000}",
    "not_empty": "not_empty: true",
    "unique": "unique: order_id",
    "unique_in_table": "unique_in_table: order_id",
    "null_share": "null_share: {column: customer_id, max: 5%}",
    "broken_share": "broken_share: {rule: amount_positive, max: 1%}",
    "columns": "columns: {order_id: bigint}",
    "requires": "requires: {table: shop.customers}",
    "reconcile": "reconcile: {measure: row_count, figure: lines}",
}


class RowCountDeclaration(Strict):
    """How many rows there may be."""

    min: Optional[Count] = Field(None, description="At least so many rows.")  # noqa: UP045
    max: Optional[Count] = Field(None, description="At most so many rows.")  # noqa: UP045

    @model_validator(mode="after")
    def _some(self) -> RowCountDeclaration:
        if self.min is None and self.max is None:
            raise refuse_whole("row_count has neither min nor max", "Write one of them, or both.")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise refuse_whole("row_count has a min above its max", "Exchange them.")
        return self


class ReferencesDeclaration(Strict):
    """Where the values of some columns must be found."""

    columns: SqlList = Field(
        description="A column, or a list of them.", examples=["customer_id", ["shop", "number"]]
    )
    table: Text = Field(description="The table that has them.", examples=["shop.customers"])
    keys: SqlList = Field(
        (), description="That table's columns, in the same order; default: of the same names."
    )
    nulls: Annotated[NullsWord, one_of("one of the two", NullsWord)] = Field(
        NullsWord.ALLOWED,
        description="Whether a row may have NULL there: allowed or refused. They are counted.",
    )

    @model_validator(mode="after")
    def _as_many(self) -> ReferencesDeclaration:
        if self.keys and len(self.keys) != len(self.columns):
            raise refuse_whole(
                f"references has {len(self.columns)} columns and {len(self.keys)} keys",
                "Name a key for each column.",
            )
        return self


class FreshnessDeclaration(Strict):
    """How old the newest row may be."""

    column: Sql = Field(description="A timestamp or a date of the row.", examples=["placed_at"])
    max_age: AgeText = Field(
        description="The greatest age: 90m, 26h, 7d or 2w. Rows dated later than now do not count.",
    )


class OtherDeclaration(Strict):
    """A figure of another table."""

    table: Text = Field(description="The other table.", examples=["finance.ledger"])
    measure: Optional[MeasureText] = Field(  # noqa: UP045
        None, description="What is measured there; default: the same."
    )
    where: Condition = Field("", description="SQL for the rows of it that count.")


class ReconcileDeclaration(Strict):
    """Two figures that must agree."""

    measure: MeasureText = Field(description="row_count, or sum(x).", examples=["sum(amount)"])
    against: OtherDeclaration = Field(description="The other figure.")
    tolerance: ToleranceText = Field(
        EXACTLY, description="How far they may lie apart: 0.01, or 1% of the other figure."
    )

    @model_validator(mode="after")
    def _countable(self) -> ReconcileDeclaration:
        _check_reconciled(self.measure, self.against.measure)
        return self


class BatchReconcileDeclaration(Strict):
    """A figure of the batch, and what it must agree with."""

    measure: MeasureText = Field(description="row_count, or sum(x).", examples=["sum(amount)"])
    against: Optional[OtherDeclaration] = Field(  # noqa: UP045
        None, description="The figure of another table."
    )
    figure: Word = Field(
        "",
        description="The name of a figure that the job gives with the batch.",
        examples=["control_total"],
    )
    tolerance: ToleranceText = Field(
        EXACTLY, description="How far they may lie apart: 0.01, or 1% of the other figure."
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> BatchReconcileDeclaration:
        if bool(self.figure) == (self.against is not None):
            raise refuse_whole(
                "reconcile has both against and figure"
                if self.figure
                else "reconcile has neither against nor figure",
                "Write `against: {table: ...}`, or `figure: name` for one that the job gives.",
            )
        _check_reconciled(self.measure, None if self.against is None else self.against.measure)
        return self


def _check_reconciled(*measures: Measure | None) -> None:
    for measure in measures:
        if measure is not None and measure.kind not in _RECONCILED:
            raise refuse_whole(f"reconcile cannot compare {measure}", "Write row_count, or sum(x).")


class TrendDeclaration(Strict):
    """A figure that must be like those before it."""

    measure: MeasureText = Field(
        description="row_count, sum(x), mean(x), null_share(x), shares(x) for the share of each "
        "value, or failure_share(rule).",
        examples=["mean(amount)"],
    )
    last: WindowText = Field(
        USUAL_WINDOW,
        description="What it is compared with: `14 runs`, or `8 weeks` for the same weekday of "
        "the last 8 weeks.",
    )
    within: NumberText = Field(
        USUAL_SPREADS,
        description="How many spreads it may lie from the median of those before it. The spread "
        "is their median distance from their median.",
    )


class QuarantineDeclaration(Strict):
    """How much a table's quarantine may hold."""

    rows: Optional[Count] = Field(None, description="At most so many rows held.")  # noqa: UP045
    oldest: Optional[AgeText] = Field(  # noqa: UP045
        None, description="None of them held for longer: 7d or 2w."
    )

    @model_validator(mode="after")
    def _some(self) -> QuarantineDeclaration:
        if self.rows is None and self.oldest is None:
            raise refuse_whole(
                "quarantine has neither rows nor oldest", "Write one of them, or both."
            )
        return self


class NullShareDeclaration(Strict):
    """How many rows may have a NULL."""

    column: Sql = Field(description="The column.", examples=["customer_id"])
    max: GateText = Field(description="The most rows: a number, 5% or 1/3 of the batch.")


class BrokenShareDeclaration(Strict):
    """How many rows may break a rule."""

    rule: Text = Field("", description="The rule; default: any of the table's.")
    max: GateText = Field(description="The most rows: a number, 5% or 1/3 of the batch.")


class RequiresDeclaration(Strict):
    """Another table that must be there first."""

    table: Text = Field(description="It must not be empty.", examples=["shop.customers"])
    column: Sql = Field("", description="A timestamp or a date of its rows.")
    max_age: Optional[AgeText] = Field(  # noqa: UP045
        None, description="The greatest age of its newest row: 90m, 26h, 7d or 2w."
    )

    @model_validator(mode="after")
    def _both(self) -> RequiresDeclaration:
        if bool(self.column) != (self.max_age is not None):
            raise refuse_whole(
                "requires has only one of column and max_age", "Write both of them, or neither."
            )
        return self


class _Declared(Strict):
    description: Text = Field("", description="What the check is for.")
    tags: tuple[Word, ...] = Field((), description="Words by which commands can be narrowed.")
    owner: Text = Field("", description="Who answers for the check.")

    def kind(self, tests: Tests) -> str:
        """The key of the one test that it has."""
        found = [key for key in tests if key in self.model_fields_set]
        if len(found) != 1:
            example = next(iter(tests.values()))
            raise refuse_whole(
                f"has both {found[0]} and {found[1]}" if found else "says nothing to look at",
                "Make two checks of it."
                if found
                else f"Write one of {', '.join(tests)}; for example `{example}`.",
            )
        return found[0]


def _one(tests: Tests) -> ConfigDict:
    return ConfigDict(json_schema_extra={"oneOf": [{"required": [key]} for key in tests]})


class CheckDeclaration(_Declared):
    """A check: what must hold for the table as a whole; run by `deltacheck check`."""

    model_config = _one(TABLE_TESTS)

    row_count: Optional[RowCountDeclaration] = Field(  # noqa: UP045
        None, description="How many rows there are."
    )
    unique: SqlList = Field(
        (),
        description="A column or a list of them whose values stand in one row only; rows with "
        "a NULL among them do not count.",
    )
    references: Optional[ReferencesDeclaration] = Field(  # noqa: UP045
        None, description="Columns whose values are found in another table."
    )
    freshness: Optional[FreshnessDeclaration] = Field(  # noqa: UP045
        None, description="The newest row is not too old."
    )
    reconcile: Optional[ReconcileDeclaration] = Field(  # noqa: UP045
        None, description="A sum or a count agrees with one of another table."
    )
    trend: Optional[TrendDeclaration] = Field(  # noqa: UP045
        None, description="A figure is like those of earlier runs."
    )
    quarantine: Optional[QuarantineDeclaration] = Field(  # noqa: UP045
        None, description="The table's quarantine does not hold too much, or for too long."
    )
    where: Condition = Field("", description="SQL for the rows that are looked at; default: all.")
    by: SqlList = Field(
        (),
        description="A column, an expression or a list of them; each group of rows is judged "
        "by itself.",
        examples=["region", ["region", "date(placed_at)"]],
    )
    show_groups: bool = Field(
        False,
        description="Whether messages and the log may name the groups, which are values of "
        "rows; else they are counted.",
    )
    on_failure: Annotated[FailureWord, one_of("fail or warn", FailureWord)] = Field(
        FailureWord.FAIL,
        description="fail: `deltacheck check` exits with 4. warn: it only says so.",
    )

    @model_validator(mode="after")
    def _sound(self) -> CheckDeclaration:
        kind = self.kind(TABLE_TESTS)
        if kind == "quarantine" and (self.where or self.by):
            raise refuse_whole(
                "a check of the quarantine takes neither where nor by", "Delete them."
            )
        if self.show_groups and not self.by and not _counts_values(self.trend):
            raise refuse_whole("has show_groups and no groups", "Add `by:`, or delete it.")
        return self


def _counts_values(trend: TrendDeclaration | None) -> bool:
    return trend is not None and trend.measure.kind is MeasureKind.SHARES


class BatchCheckDeclaration(_Declared):
    """A check of a batch as a whole, before it is written."""

    model_config = _one(BATCH_TESTS)

    row_count: Optional[RowCountDeclaration] = Field(  # noqa: UP045
        None, description="How many rows there are."
    )
    not_empty: bool = Field(False, description="There is a row at all.")
    unique: SqlList = Field(
        (), description="A column or a list of them whose values stand in one row only."
    )
    unique_in_table: SqlList = Field(
        (), description="The same, and the values are not in the table either."
    )
    null_share: Optional[NullShareDeclaration] = Field(  # noqa: UP045
        None, description="Not too many rows have a NULL."
    )
    broken_share: Optional[BrokenShareDeclaration] = Field(  # noqa: UP045
        None, description="Not too many rows break a rule."
    )
    columns: dict[str, Text] = Field(
        default_factory=dict,
        min_length=1,
        description="Columns that the batch has, with their types as Spark spells them.",
        examples=[{"order_id": "bigint", "amount": "decimal(10,2)"}],
    )
    requires: Optional[RequiresDeclaration] = Field(  # noqa: UP045
        None, description="Another table has rows, and is fresh."
    )
    reconcile: Optional[BatchReconcileDeclaration] = Field(  # noqa: UP045
        None, description="A sum or a count agrees with another figure."
    )
    on_failure: Annotated[OnFailure, one_of("fail, quarantine or warn", OnFailure)] = Field(
        OnFailure.FAIL,
        description="fail: the write raises and nothing is written. quarantine: the batch goes "
        "to the quarantine. warn: it is written, and that is logged.",
    )

    @model_validator(mode="after")
    def _sound(self) -> BatchCheckDeclaration:
        if self.kind(BATCH_TESTS) == "not_empty" and not self.not_empty:
            raise refuse_whole(
                "not_empty asks for nothing", "Write `not_empty: true`, or delete the check."
            )
        return self


Steps = tuple[Union[str, int], ...]
NameTable = Callable[[Steps, str], TableName]
"""Reads the name of another table, at the end of these steps; raises where it is none."""


def _other(kind: str, declared: OtherDeclaration, same: Measure, name_table: NameTable) -> Other:
    table = name_table((kind, "against", "table"), declared.table)
    return Other(table, declared.measure or same, declared.where or None)


def table_check_of(
    name: str, declared: CheckDeclaration, *, name_table: NameTable, origin: Origin | None = None
) -> TableCheck:
    """The check of a table that a declaration describes.

    Args:
        name: Its name.
        declared: What was declared.
        name_table: Reads the name of another table.
        origin: Where it was declared.

    Raises:
        DeclarationError: It names a table that is none.
    """
    kind = declared.kind(TABLE_TESTS)
    return TableCheck(
        name=name,
        kind=kind,
        test=_table_test(kind, declared, name_table),
        where=declared.where or None,
        by=declared.by,
        show_groups=declared.show_groups,
        on_failure=OnFailure(declared.on_failure.value),
        description=declared.description,
        tags=declared.tags,
        owner=declared.owner,
        origin=origin,
    )


def _table_test(kind: str, declared: CheckDeclaration, name_table: NameTable) -> TableTest:
    if declared.row_count is not None:
        return RowCount(declared.row_count.min, declared.row_count.max)
    if declared.references is not None:
        found = declared.references
        table = name_table((kind, "table"), found.table)
        keys = found.keys or found.columns
        return References(found.columns, table, keys, found.nulls is NullsWord.ALLOWED)
    if declared.freshness is not None:
        return Freshness(declared.freshness.column, declared.freshness.max_age)
    if declared.reconcile is not None:
        compared = declared.reconcile
        other = _other(kind, compared.against, compared.measure, name_table)
        return Reconcile(compared.measure, compared.tolerance, other)
    if declared.trend is not None:
        return Trend(declared.trend.measure, declared.trend.last, declared.trend.within)
    if declared.quarantine is not None:
        return QuarantineLimits(declared.quarantine.rows, declared.quarantine.oldest)
    return Unique(declared.unique)


def batch_check_of(
    name: str,
    declared: BatchCheckDeclaration,
    *,
    name_table: NameTable,
    origin: Origin | None = None,
) -> BatchCheck:
    """The check of a batch that a declaration describes; arguments and errors as for tables."""
    kind = declared.kind(BATCH_TESTS)
    return BatchCheck(
        name=name,
        kind=kind,
        test=_batch_test(kind, declared, name_table),
        on_failure=declared.on_failure,
        description=declared.description,
        tags=declared.tags,
        owner=declared.owner,
        origin=origin,
    )


def declaration_of(check: BatchCheck) -> dict[str, object]:
    """What would declare a check of a batch, as plain values that JSON can hold.

    Names of tables stand as they were read, with no variable left in them.
    """
    told = True if check.kind == "not_empty" else _declared_test(check.test)
    owner = {"owner": check.owner} if check.owner else {}
    return {check.kind: told, "on_failure": check.on_failure.value, **owner}


def _declared_test(test: BatchTest) -> object:
    if isinstance(test, RowCount):
        limits = {"min": test.least, "max": test.most}
        return {key: rows for key, rows in limits.items() if rows is not None}
    if isinstance(test, Unique):
        return list(test.columns)
    if isinstance(test, NullShare):
        return {"column": test.column, "max": test.most.declared}
    if isinstance(test, BrokenShare):
        rule = {} if test.rule is None else {"rule": test.rule}
        return {**rule, "max": test.most.declared}
    if isinstance(test, Columns):
        return dict(test.types)
    if isinstance(test, Requires):
        fresh = test.fresh
        needed = {} if fresh is None else {"column": fresh.column, "max_age": fresh.max_age.text}
        return {"table": str(test.table), **needed}
    return _declared_reconcile(test)


def _declared_reconcile(test: Reconcile) -> object:
    compared: dict[str, object] = {
        "measure": test.measure.text,
        "tolerance": test.tolerance.text,
    }
    if test.other is None:
        return {**compared, "figure": test.figure}
    where = {} if test.other.where is None else {"where": test.other.where}
    other = {"table": str(test.other.table), "measure": test.other.measure.text, **where}
    return {**compared, "against": other}


def _batch_test(kind: str, declared: BatchCheckDeclaration, name_table: NameTable) -> BatchTest:
    if declared.row_count is not None:
        return RowCount(declared.row_count.min, declared.row_count.max)
    if declared.null_share is not None:
        assert declared.null_share.max is not None, "the key is mandatory"
        return NullShare(declared.null_share.column, declared.null_share.max)
    if declared.broken_share is not None:
        assert declared.broken_share.max is not None, "the key is mandatory"
        return BrokenShare(declared.broken_share.max, declared.broken_share.rule or None)
    if declared.requires is not None:
        needed = declared.requires
        table = name_table((kind, "table"), needed.table)
        fresh = None if needed.max_age is None else Freshness(needed.column, needed.max_age)
        return Requires(table, fresh)
    if declared.reconcile is not None:
        compared = declared.reconcile
        if compared.against is None:
            return Reconcile(compared.measure, compared.tolerance, figure=compared.figure)
        other = _other(kind, compared.against, compared.measure, name_table)
        return Reconcile(compared.measure, compared.tolerance, other)
    if declared.not_empty:
        return RowCount(least=1)
    if declared.columns:
        return Columns(declared.columns)
    return Unique(declared.unique or declared.unique_in_table, in_table=kind == "unique_in_table")
