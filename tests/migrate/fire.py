"""Conservation under fire: clients of one Spark Connect server work on one table at random.

Some append, update, delete and optimize; one upgrades and downgrades, one releases from
quarantine, and both are killed now and then. Afterwards every row ever written must be in
exactly one place. By hand, with as many seeds as one likes::

    python -m tests.migrate.fire --seeds 1-20 --seconds 120
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta import commit as door
from deltacheck.delta.failures import EngineFailure, failure_of, is_conflict
from deltacheck.delta.session import aside, open_session, verdict_session
from deltacheck.errors import DeltacheckError, LockLostError
from deltacheck.ledger.lock import break_lock
from deltacheck.names import TableName
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.holding import Desk, Selection, holding
from deltacheck.quarantine.releasing import release_rows
from deltacheck.revisions.graph import History
from tests.migrate.bench import Bench, Killed, chain

TRIES = 6
"""How often a client tries an update or a delete that loses to another writer."""

MORTAL = "fire-mortal"
"""How the threads are called that may be killed at a commit."""


@dataclass
class Fire:
    """One round, and the account that it is held against.

    Attributes:
        written: Row id to how often it was written.
        removed: Row id to how often a client deleted it.
        events: What happened, for the report.
    """

    bench: Bench
    table: str
    seed: int
    seconds: float
    deadline: float
    written: Counter[int] = field(default_factory=Counter)
    removed: Counter[int] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    guard: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)
    next_id: int = 0

    def note(self, what: str) -> None:
        with self.guard:
            self.events[what] += 1

    def goes_on(self, dice: random.Random, pause: float) -> bool:
        """Wait a random while; whether the round still goes on."""
        return not self.over.wait(dice.random() * pause) and time.monotonic() < self.deadline


def history_on(table: str) -> History:
    """Two revisions on one table."""
    return chain(
        lambda op: op.add_check(table, "amount_positive", "amount > 0", gate="100%"),
        lambda op: op.add_check(table, "amount_small", "amount < 8", gate="100%"),
    )


def append(fire: Fire, session: SparkSession, dice: random.Random) -> None:
    """Append good and bad rows, some of them twice."""
    while fire.goes_on(dice, 5.0):
        rows = []
        for _ in range(dice.randint(1, 4)):
            with fire.guard:
                fire.next_id += 1
                number = fire.next_id
            amount = dice.choice(["1.0D", "2.0D", "3.0D", "-1.0D", "9.0D", "CAST(NULL AS DOUBLE)"])
            rows += [(number, amount)] * dice.choice([1, 1, 2])
        good = dice.random() < 0.5
        rows = [(number, "1.0D" if good else amount) for number, amount in rows]
        values = ", ".join(f"({number}, {amount}, 'new')" for number, amount in rows)
        try:
            session.sql(f"INSERT INTO {fire.table} VALUES {values}").collect()
        except EngineFailure as error:
            fire.note(f"append refused: {failure_of(error).family or failure_of(error).kind}")
        else:
            with fire.guard:
                fire.written.update(number for number, _ in rows)
            fire.note("append")


def stubbornly(fire: Fire, session: SparkSession, what: str, statement: str) -> int:
    """Try a statement until it wins against the other writers, a few times; the rows it met."""
    for _ in range(TRIES):
        try:
            rows = session.sql(statement).collect()
        except EngineFailure as error:
            failure = failure_of(error)
            fire.note(f"{what} refused: {failure.family or failure.kind}")
            if not is_conflict(error):
                break
        else:
            fire.note(what)
            return int(rows[0][0])
    return 0


def update(fire: Fire, session: SparkSession, dice: random.Random) -> None:
    """Change amounts: good rows become bad, bad ones good."""
    while fire.goes_on(dice, 4.0):
        amount = dice.choice(["1.0D", "2.0D", "-3.0D", "9.5D"])
        where = f"id % 7 = {dice.randrange(7)}"
        stubbornly(
            fire, session, "update", f"UPDATE {fire.table} SET amount = {amount} WHERE {where}"
        )


def delete(fire: Fire, session: SparkSession, dice: random.Random) -> None:
    """Delete a row, with all its doubles."""
    while fire.goes_on(dice, 4.0):
        number = dice.randint(1, fire.next_id + 1)
        statement = f"DELETE FROM {fire.table} WHERE id = {number}"
        removed = stubbornly(fire, session, "delete", statement)
        with fire.guard:
            fire.removed[number] += removed


def optimize(fire: Fire, session: SparkSession, dice: random.Random) -> None:
    """Rewrite the table's files."""
    while fire.goes_on(dice, 8.0):
        try:
            session.sql(f"OPTIMIZE {fire.table}").collect()
        except EngineFailure as error:
            fire.note(f"optimize refused: {failure_of(error).family or failure_of(error).kind}")
        else:
            fire.note("optimize")


