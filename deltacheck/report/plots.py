"""Plots as values: how high each column is, and which of them has a label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MOST_LABELS = 16
"""So many labels of two digits fit beside each other on a phone."""


@dataclass(frozen=True)
class Column:
    """One column of a plot.

    Attributes:
        label: What stands below it, in a few letters.
        told: All that it says, in words.
        value: How high it is.
        part: How much of it, from below, is bad.
        marked: Whether it is to be pointed out.
        unit: What stands below the label, where that changes.
    """

    label: str
    told: str
    value: float
    part: float = 0
    marked: bool = False
    unit: str = ""


@dataclass(frozen=True)
class Drawn:
    """A column with its measures, as shares of the plot's height."""

    column: Column
    height: float
    part: float
    label: str


@dataclass(frozen=True)
class Plot:
    """A plot of columns.

    Attributes:
        title: What it shows.
        top: What its highest column stands for.
    """

    title: str
    top: str
    columns: tuple[Drawn, ...]

    @property
    def told(self) -> str:
        """What it shows, for those who cannot see it."""
        marked = [one.column.told for one in self.columns if one.column.marked]
        return f"{self.title}. {len(self.columns)} days, at most {self.top}." + "".join(
            f" Pointed out: {one}." for one in marked
        )


def plot(title: str, top: str, columns: Sequence[Column]) -> Plot:
    """Measure a plot.

    >>> [one.height for one in plot("rows", "4", [Column("1", "", 4), Column("2", "", 1)]).columns]
    [1.0, 0.25]
    """
    most = max((one.value for one in columns), default=0) or 1
    every = -(-len(columns) // MOST_LABELS) or 1
    return Plot(
        title,
        top,
        tuple(
            Drawn(
                one,
                round(one.value / most, 4),
                round(one.part / most, 4),
                one.label if place % every == 0 else "",
            )
            for place, one in enumerate(columns)
        ),
    )


@dataclass(frozen=True)
class Bar:
    """A row of a table with a bar: a name, a number, and its share of the highest."""

    name: str
    value: int
    share: float


def bars(values: Iterable[tuple[str, int]]) -> tuple[Bar, ...]:
    """Measure bars that lie below each other.

    >>> [one.share for one in bars([("a", 10), ("b", 5)])]
    [1.0, 0.5]
    """
    known = list(values)
    most = max((value for _, value in known), default=0) or 1
    return tuple(Bar(name, value, round(value / most, 4)) for name, value in known)
