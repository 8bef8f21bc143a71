"""Checks as values: what must hold for a batch as a whole, or for a table as a whole.

A rule is about one row; a check is about many: how many there are, whether they are unique,
fresh, and as many as usual. Knows nothing of files and nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Union

from deltacheck.names import TableName
from deltacheck.rules.model import Gate, Origin
from deltacheck.rules.quantities import Age, Measure, Tolerance, Window


class OnFailure(str, Enum):
    """What a check that fails means. Only a batch can be quarantined."""

    FAIL = "fail"
    QUARANTINE = "quarantine"
    WARN = "warn"


@dataclass(frozen=True)
class RowCount:
    """How many rows there are."""

    least: int | None = None
    most: int | None = None


@dataclass(frozen=True)
class Unique:
    """No two rows have the same values in some columns; rows with a NULL among them do not
    count, as in SQL.

    Attributes:
        columns: SQL of each.
        in_table: Of a batch: whether the table's own rows count too.
    """

    columns: tuple[str, ...]
    in_table: bool = False


@dataclass(frozen=True)
class References:
    """Each row's columns are found in another table.

    Attributes:
        keys: The other table's columns, in the same order.
        nulls: Whether a row with a NULL among its columns is let pass.
    """

    columns: tuple[str, ...]
    table: TableName
    keys: tuple[str, ...]
    nulls: bool = True


@dataclass(frozen=True)
class Freshness:
    """The newest row is not older than so much.

    Attributes:
        column: SQL of a timestamp or a date.
    """

    column: str
    max_age: Age


@dataclass(frozen=True)
class Other:
    """What a figure is compared with: a measure of another table.

    Attributes:
        where: SQL that narrows its rows.
    """

    table: TableName
    measure: Measure
    where: str | None = None


@dataclass(frozen=True)
class Reconcile:
    """A sum or a count agrees with a figure of another table, or with one that the job gives.

    Attributes:
        other: The other table's figure; None: the job gives it.
        figure: The name under which the job gives it.
    """

    measure: Measure
    tolerance: Tolerance
    other: Other | None = None
    figure: str | None = None


@dataclass(frozen=True)
class Trend:
    """A figure is like those before it.

    Attributes:
        within: How many spreads a figure may lie from the median of those before it.
    """

    measure: Measure
    last: Window
    within: Fraction


@dataclass(frozen=True)
class QuarantineLimits:
    """How many rows the table's quarantine holds, and for how long."""

    rows: int | None = None
    oldest: Age | None = None


@dataclass(frozen=True)
class NullShare:
    """Not more rows than so many have a NULL.

    Attributes:
        column: SQL of the column.
    """

    column: str
    most: Gate


@dataclass(frozen=True)
class BrokenShare:
    """Not more rows than so many break a rule.

    Attributes:
        rule: The rule; None: any of the table's.
    """

    most: Gate
    rule: str | None = None


@dataclass(frozen=True)
class Columns:
    """The batch has columns of some types; it may have others besides.

    Attributes:
        types: Column to its type as Spark spells it, for example ``decimal(10,2)``.
    """

    types: Mapping[str, str]


@dataclass(frozen=True)
class Requires:
    """Another table has rows, and where asked for, its newest is not older than so much."""

    table: TableName
    fresh: Freshness | None = None


TableTest = Union[RowCount, Unique, References, Freshness, Reconcile, Trend, QuarantineLimits]
"""What a check of a table can look at."""

BatchTest = Union[RowCount, Unique, NullShare, BrokenShare, Columns, Requires, Reconcile]
"""What a check of a batch can look at."""


@dataclass(frozen=True)
class BatchCheck:
    """Something that must hold for a batch as a whole, before it is written.

    Attributes:
        name: As declared; compares without regard to case.
        kind: The key under which the test was declared, for example ``row_count``.
    """

    name: str
    kind: str
    test: BatchTest
    on_failure: OnFailure = OnFailure.FAIL
    description: str = ""
    tags: tuple[str, ...] = ()
    owner: str = ""
    origin: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True)
class TableCheck:
    """Something that must hold for a table as a whole.

    Attributes:
        name: As declared; compares without regard to case.
        kind: The key under which the test was declared, for example ``freshness``.
        where: SQL of the rows that are looked at; None: all.
        by: SQL of what the rows are grouped by; each group is judged by itself.
        show_groups: Whether messages may name the groups, which are values of rows.
    """

    name: str
    kind: str
    test: TableTest
    where: str | None = None
    by: tuple[str, ...] = ()
    show_groups: bool = False
    on_failure: OnFailure = OnFailure.FAIL
    description: str = ""
    tags: tuple[str, ...] = ()
    owner: str = ""
    origin: Origin | None = field(default=None, compare=False)
