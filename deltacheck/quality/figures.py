"""What a scan found about some rows, as exact numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, Union

Role = Literal["rows", "nulls", "failed", "values", "taken", "value", "other", "latest"]
"""A field of ``Figures`` that a scan fills."""

Found = Union[int, float, Decimal, None]
"""What Spark returns for an aggregate."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Figures:
    """What is known of the rows that a check looks at.

    Attributes:
        rows: How many they are.
        nulls: Of them, those with a NULL among the columns that the check reads.
        failed: Of them, those at fault: repeated, without a counterpart, or violators.
        values: Different values that are repeated.
        taken: Rows of a batch whose values the table has already.
        value: What was measured; None: there was nothing to measure.
        other: What it is compared with; None: there was nothing to measure.
        latest: The newest of them.
        undefined: Whether a measure is infinite or not a number, such as a sum of intervals.
    """

    rows: int = 0
    nulls: int = 0
    failed: int = 0
    values: int = 0
    taken: int = 0
    value: Fraction | None = None
    other: Fraction | None = None
    latest: datetime | None = None
    undefined: bool = False

    def filled(self, found: Mapping[Role, Found]) -> Figures:
        """These figures with those of one more scan.

        Args:
            found: Role to what Spark returned; ``latest`` in microseconds since 1970.
        """
        known: dict[str, Any] = {}
        for role, value in found.items():
            if role == "latest":
                known[role] = _time(value)
            elif role not in ("value", "other"):
                known[role] = 0 if value is None else int(value)
            elif isinstance(value, (int, float, Decimal)) and math.isfinite(value):
                known[role] = Fraction(value)
            elif value is not None:
                known["undefined"] = True
        return replace(self, **known)


def _time(micros: Found) -> datetime | None:
    return None if micros is None else _EPOCH + timedelta(microseconds=int(micros))
