"""What a check compares: measures of rows, ages, tolerances, and how far back to look.

Each is read from a short text, such as ``sum(amount)``, ``26h``, ``1%`` or ``14 runs``. Knows
nothing of files and nothing of Spark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from fractions import Fraction

from deltacheck.errors import DeclarationError
from deltacheck.rules.expression import parse_value

_UNITS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


class MeasureKind(str, Enum):
    """What can be measured of some rows."""

    ROW_COUNT = "row_count"
    SUM = "sum"
    MEAN = "mean"
    NULL_SHARE = "null_share"
    FAILURE_SHARE = "failure_share"
    SHARES = "shares"


@dataclass(frozen=True)
class Measure:
    """A figure about some rows.

    Attributes:
        of: The SQL that is summed or looked at; the rule's name for ``failure_share``; empty
            for ``row_count``.
        text: As written.
    """

    kind: MeasureKind
    of: str
    text: str = field(compare=False)

    @classmethod
    def parse(cls, text: str) -> Measure:
        """Read ``row_count``, ``sum(x)``, ``mean(x)``, ``null_share(x)``, ``shares(x)`` or
        ``failure_share(rule)``, where ``x`` is a column or an expression about one row.

        >>> Measure.parse("sum(price*quantity)").of
        'price * quantity'

        Raises:
            DeclarationError: It is none of them.
        """
        match = re.fullmatch(r"(\w+)\s*(?:\((.+)\))?", text.strip(), re.DOTALL)
        names = [kind.value for kind in MeasureKind]
        if match is None or match[1].lower() not in names:
            raise DeclarationError(
                f"{text!r} is not a measure.",
                hint="Write row_count, sum(x), mean(x), null_share(x), shares(x) or "
                "failure_share(rule).",
            )
        kind, argument = MeasureKind(match[1].lower()), match[2]
        if (argument is None) != (kind is MeasureKind.ROW_COUNT):
            raise DeclarationError(
                f"{text!r} is not a measure.",
                hint="Write row_count without parentheses."
                if kind is MeasureKind.ROW_COUNT
                else f"Say of what, for example {kind.value}(amount).",
            )
        if kind is MeasureKind.ROW_COUNT:
            return cls(kind, "", text.strip())
        if kind is MeasureKind.FAILURE_SHARE:
            return cls(kind, argument.strip(), text.strip())
        return cls(kind, parse_value(argument).sql, text.strip())

    @property
    def is_share(self) -> bool:
        """Whether it lies between none and all of the rows."""
        return self.kind.value.endswith(("share", "shares"))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Age:
    """A length of time, such as ``90m``, ``26h``, ``7d`` or ``2w``."""

    length: timedelta
    text: str = field(compare=False)

    @classmethod
    def parse(cls, text: str) -> Age:
        """Read minutes (``m``), hours (``h``), days (``d``) or weeks (``w``).

        >>> Age.parse("26h").length
        datetime.timedelta(days=1, seconds=7200)

        Raises:
            DeclarationError: It is none of them, or too long.
        """
        match = re.fullmatch(r"(\d{1,6})\s*([mhdw])", text.strip(), re.IGNORECASE)
        if match is None or int(match[1]) == 0:
            raise DeclarationError(
                f"{text!r} is not a length of time.",
                hint="Write minutes, hours, days or weeks: 90m, 26h, 7d or 2w.",
            )
        return cls(int(match[1]) * _UNITS[match[2].lower()], text.strip())

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Tolerance:
    """How far two figures may lie apart: a number, or a share of the second of them."""

    limit: Fraction
    relative: bool
    text: str = field(compare=False)

    @classmethod
    def parse(cls, text: str) -> Tolerance:
        """Read ``0.01``, ``5`` or ``1%``.

        >>> Tolerance.parse("1%").allows(Fraction(101), Fraction(100))
        True

        Raises:
            DeclarationError: It is neither, or is negative.
        """
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text.strip())
        if match is None:
            raise DeclarationError(
                f"{text!r} is not a tolerance.",
                hint="Write a number (0.01) or a percentage of the other figure (1%).",
            )
        relative = match[2] == "%"
        return cls(Fraction(match[1]) / (100 if relative else 1), relative, text.strip())

    def allows(self, one: Fraction, other: Fraction) -> bool:
        """Whether two figures lie no further apart."""
        return abs(one - other) <= self.limit * (abs(other) if self.relative else 1)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Window:
    """How far back a trend looks: the last runs, or the same weekday of the last weeks."""

    count: int
    weekly: bool

    @classmethod
    def parse(cls, text: str) -> Window:
        """Read ``14 runs`` or ``8 weeks``.

        >>> Window.parse("8 weeks").weekly
        True

        Raises:
            DeclarationError: It is neither, or looks back at fewer than three.
        """
        match = re.fullmatch(r"(\d{1,4})\s*(runs|weeks)", text.strip(), re.IGNORECASE)
        if match is None or int(match[1]) < 3:
            raise DeclarationError(
                f"{text!r} is not something to look back at.",
                hint="Write `14 runs`, or `8 weeks` for the same weekday of the last 8 weeks; at "
                "least 3 of them.",
            )
        return cls(int(match[1]), match[2].lower() == "weeks")

    def __str__(self) -> str:
        return f"same weekday of {self.count} weeks" if self.weekly else f"{self.count} runs"
