"""A project on the session that all tests share, with tables, rules and migrations."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from tests.cli.projects import make_project


@dataclass(frozen=True)
class Shop:
    """A project whose tables are in the test's own database.

    Attributes:
        folder: The project's folder.
        database: The schema of its tables.
    """

    folder: Path
    database: str

    @classmethod
    def make(cls, folder: Path, environment: Environment) -> Shop:
        """Write deltacheck.toml so that it names the environment of the test."""
        make_project(folder, environment, {}, {})
        return cls(folder, environment.schema.removesuffix("_deltacheck"))

    @property
    def orders(self) -> str:
        """The name of the table of orders."""
        return f"{self.database}.orders"

    def fill(self, session: SparkSession, rows: str = "(1, 5), (2, 7), (3, 9)") -> None:
        """Make the table of orders."""
        session.sql(f"CREATE TABLE {self.orders} (id INT, amount INT) USING delta")
        session.sql(f"INSERT INTO {self.orders} VALUES {rows}")

    def declare(self, *rules: str, head: str = "") -> None:
        """Write constraints/orders.yml.

        Args:
            rules: Rules as ``name: expression``; an expression may be a column for NOT NULL.
            head: Further lines about the table.
        """
        lines = [f"table: {self.orders}", *head.splitlines(), "rules:"]
        for rule in rules:
            name, _, expression = rule.partition(": ")
            kind = "not_null" if expression.isidentifier() else "check"
            lines += [f"  {name}:", f"    {kind}: {json.dumps(expression)}"]
        text = "\n".join(lines) + "\n"
        (self.folder / "constraints" / "orders.yml").write_text(text, encoding="utf-8")
