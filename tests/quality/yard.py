"""A project with one declared table, whose checks run at any moment one likes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.ledger.quality_log import HARVEST, Line, read_log
from deltacheck.names import TableName
from deltacheck.quality.check import run_checks
from deltacheck.quality.results import Checked, CheckResult
from deltacheck.quarantine.holding import desk
from deltacheck.rules.files import read_rules
from deltacheck.rules.selection import EVERYTHING, Selection
from tests.cli.projects import make_project


@dataclass(frozen=True)
class Yard:
    """A project on the session that all tests share.

    Attributes:
        database: The schema of its tables.
    """

    session: SparkSession
    environment: Environment
    folder: Path
    database: str

    @property
    def orders(self) -> str:
        """The name of the table that is declared."""
        return f"{self.database}.orders"

    def table(self, columns: str, *rows: str, name: str = "orders") -> str:
        """Make a table with these rows, written as after VALUES; give its name."""
        full = f"{self.database}.{name}"
        self.session.sql(f"CREATE TABLE {full} ({columns}) USING delta")
        self.add(*rows, name=name)
        return full

    def add(self, *rows: str, name: str = "orders") -> None:
        """Append rows to a table."""
        if rows:
            self.session.sql(f"INSERT INTO {self.database}.{name} VALUES {', '.join(rows)}")

    def declare(
        self, *checks: str, rules: str = "", name: str = "orders", head: str = "tags: []"
    ) -> None:
        """Declare a table's checks, each as ``name: {test}``; ``rules`` are given likewise.

        Args:
            head: A further line about the table.
        """
        lines = [f"table: {self.database}.{name}", f"rules: {{{rules}}}", "owner: sales", head]
        if checks:
            lines += ["checks:", *(f"  {check}" for check in checks)]
        text = "\n".join(lines).replace("@", f"{self.database}.") + "\n"
        make_project(self.folder, self.environment, {}, {f"{name}.yml": text})

    def run(
        self,
        now: datetime | None = None,
        selection: Selection = EVERYTHING,
        keep: timedelta | None = None,
        keys: TableName | None = None,
    ) -> Checked:
        """Run the checks."""
        rules = read_rules(self.folder / "constraints")
        with desk(self.session, None, self.folder) as on:
            return run_checks(on, self.environment, rules, selection, now=now, keep=keep, keys=keys)

    def results(self, now: datetime | None = None) -> dict[str, CheckResult]:
        """Run the checks; the result of each by its name."""
        return {one.check.name: one for one in self.run(now).checks}

    def states(self, now: datetime | None = None) -> dict[str, str]:
        """Run the checks; the state of each by its name."""
        return {name: one.state for name, one in self.results(now).items()}

    def log(self) -> tuple[Line, ...]:
        """The lines of the quality log, but for the marks of how far a history was read."""
        lines = read_log(self.session, self.environment)
        return tuple(line for line in lines if line.kind != HARVEST)
