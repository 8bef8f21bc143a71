"""What checks of a table cost together, as a ratio against the same checks run one by one.

    python -m benchmarks.checks --millions 10

Ten checks of one table, among them one of uniqueness and two by groups, in interleaved rounds:

- together: all in one run, which writes the quality log;
- one by one: each in a run of its own, in the same session, which writes the log as well;
- by hand: ten queries that a careful person would write, whose figures nobody keeps or judges.

What a run costs on an empty table is given apart: of ten runs it is paid ten times.
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
from deltacheck.delta.log import quiet_query_loggers
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

CHECKS = {
    "row_count: {min: 1}": "SELECT count(*) FROM {table}",
    "row_count: {min: 1}, where: region = 'EU'": "SELECT count(*) FROM {table} WHERE region = 'EU'",
    "freshness: {column: placed_at, max_age: 9999d}": "SELECT max(placed_at) FROM {table}",
    "trend: {measure: sum(amount)}": "SELECT sum(amount) FROM {table}",
    "trend: {measure: mean(amount)}": "SELECT avg(amount) FROM {table}",
    "trend: {measure: mean(amount)}, by: region": (
        "SELECT region, avg(amount) FROM {table} GROUP BY region"
    ),
    "trend: {measure: row_count}, by: region": (
        "SELECT region, count(*) FROM {table} GROUP BY region"
    ),
    "trend: {measure: null_share(customer)}": (
        "SELECT count_if(customer IS NULL), count(*) FROM {table}"
    ),
    "trend: {measure: failure_share(amount_small)}": (
        "SELECT count_if((amount < 10000) IS NOT TRUE), count(*) FROM {table}"
    ),
    "unique: id": (
        "SELECT coalesce(sum(rows), 0) FROM "
        "(SELECT count(*) AS rows FROM {table} GROUP BY id HAVING count(*) > 1)"
    ),
}
"""Each check, and the query for its figure."""


@dataclass(kw_only=True)
class Bench(Timed):
    """A table of so many rows, and its checks.

    Attributes:
        every: The declaration of all checks.
        single: A declaration for each of them.
    """

    table: str
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

    def by_hand(self) -> None:
        """Ask for each figure in a query of its own."""
        for query in CHECKS.values():
            self.desk.session.sql(query.format(table=self.table)).collect()


def declared(folder: Path, table: str, *checks: str) -> RuleSet:
    """The declaration of some checks of a table."""
    lines = "".join(f"  c{list(CHECKS).index(check)}: {{{check}}}\n" for check in checks)
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
        table=table,
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
    with tempfile.TemporaryDirectory() as temporary, quiet_query_loggers():
        folder = Path(temporary)
        environment = Environment("local", warehouse=folder / "warehouse")
        session = open_session(environment)
        for rows in (0, int(given.millions * 1_000_000)):
            subject = bench(session, environment, folder, rows)
            ways = {
                "together": subject.together,
                "one by one": subject.one_by_one,
                "by hand": subject.by_hand,
            }
            for _ in range(given.rounds + 1):
                for label, work in ways.items():
                    subject.time(label, work)
            together, *others = (subject.median(label, warm_up=1) for label in ways)
            told = [
                f"{label} {seconds:.2f} s (ratio {together / seconds:.2f})"
                for label, seconds in zip(list(ways)[1:], others, strict=True)
            ]
            console.print(f"{rows:>12,} rows: together {together:.2f} s, {', '.join(told)}")
        session.stop()


if __name__ == "__main__":
    main()
