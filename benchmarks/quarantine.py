"""What an upgrade costs, as ratios against plain Delta in the same run.

    python -m benchmarks.quarantine --millions 5 20 --rules 1 5 20

Three comparisons, each on shallow clones of one table, medians of interleaved rounds; the
first round of the clean tables and of counting warms up:

- clean: the whole upgrade against the bare ``ALTER TABLE ADD CONSTRAINT`` statements, on a
  table without violators;
- dirty: the whole upgrade against a script as one would write it by hand, that for each rule
  counts, copies, deletes and alters, on a table with 1% violators;
- counting: twenty rules against five over the same columns.

The fixed cost of a run (lock, journal, looks) is measured on an empty table and given apart,
as are the files that counting reads for a rule that statistics can prove, and the peak memory
of one dirty upgrade in a process of its own, whose JVM has a heap of half a gigabyte.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table as Grid

from benchmarks.timing import Timed
from deltacheck.config import Environment
from deltacheck.delta.session import open_session
from deltacheck.delta.table import frame, latest_version
from deltacheck.delta.violators import count_violators, violators_of
from deltacheck.migrate.run import run, scene
from deltacheck.names import TableName
from deltacheck.revisions.graph import Revision, history_of
from deltacheck.revisions.operations import AddConstraint
from deltacheck.rules.expression import parse_rule
from deltacheck.rules.model import Gate, Kind

COLUMNS = """
    id,
    IF({bad} AND id % 5 = 0, -1.0D, 1.0D + id % 9973) AS amount,
    CAST(IF({bad} AND id % 5 = 1, NULL, 1 + id % 17) AS INT) AS quantity,
    IF({bad} AND id % 5 = 2, 'lost', element_at(array('placed', 'paid', 'shipped'),
       CAST(1 + id % 3 AS INT))) AS status,
    concat('user', id % 100003, IF({bad} AND id % 5 = 3, ' at ', '@'), 'example.org') AS email,
    date_add(DATE'2020-01-01', CAST(id % 2000 AS INT)) AS day,
    IF({bad} AND id % 5 = 4, 'x', concat('C', lpad(CAST(id % 99999 AS STRING), 6, '0'))) AS code,
    CAST(id % 1000 AS DOUBLE) / 1000 AS score
