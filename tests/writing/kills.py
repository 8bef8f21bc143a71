"""Stop a write in front of or behind any of its commits, or hold it there while others work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from pyspark.sql import DataFrame, SparkSession

from deltacheck.delta import commit as door
from deltacheck.delta.commit import Tag
from deltacheck.names import TableName

ROWS = 6


class Killed(BaseException):
    """The process is gone: nothing catches this."""


@dataclass
class Moments:
    """The moments of one write, counted."""

    kill_at: int | None = None
    seen: list[str] = field(default_factory=list)

    def __call__(self, when: str, table: TableName | None, tag: Tag) -> None:
        self.seen.append(f"{when} {tag.step or ''} {table}")
        if self.kill_at == len(self.seen) - 1:
            raise Killed


@contextmanager
def moments(patch: pytest.MonkeyPatch, kill_at: int | None = None) -> Iterator[Moments]:
    """Watch the commits of what runs in here, and kill it at one of its moments.

    Args:
        kill_at: Counted from 0; None: at none.
    """
    watched = Moments(kill_at)
    with patch.context() as here:
        here.setattr(door, "moment", watched)
        try:
            yield watched
        except Killed:
            if kill_at is None:
                raise


def drawn(session: SparkSession, first: int, seed: int, *, clean: bool = False) -> DataFrame:
    """Rows with the ids from ``first`` on; which are bad depends on the seed.

    Two seeds are a source that computes other rows the second time. At least one row is good
    and at least one bad, unless all are good.
    """
    amounts = [(seed * 7 + place * 5) % 11 - 5 for place in range(ROWS)]
    amounts[seed % ROWS], amounts[(seed + 1) % ROWS] = 3, -3
    values = ", ".join(
        f"({first + place}, {abs(amount) + 1 if clean else amount}, 'new')"
        for place, amount in enumerate(amounts)
    )
    return session.sql(f"SELECT * FROM VALUES {values} AS t(id, amount, status)")


class Straggler:
    """A write in a thread of its own, held before its commit number ``hold``.

    Once it may go on it makes that commit, if Delta lets it, and dies, unless it is to live on.
    """

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        hold: int,
        work: Callable[[], object],
        *,
        dies: bool = True,
    ) -> None:
        self.died_of: BaseException | None = None
        self._dies = dies
        self._go, self.waits = threading.Event(), threading.Event()
        self._hold, self._commits = hold, 0
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        patch.setattr(door, "moment", self._moment)
        self._thread.start()
        assert self.waits.wait(300), "the write never came to that commit"

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  (it dies in whatever way it does)
            self.died_of = error
        finally:
            self.waits.set()

    def _moment(self, when: str, table: TableName | None, tag: Tag) -> None:
        if threading.current_thread() is not self._thread:
            return
        if when == "before":
            if self._commits == self._hold:
                self.waits.set()
                assert self._go.wait(300)
            self._commits += 1
        elif self._dies and self._commits > self._hold:
            raise Killed

    def go_on(self) -> None:
        """Let it make its commit, and wait for its end."""
        self._go.set()
        self._thread.join(300)
        assert not self._thread.is_alive()
