"""What a guarded write costs, as ratios in one run.

    python -m benchmarks.writing --millions 1 10 --rules 5 50 \\
        --rival sparkdq=/path/to/environment/bin/python

Medians of interleaved rounds, the batch read from Parquet files each time:

- clean: ``deltacheck.write`` against the same plain append, on tables with the same constraints;
- bad: ``route="rows"``, its failed first attempt included, against a filter written by hand
  into two Delta writes, with one bad row in a million and with 8 %; the batch as it is read,
  and as a job makes it that drops repeated rows first, which a split by hand computes twice;
- rivals: the batch with 8 % against other packages that split by rows (see ``rivals``), each
  in a Python of its own, which has it, ``pyspark`` 4.2 and nothing of deltacheck; one that does
  not run, or puts rows elsewhere than Delta would, is named with what it did;
- planning: Spark's whole planning of a batch that is judged by 200 rules, in seconds.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table as Grid

import deltacheck
from benchmarks.timing import Timed
from deltacheck.config import Environment
from deltacheck.delta.java import find_java
from deltacheck.delta.session import open_session
from deltacheck.names import literal

COLUMNS = """
    id,
    IF({bad} AND {kind} = 0, -1.0D, 1.0D + id % 9973) AS amount,
    CAST(IF({bad} AND {kind} = 1, NULL, 1 + id % 17) AS INT) AS quantity,
    IF({bad} AND {kind} = 2, 'lost', element_at(array('placed', 'paid', 'shipped'),
       CAST(1 + id % 3 AS INT))) AS status,
    concat('user', id % 100003, IF({bad} AND {kind} = 3, ' at ', '@'), 'example.org') AS email,
    IF({bad} AND {kind} = 4, 'x', concat('C', lpad(CAST(id % 99999 AS STRING), 6, '0'))) AS code,
    date_add(DATE'2020-01-01', CAST(id % 2000 AS INT)) AS day,
    CAST(id % 1000 AS DOUBLE) / 1000 AS score
"""
FORMS = ("read", "deduplicated")
PLANNED = 200
SHARED_SETTINGS = (
    "spark.driver.extraClassPath",
    "spark.sql.extensions",
    "spark.sql.catalog.spark_catalog",
    "spark.sql.catalogImplementation",
    "spark.sql.shuffle.partitions",
    "spark.databricks.delta.snapshotPartitions",
    "spark.driver.memory",
    "spark.master",
    "spark.ui.enabled",
)
"""What the rivals' Spark has in common with ours."""


@dataclass
class Bench(Timed):
    """A session, its folder, and names not yet used."""

    session: SparkSession
    folder: Path
    made: int = 0

    def table(self, rules: list[dict[str, Any]]) -> str:
        """A new table that enforces rules."""
        self.made += 1
        name = f"bench.t{self.made}"
        properties = ", ".join(
            f"'delta.constraints.{rule['name']}' = {literal(rule['sql'])}" for rule in rules
        )
        self.session.sql(
            f"CREATE TABLE {name} (id BIGINT, amount DOUBLE, quantity INT, status STRING, "
            f"email STRING, code STRING, day DATE, score DOUBLE) USING delta "
            f"TBLPROPERTIES ({properties})"
        )
        return name

    def batch(self, name: str, form: str = "read") -> DataFrame:
        """A batch, read anew; in the form ``deduplicated`` it takes a shuffle to compute."""
        rows = self.session.read.parquet(str(self.folder / name))
        return rows if form == "read" else rows.dropDuplicates(["id"])