"""

# The first five find every kind of bad row. The others are over the same five columns, of the
# kinds that teams write: limits, conditions across columns, and five that call functions.
RULES = [
    "length(code) = 7 AND code LIKE 'C%'",
    "amount > 0",
    "quantity IS NOT NULL AND quantity < 100",
    "status IN ('placed', 'paid', 'shipped')",
    "email RLIKE '^[a-z0-9]+@[a-z.]+$'",
    "amount < 1000000",
    "amount BETWEEN -1 AND 100000",
    "quantity BETWEEN 0 AND 50 OR quantity IS NULL",
    "length(email) < 200",
    "status IS NOT NULL",
    "amount * 2 < 1000000",
    "code = upper(code) OR code = 'x'",
    "email LIKE '%example%'",
    "length(trim(code)) > 0",
    "quantity > 0 OR quantity IS NULL",
    "code IS NOT NULL",
    "amount + coalesce(quantity, 0) < 2000000",
    "status = 'lost' OR amount < 500000",
    "status <> 'paid' OR email IS NOT NULL",
    "trim(status) = status",
]


@dataclass
class Bench(Timed):
    """A session, its environment, and the revisions and clones made so far.

    Attributes:
        fixed: What a run costs beside its ALTERs, in seconds.
    """

    session: SparkSession
    environment: Environment
    revisions: list[Revision] = field(default_factory=list)
    made: int = 0
    fixed: float = 0.0

    def clone(self, source: str) -> TableName:
        """A shallow clone: its own log over the same files."""
        self.made += 1
        name = f"bench.t{self.made}"
        self.session.sql(f"CREATE TABLE {name} SHALLOW CLONE {source}")
        return TableName.parse(name)


def make(bench: Bench, name: str, rows: int, share_bad: float) -> None:
    """Make a table of orders, a share of them bad in one of five ways."""
    bad = f"id % {round(1 / share_bad)} < 1" if share_bad else "false"
    # Five neighbours of each hundredth are bad, one in each way.
    bad = bad.replace("id %", "(id DIV 5) %")
    columns = COLUMNS.replace("{bad}", bad)
    bench.session.sql(
        f"CREATE TABLE {name} USING delta AS SELECT {columns} FROM range(0, {rows}, 1, 8)"
    )


def revision(table: TableName, rules: list[str], after: list[Revision]) -> Revision:
    """The next revision: it adds the rules."""
    adds = tuple(
        AddConstraint(
            table, f"rule_{n}", Kind.CHECK, parse_rule(rule).stored, gate=Gate.parse("50%")
        )
        for n, rule in enumerate(rules)
    )
    return Revision(
        f"{len(after) + 1:04}",
        down_revision=(after[-1].revision,) if after else (),
        upgrade=adds,
        downgrade=tuple(add.reverse() for add in adds),
    )


def upgrade(bench: Bench, table: TableName, rules: list[str]) -> None:
    """The whole upgrade: a deploy of one more revision, in a ledger that knows the others."""
    bench.revisions.append(revision(table, rules, bench.revisions))
    with scene(bench.session, bench.environment, history_of(bench.revisions), {}) as stage:
        run(stage, "head", "upgrade")


def bare(bench: Bench, table: TableName, rules: list[str]) -> None:
    """The ALTERs alone."""
    for n, rule in enumerate(rules):
        bench.session.sql(f"ALTER TABLE {table.sql} ADD CONSTRAINT rule_{n} CHECK ({rule})")


def by_hand(bench: Bench, table: TableName, rules: list[str]) -> None:
    """For each rule: count, copy, delete, alter."""
    session, quarantine = bench.session, f"{table.sql[:-1]}_bad`"
    session.sql(f"CREATE TABLE {quarantine} USING delta AS SELECT * FROM {table.sql} WHERE false")
    for n, rule in enumerate(rules):
        wrong = f"({rule}) IS NOT TRUE"
        if session.sql(f"SELECT count(*) FROM {table.sql} WHERE {wrong}").collect()[0][0]:
            session.sql(f"INSERT INTO {quarantine} SELECT * FROM {table.sql} WHERE {wrong}")
            session.sql(f"DELETE FROM {table.sql} WHERE {wrong}")
        session.sql(f"ALTER TABLE {table.sql} ADD CONSTRAINT rule_{n} CHECK ({rule})")


def jvm_peak() -> float:
    """The peak resident memory of the JVM that this process started, in MB (Linux only)."""
    parents: dict[int, int] = {}
    peaks: dict[int, int] = {}
    for file in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in file.read_text().splitlines())
        except OSError:
            # It has ended meanwhile.
            continue
        process = int(lines["Pid"])
        parents[process] = int(lines["PPid"])
        if lines["Name"].strip() == "java":
            peaks[process] = int(lines["VmHWM"].split()[0])
    ours = (kilobytes for process, kilobytes in peaks.items() if _is_ours(process, parents))
    return max(ours, default=0) / 1024


def memory_of(bench: Bench, dirty: str) -> tuple[str, str]:
    """Peak memory of JVM and Python, in MB, for one upgrade in a process of its own."""
    given = [str(bench.environment.warehouse), str(bench.clone(dirty))]
    command = [sys.executable, "-m", "benchmarks.quarantine", "--memory", *given]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    jvm, python = done.stdout.split()[-2:]
    return jvm, python


def measure_memory(warehouse: str, table: str) -> None:
    """Run that upgrade, in this process, and print what it took."""
    name = TableName.parse(table)
    conf = {"spark.driver.memory": "512m"}
    environment = Environment("memory", warehouse=Path(warehouse), schema=name.name, conf=conf)
    session = open_session(environment)
    upgrade(Bench(session, environment), name, RULES[:5])
    print(f"{jvm_peak():.0f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")
    session.stop()


def _is_ours(process: int, parents: Mapping[int, int]) -> bool:
    while process and process != os.getpid():
        process = parents.get(process, 0)
    return process == os.getpid()


def measure(bench: Bench, millions: int, counts: list[int], rounds: int) -> Iterator[list[str]]:
    """The ratios for one size of table."""
    rows = millions * 1_000_000
    clean, dirty = f"bench.clean{millions}", f"bench.dirty{millions}"
    make(bench, clean, rows, 0.0)
    make(bench, dirty, rows, 0.01)
    for number in counts:
        rules = RULES[:number]
        at = f"{millions} million rows, {number} rules"
        for _ in range(1 + rounds):
            for label, work in (("bare", bare), ("upgrade", upgrade)):
                table = bench.clone(clean)
                bench.time(f"{at} {label}", work, bench, table, rules)
        yield _row(
            bench, f"{at}, clean: upgrade / bare ALTERs", f"{at} upgrade", f"{at} bare", warm_up=1
        )
        ours, theirs = (bench.median(f"{at} {label}", warm_up=1) for label in ("upgrade", "bare"))
        ours -= bench.fixed
        yield [
            f"{at}, clean, without the fixed cost",
            f"{ours:.1f}",
            f"{theirs:.1f}",
            f"{ours / theirs:.2f}",
        ]
        for _ in range(rounds):
            for label, work in (("by hand", by_hand), ("dirty upgrade", upgrade)):
                table = bench.clone(dirty)
                bench.time(f"{at} {label}", work, bench, table, rules)
        yield _row(
            bench, f"{at}, 1% bad: upgrade / by hand", f"{at} dirty upgrade", f"{at} by hand"
        )
    table = TableName.parse(clean)
    latest = latest_version(bench.session, table)
    for number in (5, 20):
        wanted = {f"rule_{n}": parse_rule(rule).stored for n, rule in enumerate(RULES[:number])}
        for _ in range(1 + rounds):
            bench.time(
                f"{millions} count {number}", count_violators, bench.session, table, latest, wanted
            )
    yield _row(
        bench,
        f"{millions} million rows: counting 20 rules / 5 rules",
        f"{millions} count 20",
        f"{millions} count 5",
        warm_up=1,
    )
    (proven,) = violators_of({"r": "amount > 0"}).values()
    files = len(frame(bench.session, table).where(proven).inputFiles())
    yield [f"{millions} million rows: files read to count amount > 0", "", "", str(files)]
    jvm, python = memory_of(bench, dirty)
    yield [f"{millions} million rows: peak memory of JVM and Python, MB", jvm, python, ""]


def _row(bench: Bench, what: str, ours: str, theirs: str, warm_up: int = 0) -> list[str]:
    left, right = bench.median(ours, warm_up=warm_up), bench.median(theirs, warm_up=warm_up)
    return [what, f"{left:.1f}", f"{right:.1f}", f"{left / right:.2f}"]


def fixed(bench: Bench) -> list[str]:
    """What a run costs beside its ALTERs, on a table without rows."""
    bench.session.sql("CREATE TABLE bench.empty (amount DOUBLE) USING delta")
    for _ in range(16):
        for label, work in (("empty bare", bare), ("empty upgrade", upgrade)):
            table = bench.clone("bench.empty")
            bench.time(label, work, bench, table, ["amount > 0"])
    # Half of the rounds warm up: what is measured later is measured in a warm JVM as well.
    ours = bench.median("empty upgrade", warm_up=8)
    theirs = bench.median("empty bare", warm_up=8)
    bench.fixed = ours - theirs
    return ["fixed cost of a run, seconds", f"{ours:.1f}", f"{theirs:.1f}", f"{bench.fixed:.1f}"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--millions", type=int, nargs="+", default=[5])
    parser.add_argument("--rules", type=int, nargs="+", default=[1, 5, 20])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory:
        measure_memory(*given.memory)
        return
    console = Console(width=120, highlight=False)
    table = Grid("what", "deltacheck s", "other s", "ratio", box=None)
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment("bench", warehouse=Path(folder) / "warehouse")
        session = open_session(environment)
        session.sql(f"CREATE DATABASE bench LOCATION '{environment.warehouse}/bench'")
        bench = Bench(session, environment)
        rows = [fixed(bench)]
        console.print(*rows[-1])
        for millions in given.millions:
            for row in measure(bench, millions, given.rules, given.rounds):
                rows.append(row)
                console.print(*row)
        session.stop()
    for row in rows:
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    main()
