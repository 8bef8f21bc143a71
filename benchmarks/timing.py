"""How long things take: seconds under labels, in one run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Timed:
    """Whatever is measured in rounds: the seconds of each, by what was timed."""

    timings: dict[str, list[float]] = field(default_factory=dict)

    def time(self, label: str, work: Callable[..., object], *given: object) -> None:
        """Time something, in seconds."""
        started = time.perf_counter()
        work(*given)
        self.timings.setdefault(label, []).append(time.perf_counter() - started)

    def median(self, label: str, *, warm_up: int = 0) -> float:
        """The median of what was timed under a label, in seconds.

        Args:
            warm_up: So many first rounds do not count.
        """
        return statistics.median(self.timings[label][warm_up:])
