"""What checks of a table cost together, as a ratio against the same checks run one by one.

    python -m benchmarks.checks --millions 10

Ten checks of one table, among them one of uniqueness and one by groups, in interleaved rounds:
all in one run, and each in a run of its own. Both write the quality log. What one run costs on
an empty table is given apart.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.timing import Timed
from deltacheck.config import Environment
from deltacheck.delta.session import open_session
from deltacheck.quality.check import run_checks
from deltacheck.quarantine.holding import Desk
from deltacheck.rules.files import read_rules
from deltacheck.rules.model import RuleSet
from deltacheck.rules.selection import EVERYTHING

ROWS = """
    id,
    CAST(1 + id % 9973 AS DOUBLE) AS amount,
    IF(id % 17 = 0, NULL, id % 5003) AS customer,
    element_at(array('EU', 'US', 'CH', 'JP'), CAST(1 + id % 4 AS INT)) AS region,
    timestamp_seconds(1700000000 + id % 8640000) AS placed_at
"""

CHECKS = (
    "row_count: {min: 1}",
    "row_count: {min: 1}, where: region = 'EU'",
    "freshness: {column: placed_at, max_age: 9999d}",
    "trend: {measure: sum(amount)}",
    "trend: {measure: mean(amount)}",
    "trend: {measure: mean(amount)}, by: region",
    "trend: {measure: row_count}, by: region",
    "trend: {measure: null_share(customer)}",
    "trend: {measure: failure_share(amount_small)}",
    "unique: id",
)


@dataclass(kw_only=True)
class Bench(Timed):
    """A table of so many rows, and its checks.

    Attributes:
        every: The declaration of all checks.
        single: A declaration for each of them.
    """

    desk: Desk
    environment: Environment
    every: RuleSet
    single: list[RuleSet] = field(default_factory=list)

    def together(self) -> None:
        """Run all checks in one run."""
        run_checks(self.desk, self.environment, self.every, EVERYTHING)

    def one_by_one(self) -> None:
        """Run each check in a run of its own."""
        for rules in self.single:
            run_checks(self.desk, self.environment, rules, EVERYTHING)


def declared(folder: Path, table: str, *checks: str) -> RuleSet:
    """The declaration of some checks of a table."""
    lines = "".join(f"  c{CHECKS.index(check)}: {{{check}}}\n" for check in checks)
    text = f"table: {table}\nrules: {{amount_small: {{check: amount < 10000}}}}\nchecks:\n{lines}"
    folder.mkdir(exist_ok=True)
    (folder / "table.yml").write_text(text, encoding="utf-8")
    return read_rules(folder)


def bench(session: SparkSession, environment: Environment, folder: Path, rows: int) -> Bench:
    """A table of so many rows."""
    table = f"bench.t{rows}"
    session.sql("CREATE DATABASE IF NOT EXISTS bench")
    session.sql(f"CREATE TABLE {table} USING delta AS SELECT {ROWS} FROM range({rows})")
    # Enforced, so that it is not counted in every run beside the checks.
    session.sql(f"ALTER TABLE {table} ADD CONSTRAINT amount_small CHECK (amount < 10000)")
    rules = folder / f"rules{rows}"
    return Bench(
        desk=Desk(session, session, environment),
        environment=environment,
        every=declared(rules, table, *CHECKS),
        single=[declared(rules, table, check) for check in CHECKS],
    )


def main() -> None:
    """Measure, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        environment = Environment("local", warehouse=folder / "warehouse")
        session = open_session(environment)
        for rows in (0, int(given.millions * 1_000_000)):
            subject = bench(session, environment, folder, rows)
            for _ in range(given.rounds + 1):
                subject.time("together", subject.together)
                subject.time("one by one", subject.one_by_one)
            together = subject.median("together", warm_up=1)
            apart = subject.median("one by one", warm_up=1)
            console.print(
                f"{rows:>12,} rows: together {together:.2f} s, one by one {apart:.2f} s, "
                f"ratio {together / apart:.2f}"
            )
        session.stop()


if __name__ == "__main__":
    main()
