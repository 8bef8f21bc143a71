"""A release that dies at any commit neither loses nor doubles a row; the next one finishes it."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from deltacheck import quarantine
from deltacheck.delta import commit as door
from deltacheck.delta.commit import Tag
from deltacheck.errors import ReleaseForgottenError, UsageError
from deltacheck.names import TableName
from deltacheck.quarantine import releasing
from tests.harness.processes import start_python
from tests.quarantine.held import hold, make_table, rows, states

REPAIR = ["amount = amount * -10"]
BEFORE = "(1, -5, 'new'), (1, -5, 'new'), (2, -6, 'new'), (3, -7, 'lost')"
MEANWHILE = "(4, -8, 'new'), (5, -9, 'lost')"


class Killed(BaseException):
    """What nothing catches."""


def at(
    monkeypatch: pytest.MonkeyPatch, step: str, when: str, what: Any, table: str | None = None
) -> None:
    """Do something before or after the first commit of a step of a release, to a table."""
    done: list[str] = []

    def moment(now: str, written: TableName | None, tag: Tag) -> None:
        if (tag.step, now) == (step, when) and not done and table in (None, str(written)):
            done.append(now)
            what()

    monkeypatch.setattr(door, "moment", moment)


def kill() -> None:
    """Die."""
    raise Killed


def killed_release(
    session: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, step: str, when: str
) -> None:
    """Release repaired rows, and die before or after a step."""
    at(monkeypatch, step, when, kill)
    with pytest.raises(Killed):
        quarantine.release(table, repairs=REPAIR, session=session)
    monkeypatch.undo()


@pytest.fixture
def table(session: SparkSession, database: str) -> str:
    """A table with two good rows, and four bad ones in quarantine."""
    name = f"{database}.orders"
    make_table(session, name)
    session.sql(f"INSERT INTO {name} VALUES (100, 1, 'new'), (100, 1, 'new')")
    hold(session, name, BEFORE)
    return name


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["claim", "append", "mark"])
def test_killed_at_a_commit(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, step: str, when: str
) -> None:
    """Each row that passes goes back once, repaired once, whenever the first release died."""
    killed_release(spark, table, monkeypatch, step, when)
    hold(spark, table, MEANWHILE)

    done = quarantine.release(table, repairs=REPAIR, session=spark)

    assert done.rows + done.finished == (1 if (step, when) == ("mark", "after") else 4)
    assert rows(spark, table, "id, amount") == Counter(
        {(100, 1): 2, (1, 50): 2, (2, 60): 1, (4, 80): 1}
    )
    held = f"{table}_quarantine WHERE _deltacheck_state = 'held'"
    assert rows(spark, held, "id, amount, _deltacheck_release") == Counter(
        {(3, -7, None): 1, (5, -9, None): 1}
    )


def test_a_claim_that_the_table_refuses_now_is_judged_anew(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A constraint that came after the claim: what breaks it is held again, the rest goes back."""
    killed_release(spark, table, monkeypatch, "append", "before")
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT small CHECK (amount < 55)")

    done = quarantine.release(table, session=spark)

    assert (done.finished, done.rows, done.kept) == (0, 2, 2)
    assert rows(spark, table, "id, amount") == {(100, 1): 2, (1, 50): 2}
    reasons = spark.sql(f"SELECT _deltacheck_rules FROM {table}_quarantine WHERE id = 2")
    assert [row[0] for row in reasons.collect()] == [["small"]]