def migrate(fire: Fire, session: SparkSession, dice: random.Random) -> None:
    """Upgrade and take back, again and again; die now and then."""
    bench = Bench(session, fire.bench.environment, fire.bench.database)
    history = history_on(fire.table)
    while fire.goes_on(dice, 2.0):
        way = dice.choice(["upgrade", "upgrade", "downgrade"])
        try:
            if way == "upgrade":
                # One revision that only adds is tried first, several are counted first.
                bench.upgrade(history, dice.choice(["head", "+1"]))
            else:
                bench.downgrade(history, "base")
            fire.note(way)
        except Killed:
            fire.note(f"{way} killed")
            _unlock(session, bench.environment)
        except LockLostError:
            fire.note(f"{way} lost the lock")
        except DeltacheckError as error:
            fire.note(f"{way} stopped: {error.code}")


def _unlock(session: SparkSession, environment: Environment) -> None:
    """Break the lock of the dead; whoever dies over it does it again."""
    while True:
        with suppress(Killed):
            break_lock(session, environment)
            return


def release(fire: Fire, session: SparkSession, dice: random.Random) -> None:
    """Release what passes after a repair; die now and then."""
    while fire.goes_on(dice, 6.0):
        try:
            _release(fire.bench, session, fire.table)
            fire.note("release")
        except Killed:
            fire.note("release killed")
        except DeltacheckError as error:
            fire.note(f"release stopped: {error.code}")


def _release(bench: Bench, session: SparkSession, table: str) -> None:
    name = TableName.parse(table)
    with verdict_session(session) as ours:
        place = holding(Desk(ours, session, bench.environment), name)
        repairs = ["amount = if(amount >= 8, 7.0D, abs(amount))"]
        release_rows(place, session, Selection(), repairs=repairs)


def burn(bench: Bench, seed: int, seconds: float) -> Fire:
    """Run one round and bring it to its end; the account is the caller's to judge."""
    rows = "SELECT id, CAST(id % 5 - 1 AS DOUBLE), 'old' FROM range(1, 41)"
    table = bench.table("fire", "id BIGINT, amount DOUBLE, tag STRING", rows)
    if seed % 2:
        bench.session.sql(
            f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        )
    fire = Fire(bench, table, seed, seconds, time.monotonic() + seconds)
    fire.written.update(range(1, 41))
    fire.next_id = 40
    # Threads that share one source of chance would not repeat with the seed.
    parts = (append, append, update, delete, optimize, migrate, release)
    failures: list[BaseException] = []

    def play(part: Callable[[Fire, SparkSession, random.Random], None], number: int) -> None:
        try:
            with aside(bench.session) as session:
                part(fire, session, random.Random(f"{seed}/{number}"))
        except BaseException as error:  # noqa: BLE001  (a thread's failure fails the round)
            failures.append(error)
            fire.over.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "moment", _mortal(random.Random(f"{seed}/death"), fire))
        threads = [
            threading.Thread(
                target=play,
                args=(part, number),
                name=MORTAL if part in (migrate, release) else "fire",
            )
            for number, part in enumerate(parts)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    break_lock(bench.session, bench.environment)
    bench.upgrade(history_on(table))
    _release(bench, bench.session, table)
    return fire


def _mortal(dice: random.Random, fire: Fire) -> Callable[..., None]:
    def moment(when: str, table: TableName | None, tag: door.Tag) -> None:
        mortal = threading.current_thread().name == MORTAL
        if mortal and time.monotonic() < fire.deadline and dice.random() < 0.06:
            raise Killed(when)

    return moment


def ids(bench: Bench, source: str) -> Counter[int]:
    """How often each row is there."""
    return Counter(row[0] for row in bench.session.sql(f"SELECT id FROM {source}").collect())


def balance(fire: Fire) -> tuple[Counter[int], Counter[int]]:
    """Rows lost, and rows doubled."""
    bench = fire.bench
    left = ids(bench, fire.table)
    held = ids(bench, f"{bench.quarantine(fire.table).sql} WHERE {own.STATE} = 'held'")
    wanted = +Counter({row: n - fire.removed[row] for row, n in fire.written.items()})
    there = left + held
    fire.events["rows written"] = sum(fire.written.values())
    moved = bench.session.table(bench.quarantine(fire.table).sql).count()
    fire.events["rows moved"] = moved
    fire.events["rows left"], fire.events["rows held"] = sum(left.values()), sum(held.values())
    return wanted - there, there - wanted


def main() -> None:
    """Run rounds on a server of their own and print an account of each."""
    from tests.harness.connect_server import connect_server

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seeds", default="1-20", help="first-last")
    parser.add_argument("--seconds", type=float, default=120.0, help="of each round")
    given = parser.parse_args()
    first, last = (int(part) for part in given.seeds.split("-"))
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, connect_server(Path(folder)) as server:
        session = open_session(Environment("fire", spark=server.url))
        for seed in range(first, last + 1):
            database = f"fire{seed}"
            session.sql(f"CREATE DATABASE {database}")
            environment = Environment("fire", spark=server.url, schema=f"{database}_deltacheck")
            fire = burn(Bench(session, environment, database), seed, given.seconds)
            lost, doubled = balance(fire)
            wrong += bool(lost or doubled)
            told = ", ".join(f"{n} {what}" for what, n in sorted(fire.events.items()))
            print(
                f"seed {seed}: {sum(lost.values())} lost, {sum(doubled.values())} doubled; {told}"
            )
            sys.stdout.flush()
        session.stop()
    print(f"{last - first + 1 - wrong} of {last - first + 1} rounds exact")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