def rules_of(count: int) -> list[dict[str, Any]]:
    """So many rules. The first five find every kind of bad row, the others are weaker."""
    return [_rule(number % 5, number // 5) | {"name": f"rule_{number}"} for number in range(count)]


def _rule(kind: int, looser: int) -> dict[str, Any]:
    known = ["placed", "paid", "shipped", *(f"extra{n}" for n in range(looser))]
    email = f"^[a-z0-9]{{1,{40 + looser}}}@[a-z.]+$"
    quantity = (
        {
            "sql": f"quantity < {100 + looser}",
            "sparkdq": {
                "check": "numeric-max-check",
                "columns": ["quantity"],
                "max-value": 100 + looser,
            },
        }
        if looser
        else {
            "sql": "quantity IS NOT NULL",
            "sparkdq": {"check": "null-check", "columns": ["quantity"]},
        }
    )
    rules: list[dict[str, Any]] = [
        {
            "column": "amount",
            "sql": f"amount > {-looser}",
            "sparkdq": {
                "check": "numeric-min-check",
                "columns": ["amount"],
                "min-value": -looser,
                "inclusive": False,
            },
        },
        {"column": "quantity", **quantity},
        {
            "column": "status",
            "sql": f"status IN ({', '.join(map(literal, known))})",
            "sparkdq": {"check": "is-contained-in-check", "allowed-values": {"status": known}},
        },
        {
            "column": "email",
            "sql": f"email RLIKE '{email}'",
            "sparkdq": {"check": "regex-match-check", "column": "email", "pattern": email},
        },
        {
            "column": "code",
            "sql": f"length(code) BETWEEN 7 AND {7 + looser}",
            "sparkdq": {
                "check": "string-length-between-check",
                "column": "code",
                "min-length": 7,
                "max-length": 7 + looser,
                "inclusive": [True, True],
            },
        },
    ]
    return rules[kind]


def make_batch(bench: Bench, name: str, rows: int, bad: str, kind: str) -> int:
    """Write a batch to Parquet files; how many of its rows are bad."""
    columns = COLUMNS.replace("{bad}", f"({bad})").replace("{kind}", f"({kind})")
    files = bench.session.sql(f"SELECT {columns} FROM range(0, {rows}, 1, 8)")
    files.write.parquet(str(bench.folder / name))
    return bench.session.sql(f"SELECT 1 FROM range({rows}) WHERE {bad}").count()


def append(df: DataFrame, table: str) -> None:
    """A plain append."""
    df.write.format("delta").mode("append").saveAsTable(table)


def split_up(df: DataFrame, table: str) -> deltacheck.WriteResult:
    """What deltacheck does with a batch by rows."""
    return deltacheck.write(df, table, route="rows")


def clean(bench: Bench, rules: list[dict[str, Any]], rounds: int, at: str) -> list[str]:
    """A clean batch against the plain append."""
    ours, plain = bench.table(rules), bench.table(rules)
    for _ in range(rounds + 1):
        bench.time(f"{at} plain", append, bench.batch("clean"), plain)
        bench.time(f"{at} ours", deltacheck.write, bench.batch("clean"), ours)
    return _row(bench, f"{at}, clean: write / plain append", f"{at} ours", f"{at} plain", "1.03")


def by_hand(df: DataFrame, rules: list[dict[str, Any]], good: str, bad: str) -> None:
    """A filter into two writes."""
    right = " AND ".join(f"(({rule['sql']}) IS TRUE)" for rule in rules)
    append(df.where(right), good)
    append(df.where(f"NOT ({right})"), bad)


def split(
    bench: Bench,
    name: str,
    form: str,
    bad: int,
    rules: list[dict[str, Any]],
    rounds: int,
    at: str,
    aim: str,
) -> list[str]:
    """A batch with bad rows against a filter written by hand."""
    ours, plain = bench.table(rules), bench.table(rules)
    at = f"{at}, {form}"
    for _ in range(rounds + 1):
        arguments = (bench.batch(name, form), rules, plain, f"{plain}_bad")
        bench.time(f"{at} {name} hand", by_hand, *arguments)
        bench.time(f"{at} {name} ours", split_up, bench.batch(name, form), ours)
    held = bench.session.table(f"{ours}_quarantine").count()
    assert held == bad * (rounds + 1), "other rows are bad than were made so"
    what = f"{at}, {bad} bad rows: route=rows / by hand"
    return _row(bench, what, f"{at} {name} ours", f"{at} {name} hand", aim)


class Rival:
    """Another package, in a process that answers line by line."""

    def __init__(self, bench: Bench, name: str, python: str, rules: list[dict[str, Any]]) -> None:
        self.name = name
        folder = bench.folder / f"rival-{name}-{bench.made}"
        folder.mkdir()
        bench.made += 1
        conf = bench.session.sparkContext.getConf()
        shared = {key: conf.get(key) for key in SHARED_SETTINGS if conf.get(key)}
        task = {
            "conf": {**shared, "spark.sql.warehouse.dir": str(folder / "warehouse")},
            "folder": str(folder),
            "batch": str(bench.folder / "many"),
            "rules": rules,
        }
        self._log = (folder / "log").open("w", encoding="utf-8")
        self._process = subprocess.Popen(
            [python, str(Path(__file__).with_name("rivals.py")), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=folder,
            env={**os.environ, "JAVA_HOME": str(find_java().home)},
        )
        told = self._ask(json.dumps(task))
        self.version = told.get("version", "?")
        self.unable: str | None = told.get("unable")

    def _ask(self, line: str) -> Mapping[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {"unable": "its process has ended"}
        answer = self._process.stdout.readline()
        found: Mapping[str, Any] = json.loads(answer) if answer else {"unable": "no answer"}
        return found

    def round(self, bench: Bench, label: str, rows: tuple[int, int]) -> None:
        """One round; what it puts elsewhere than Delta would takes it out of the race."""
        if self.unable is None:
            told = self._ask("round")
            self.unable = told.get("unable")
            if self.unable is None:
                bench.timings.setdefault(label, []).append(told["seconds"])
                if (told["good"], told["bad"]) != rows:
                    self.unable = f"wrong rows: {told['good']} good, {told['bad']} bad"

    def end(self) -> None:
        """Let its process end, and its Spark with it."""
        self._process.communicate()
        self._log.close()


def race(
    bench: Bench,
    pythons: Mapping[str, str],
    rules: list[dict[str, Any]],
    rows: tuple[int, int],
    rounds: int,
    at: str,
) -> Iterator[list[str]]:
    """The same work by other packages."""
    rivals = [Rival(bench, name, python, rules) for name, python in pythons.items()]
    ours = bench.table(rules)
    for _ in range(rounds + 1):
        bench.time(f"{at} race", split_up, bench.batch("many"), ours)
        for rival in rivals:
            rival.round(bench, f"{at} {rival.name}", rows)
    for rival in rivals:
        rival.end()
        what = f"{at}, 8% bad: {rival.name} {rival.version} / route=rows"
        if rival.unable is not None:
            yield [what, f"{_median(bench, f'{at} race'):.2f}", rival.unable, "", ""]
        else:
            left, right = _median(bench, f"{at} {rival.name}"), _median(bench, f"{at} race")
            yield [what, f"{right:.2f}", f"{left:.2f}", f"{left / right:.2f}", "at least 3"]


def planning(bench: Bench) -> list[str]:
    """Spark's planning of a batch that is judged by many rules."""
    table = bench.table(rules_of(PLANNED))

    def plan() -> None:
        with redirect_stdout(io.StringIO()):
            deltacheck.judge(bench.batch("clean"), table).explain()

    for _ in range(4):
        bench.time("planning", plan)
    seconds = _median(bench, "planning")
    return [f"planning {PLANNED} rules, seconds", f"{seconds:.2f}", "", "", "under 2"]


def _median(bench: Bench, label: str) -> float:
    # The first round warms up.
    return bench.median(label, warm_up=1)


def _row(bench: Bench, what: str, ours: str, theirs: str, aim: str) -> list[str]:
    left, right = _median(bench, ours), _median(bench, theirs)
    return [what, f"{left:.2f}", f"{right:.2f}", f"{left / right:.2f}", f"at most {aim}"]


def measure(bench: Bench, given: argparse.Namespace) -> Iterator[list[str]]:
    """All figures."""
    pythons = dict(pair.split("=", 1) for pair in given.rival)
    for millions in given.millions:
        rows = round(millions * 1_000_000)
        bench.folder = bench.folder.parent / f"batches-{rows}"
        every = min(1_000_000, rows)
        make_batch(bench, "clean", rows, "false", "0")
        few = make_batch(bench, "few", rows, f"id % {every} = {every // 2}", f"id DIV {every} % 5")
        many = make_batch(bench, "many", rows, "id % 25 < 2", "id DIV 25 % 5")
        for count in given.rules:
            rules, at = rules_of(count), f"{millions:g} million rows, {count} rules"
            yield clean(bench, rules, given.rounds, at)
            for form in given.forms:
                yield split(bench, "few", form, few, rules, given.rounds, at, "1.6")
                yield split(bench, "many", form, many, rules, given.rounds, at, "1.2")
            if pythons:
                yield from race(bench, pythons, rules, (rows - many, many), given.rounds, at)
    yield planning(bench)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--millions", type=float, nargs="+", default=[1, 10])
    parser.add_argument("--rules", type=int, nargs="+", default=[5, 50])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS)
    parser.add_argument(
        "--rival",
        action="append",
        default=[],
        metavar="NAME=PYTHON",
        help="spark-expectations, lakelogic or sparkdq, and a Python that has it",
    )
    given = parser.parse_args()
    # Its warnings of quarantined batches.
    logging.getLogger("deltacheck").setLevel(logging.ERROR)
    console = Console(width=140, highlight=False)
    table = Grid("what", "deltacheck s", "other s", "ratio", "aim", box=None)
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment("bench", warehouse=Path(folder) / "warehouse")
        session = open_session(environment)
        session.sql(f"CREATE DATABASE bench LOCATION '{environment.warehouse}/bench'")
        bench = Bench(session, Path(folder) / "batches")
        for row in measure(bench, given):
            table.add_row(*row)
            console.print(*row)
        session.stop()
    console.print(table)


if __name__ == "__main__":
    main()
