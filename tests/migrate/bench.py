"""A bench for upgrades: small tables, revisions written inline, and an account of every row."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import VariantType

from deltacheck.config import Environment
from deltacheck.delta import commit as door
from deltacheck.delta.table import Table, read_table
from deltacheck.delta.warehouse import register
from deltacheck.ledger.journal import Journal, read_journal
from deltacheck.migrate.results import RunResult
from deltacheck.migrate.run import run, scene
from deltacheck.migrate.tasks import Direction
from deltacheck.names import TableName, quote
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.layout import environment_quarantine
from deltacheck.revisions.graph import History, Revision, history_of
from deltacheck.revisions.recorder import Op
from deltacheck.rules.model import RuleSet

Rows = Counter[str]
"""A multiset of rows, each as text in which any two values differ."""


class Killed(BaseException):
    """The process dies here: nothing catches it, so nothing is recorded or cleaned up."""


def revision(
    name: str,
    after: str | None,
    upgrade: Callable[[Op], None],
    downgrade: Callable[[Op], None] = lambda op: None,
) -> Revision:
    """A revision from its functions, as a file in versions/ would give it."""
    up, down = Op({}), Op({})
    upgrade(up)
    downgrade(down)
    return Revision(
        name,
        () if after is None else (after,),
        checksum=name,
        upgrade=up.operations,
        downgrade=down.operations,
    )


def chain(*upgrades: Callable[[Op], None]) -> History:
    """A history of revisions 0001, 0002, ..."""
    names = [f"{place:04}" for place in range(1, len(upgrades) + 1)]
    parents = [None, *names]
    return history_of(
        revision(name, parent, upgrade)
        for name, parent, upgrade in zip(names, parents, upgrades, strict=False)
    )


@dataclass
class Bench:
    """An environment on a session, and the database that a test may use."""

    session: SparkSession
    environment: Environment
    database: str

    def table(self, name: str, columns: str, rows: str = "", extra: str = "") -> str:
        """Make a table.

        Args:
            columns: As in CREATE TABLE.
            rows: What follows INSERT INTO: VALUES or SELECT.
            extra: What follows USING delta: PARTITIONED BY, TBLPROPERTIES ...

        Returns:
            Its full name.
        """
        full = f"{self.database}.{name}"
        self.session.sql(f"CREATE TABLE {full} ({columns}) USING delta {extra}")
        if rows:
            self.session.sql(f"INSERT INTO {full} {rows}")
        return full

    def upgrade(self, history: History, target: str = "head", **options: Any) -> RunResult:
        """Upgrade in a session of its own, as a new process would."""
        return self.run(history, target, "upgrade", **options)

    def downgrade(self, history: History, target: str, **options: Any) -> RunResult:
        """Downgrade in a session of its own."""
        return self.run(history, target, "downgrade", **options)

    def run(
        self,
        history: History,
        target: str,
        direction: Direction,
        *,
        rules: RuleSet | None = None,
        **options: Any,
    ) -> RunResult:
        with scene(self.session, self.environment, history, rules or {}) as stage:
            return run(stage, target, direction, **options)

    @property
    def journal(self) -> Journal:
        """The journal now."""
        return read_journal(self.session, self.environment)

    def read(self, table: str) -> Table:
        """The table's metadata now."""
        return read_table(self.session, TableName.parse(table))

    def constraints(self, table: str) -> dict[str, str]:
        """The table's CHECKs now."""
        return dict(self.read(table).constraints)

    def rows(self, table: str, where: str = "true") -> Rows:
        """The table's rows now, or those for which ``where`` holds."""
        names = self.read(table).schema.names
        return _counted(self.session, f"{TableName.parse(table).sql} WHERE {where}", names)

    def quarantine(self, table: str) -> TableName:
        """Where the table's violators go."""
        return environment_quarantine(TableName.parse(table), self.environment)

    def held(self, table: str, where: str = "true") -> Rows:
        """The rows that the table's quarantine holds, as rows of the table."""
        name = self.quarantine(table)
        register(self.session, None, name)
        if not self.session.catalog.tableExists(name.sql):
            return Counter()
        columns = [c for c in self.session.table(name.sql).columns if not c.startswith(own.PREFIX)]
        held = f"{name.sql} WHERE {own.STATE} = 'held' AND ({where})"
        return _counted(self.session, held, columns)

    def labels(self, table: str) -> Counter[tuple[str, ...]]:
        """How many held rows carry which rules."""
        name = self.quarantine(table)
        rows = self.session.sql(f"SELECT {own.RULES} FROM {name.sql}").collect()
        return Counter(tuple(row[0]) for row in rows)

    def copies(self, table: str) -> set[str]:
        """The attempts that have rows in the table's quarantine."""
        name = self.quarantine(table)
        rows = self.session.sql(f"SELECT DISTINCT {own.ATTEMPT} FROM {name.sql}").collect()
        return {row[0] for row in rows}


def _counted(session: SparkSession, source: str, columns: Sequence[str]) -> Rows:
    schema = session.sql(f"SELECT * FROM {source}").schema
    values = ", ".join(
        f"to_json({quote(name)})" if isinstance(schema[name].dataType, VariantType) else quote(name)
        for name in columns
    )
    return Counter(
        repr(tuple(row)) for row in session.sql(f"SELECT {values} FROM {source}").collect()
    )


@dataclass
class Moments:
    """What happened at the one door, in order, and what is to happen there.

    Attributes:
        seen: Moment and what was written, as far as its table and tag tell.
    """

    seen: list[tuple[str, str]] = field(default_factory=list)
    act: Callable[[int, str, str], None] = lambda number, when, what: None

    def __call__(self, when: str, table: TableName | None, tag: door.Tag) -> None:
        if threading.current_thread().name == "deltacheck-lock":
            # The lock is renewed by the clock, at no moment of the run.
            return
        what = f"{'' if table is None else table.name} {tag.step or ''}".strip()
        self.seen.append((when, what))
        self.act(len(self.seen) - 1, when, what)


@contextmanager
def moments(act: Callable[[int, str, str], None] = lambda n, when, what: None) -> Iterator[Moments]:
    """Record each commit, and do something before or after one.

    Args:
        act: Given the moment's number, "before" or "after", and what is written.
    """
    found = Moments(act=act)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "moment", found)
        yield found


def kill_at(number: int) -> Callable[[int, str, str], None]:
    """Die at a moment."""

    def act(now: int, when: str, what: str) -> None:
        if now == number:
            raise Killed(f"{when} {what}")

    return act


def once(
    moment: tuple[str, str], action: Callable[[], object], *, past: int = 0
) -> Callable[[int, str, str], None]:
    """Do something the first time that a moment comes, or after it has come so many times."""
    left = [action]
    skipped = iter(range(past))

    def act(number: int, when: str, what: str) -> None:
        if (when, what) == moment and left and next(skipped, None) is None:
            left.pop()()

    return act
