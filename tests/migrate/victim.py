"""A process that upgrades and is killed with SIGKILL at a moment of its choice.

Also recovers what an earlier one left, so that a chain of processes tries one moment each.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.session import open_session
from deltacheck.ledger.lock import break_lock
from deltacheck.revisions.graph import History
from deltacheck.revisions.recorder import Op
from tests.migrate.bench import Bench, chain, moments

ROWS = "VALUES (1, 5.0), (2, -1.0), (2, -1.0), (3, CAST(NULL AS DOUBLE)), (3, NULL)"
SLOW = "length(sha2(repeat(CAST(id AS STRING), 4000), 512)) > 0"
SLOW_ROWS = "SELECT CAST(id AS INT), IF(id % 1000 = 0, -1.0D, 1.0D) FROM range(40000)"


def history(orders: str, slow: bool = False) -> History:
    """One revision: a rule that holds, and one that does not; it may take seconds a scan."""
    rule = f"amount > 0 AND {SLOW}" if slow else "amount > 0"

    def upgrade(op: Op) -> None:
        op.add_check(orders, "id_known", "id IS NOT NULL")
        op.add_check(orders, "amount_positive", rule, gate="100%")

    return chain(upgrade)


def bench_of(session: SparkSession, environment: Environment, database: str) -> Bench:
    """A bench in a database of a warehouse that an earlier process may have left."""
    place = (
        "" if environment.warehouse is None else f" LOCATION '{environment.warehouse / database}'"
    )
    session.sql(f"CREATE DATABASE IF NOT EXISTS {database}{place}")
    own = Environment(
        environment.name,
        spark=environment.spark,
        warehouse=environment.warehouse,
        schema=f"{database}_deltacheck",
        conf=environment.conf,
    )
    return Bench(session, own, database)


def die() -> None:
    """End as a killed process does: nothing of it runs any more."""
    os.kill(os.getpid(), signal.SIGKILL)


def at(number: int) -> Callable[[int, str, str], None]:
    """Die at a moment."""

    def act(now: int, when: str, what: str) -> None:
        if now == number:
            die()

    return act


def during_delete(seconds: float) -> Callable[[int, str, str], None]:
    """Die so long after a DELETE was begun."""

    def act(now: int, when: str, what: str) -> None:
        if (when, what) == ("before", "orders"):
            threading.Timer(seconds, die).start()

    return act


def begin(bench: Bench, act: Callable[[int, str, str], None], *, slow: bool = False) -> None:
    """Upgrade a new table until death."""
    rows = SLOW_ROWS if slow else ROWS
    orders = bench.table("orders", "id INT, amount DOUBLE", rows)
    with moments(act) as recorded:
        bench.upgrade(history(orders, slow))
    print(json.dumps({"survived": len(recorded.seen)}), flush=True)


def recover(bench: Bench, *, slow: bool = False, unlock: bool = False) -> None:
    """Upgrade what an earlier process left, and print the account."""
    orders = f"{bench.database}.orders"
    if unlock:
        break_lock(bench.session, bench.environment)
    bench.upgrade(history(orders, slow))
    journal = bench.journal
    account = {
        "database": bench.database,
        "left": dict(bench.rows(orders)) if not slow else sum(bench.rows(orders).values()),
        "held": dict(bench.held(orders)) if not slow else sum(bench.held(orders).values()),
        "distinct": len(bench.held(orders)),
        "constraints": sorted(bench.constraints(orders)),
        "applied": list(journal.applied),
        "unsettled": len(journal.unsettled),
        "attempts": len(bench.copies(orders)),
    }
    print(json.dumps(account), flush=True)


def main(task: dict[str, object]) -> None:
    """Do a task: recover one database, then die in another.

    Args:
        task: spark, warehouse, conf; ``recover`` and ``begin``: databases; ``moment`` or
            ``seconds``: when to die; ``slow``: whether the rule is.
    """
    warehouse = task.get("warehouse")
    environment = Environment(
        "victim",
        spark=str(task["spark"]),
        warehouse=None if warehouse is None else Path(str(warehouse)),
        conf=task.get("conf", {}),  # type: ignore[arg-type]
    )
    session = open_session(environment)
    slow, unlock = bool(task.get("slow")), bool(task.get("unlock"))
    if task.get("recover"):
        recover(bench_of(session, environment, str(task["recover"])), slow=slow, unlock=unlock)
    if task.get("begin"):
        act = (
            during_delete(float(str(task["seconds"])))
            if "seconds" in task
            else at(int(str(task["moment"])))
        )
        begin(bench_of(session, environment, str(task["begin"])), act, slow=slow)
    session.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