@pytest.mark.parametrize("place", ["table", "quarantine"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_while_a_refused_release_is_undone(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch, when: str, place: str
) -> None:
    """The claim is fenced off, and its rows are held again, by whoever comes next.

    Kind of bug: Delta skipped the append of a claim that had been fenced off, and its rows were
    marked as released all the same.
    """
    table = f"{database}.orders"
    lambdas = "TBLPROPERTIES ('delta.constraints.tagged' = 'exists(tags, t -> t = 1)')"
    make_table(spark, table, "id INT, tags ARRAY<INT>", {}, lambdas)
    hold(spark, table, "(1, array(2)), (2, array(1))", columns=("id", "tags"))
    at(monkeypatch, "undo", when, kill, table if place == "table" else f"{table}_quarantine")
    with pytest.raises(Killed):
        quarantine.release(table, session=spark)
    monkeypatch.undo()
    assert set(states(spark, table).values()) == {"held"}

    done = quarantine.release(table, where="id = 2", session=spark)

    assert (done.rows, done.finished) == (1, 0)
    assert rows(spark, table) == {(2,): 1}
    assert states(spark, table) == {1: "held", 2: "released"}


@pytest.mark.parametrize("landed", [False, True])
def test_a_release_that_nobody_remembers_is_not_guessed_about(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, landed: bool
) -> None:
    """Delta skips its append, and the history no longer says why: a person looks and says."""
    killed_release(spark, table, monkeypatch, "append", "after")
    before = rows(spark, table, "id, amount")

    with monkeypatch.context() as patch:
        patch.setattr(releasing, "history", lambda *_, **__: [])
        with pytest.raises(ReleaseForgottenError, match="no longer says") as raised:
            quarantine.release(table, session=spark)
        claim = str(raised.value).split()[2]
        assert set(states(spark, table).values()) == {"held"}
        if landed:
            quarantine.release(table, resume=claim, action=lambda _: None, session=spark)
        else:
            quarantine.release(table, resume=claim, append=True, session=spark)

    assert rows(spark, table, "id, amount") == before
    state = "released" if landed else "held"
    assert states(spark, table) == {1: state, 2: state, 3: "held"}


def test_a_release_by_append_is_not_resumed_by_an_action(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are in the table already: the action would write them again."""
    killed_release(spark, table, monkeypatch, "append", "after")
    held = spark.sql(f"SELECT DISTINCT _deltacheck_release AS r FROM {table}_quarantine")
    (claim,) = [row["r"] for row in held.collect() if row["r"]]
    called: list[DataFrame] = []

    with pytest.raises(UsageError, match="was by an append"):
        quarantine.release(table, resume=claim, action=called.append, session=spark)
    done = quarantine.release(table, resume=claim, session=spark)

    assert (done.rows, called) == (3, [])
    assert rows(spark, table, "id, amount") == {(100, 1): 2, (1, 50): 2, (2, 60): 1}


@pytest.mark.parametrize("when", ["before", "after"])
def test_another_release_may_finish_a_claim_while_its_owner_lives(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Two at once append the same claim under one transaction id: it lands once."""
    others: list[quarantine.Released] = []

    def other() -> None:
        others.append(quarantine.release(table, session=spark))

    at(monkeypatch, "append", when, other)
    done = quarantine.release(table, repairs=REPAIR, session=spark)

    assert (done.rows, others[0].finished) == (3, 3)
    assert rows(spark, table, "id, amount") == {(100, 1): 2, (1, 50): 2, (2, 60): 1}
    assert states(spark, table) == {1: "released", 2: "released", 3: "held"}


def test_an_action_that_died_is_not_guessed_about(spark: SparkSession, table: str) -> None:
    """It may have written or not: its rows wait until somebody says what to do with them."""

    def die(_: DataFrame) -> None:
        raise Killed

    with pytest.raises(Killed):
        quarantine.release(table, repairs=REPAIR, action=die, session=spark)
    later = quarantine.release(table, append=True, session=spark)
    (claim,) = later.unfinished
    assert later.rows == 0
    with pytest.raises(UsageError, match="may have written"):
        quarantine.release(table, resume=claim, session=spark)
    with pytest.raises(UsageError, match="no unfinished release"):
        quarantine.release(table, resume="action-x", append=True, session=spark)

    done = quarantine.release(table, resume=claim, append=True, session=spark)

    assert (done.release, done.rows) == (claim, 3)
    assert rows(spark, table, "id, amount") == {(100, 1): 2, (1, 50): 2, (2, 60): 1}
    assert quarantine.release(table, session=spark).unfinished == ()


CHILD = """
import json, time
from pathlib import Path
from deltacheck import quarantine
from deltacheck.config import Environment
from deltacheck.delta import commit as door
from deltacheck.delta.session import open_session
from tests.quarantine.held import hold, make_table, rows

def moment(when, table, tag):
    if (tag.step, when) == ("append", "after"):
        print("landed", flush=True)
        time.sleep(600)

session = open_session(Environment("local", warehouse=Path({warehouse!r})))
if {first}:
    session.sql("CREATE DATABASE shop LOCATION '" + {warehouse!r} + "/shop'")
    make_table(session, "shop.orders")
    hold(session, "shop.orders", {before!r})
    door.moment = moment
done = quarantine.release("shop.orders", repairs={repair!r}, session=session)
back = rows(session, "shop.orders", "id, amount")
print(json.dumps([done.finished, done.rows, sorted([*key, n] for key, n in back.items())]))
"""


@pytest.mark.slow
def test_killed_by_the_system_after_the_rows_landed(tmp_path: Path) -> None:
    """A process that is killed outright leaves a claim that the next process finishes."""

    def code(*, first: bool) -> str:
        return CHILD.format(warehouse=str(tmp_path), first=first, before=BEFORE, repair=REPAIR)

    with start_python(code(first=True)) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "landed\n"
        os.killpg(child.pid, signal.SIGKILL)

    with start_python(code(first=False)) as child:
        out, err = child.communicate(timeout=300)

    assert child.returncode == 0, err
    assert json.loads(out) == [3, 0, [[1, 50, 2], [2, 60, 1]]]
