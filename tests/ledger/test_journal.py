"""What the journal's entries add up to: runs, the lock's holder, what is applied."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from deltacheck.delta.table import latest_version
from deltacheck.errors import LedgerError
from deltacheck.ledger.journal import (
    APPLIED,
    BROKEN,
    DONE,
    END,
    FAILED,
    RAN,
    RENEW,
    REVERTED,
    REVISION,
    SETTLED,
    START,
    STEP,
    STOPPED,
    Entry,
    Journal,
    Touched,
    journal_name,
    read_journal,
)
from deltacheck.ledger.lock import locked
from deltacheck.names import TableName
from tests.migrate.bench import Bench

NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


def journal(*entries: Entry) -> Journal:
    return Journal("id", entries)


def start(token: int, **values: object) -> Entry:
    expires = NOON + timedelta(minutes=5)
    return Entry(token, 0, START, f"run{token}", NOON, expires=expires, **values)  # type: ignore[arg-type]


def end(token: int, state: str, seq: int = 100) -> Entry:
    return Entry(token, seq, END, f"run{token}", NOON, state=state)


def revision(token: int, name: str, state: str, seq: int = 50) -> Entry:
    return Entry(token, seq, REVISION, f"run{token}", NOON, state=state, revision=name)


def test_the_last_run_holds_the_lock_until_its_end() -> None:
    """A run without an end holds the lock, alive or dead; one with an end does not."""
    assert journal().holder is None
    held = journal(start(1), end(1, DONE), start(2)).holder
    assert held is not None
    assert held.run == "run2"
    assert journal(start(1), end(1, DONE)).holder is None


def test_a_renewal_moves_the_expiry() -> None:
    later = NOON + timedelta(hours=1)
    renewed = Entry(1, 3, RENEW, "run1", NOON, expires=later)
    assert journal(start(1), renewed).runs[0].expires == later


def test_a_lock_broken_after_its_run_has_ended_changes_nothing() -> None:
    """The first end counts; the other one came in the same instant."""
    assert journal(start(1), end(1, DONE), end(1, BROKEN, 101)).runs[0].state == DONE


@pytest.mark.parametrize(
    ("entries", "unsettled"),
    [
        ([start(1), end(1, DONE)], []),
        ([start(1), end(1, STOPPED)], []),
        ([start(1), end(1, FAILED)], ["run1"]),
        ([start(1), end(1, BROKEN)], ["run1"]),
        ([start(1), start(2), end(2, FAILED)], ["run1", "run2"]),
        (
            [start(1), start(2), Entry(2, 9, SETTLED, "run2", NOON, detail="run1"), end(2, DONE)],
            [],
        ),
    ],
)
def test_runs_to_be_settled(entries: list[Entry], unsettled: list[str]) -> None:
    """Those that died, failed or lost their lock, until a later run has settled them."""
    assert [run.run for run in journal(*entries).unsettled] == unsettled


def test_revisions_applied_in_order_of_tokens() -> None:
    """The last word on a revision counts, and what is applied last comes last."""
    found = journal(
        revision(1, "0001", APPLIED),
        revision(1, "0002", APPLIED, 51),
        revision(2, "0002", REVERTED),
        revision(3, "0001", APPLIED),
    )
    assert list(found.applied) == ["0001"]
    assert list(journal(*found.entries, revision(4, "0002", APPLIED)).applied) == ["0001", "0002"]


def test_statements_that_ran_of_revisions_not_finished() -> None:
    """A statement is remembered until its revision is applied or taken back."""
    ran = Entry(1, 5, STEP, "run1", NOON, state=RAN, revision="0001", statement="SELECT 1")
    assert journal(ran, ran).ran == {"0001": ["SELECT 1", "SELECT 1"]}
    assert journal(ran, revision(2, "0001", APPLIED)).ran == {}


def test_tables_announced_later_are_the_runs_too() -> None:
    """All tables that a run may touch are known, whenever it learned of them."""
    late = Entry(1, 7, START, "run1", NOON, table="b.u", version_before=3, table_id="x")
    found = journal(start(1, table="b.t", version_before=1, quarantine="b.q"), late).runs[0]
    assert found.tables == (
        Touched(TableName.parse("b.t"), 1, None, TableName.parse("b.q")),
        Touched(TableName.parse("b.u"), 3, "x", None),
    )


def test_a_table_announced_again_is_the_one_that_was_told_with_its_id() -> None:
    """Told without one at first, and again, before a row is moved, with it."""
    first = start(1, table="b.t", version_before=1, quarantine="b.q")
    again = Entry(1, 7, START, "run1", NOON, table="b.t", version_before=3, table_id="x")
    without = Entry(1, 8, START, "run1", NOON, table="b.t", version_before=9)
    found = journal(first, again, without).runs[0]
    assert found.tables == (Touched(TableName.parse("b.t"), 3, "x", None),)


@pytest.mark.parametrize(
    ("properties", "problem"),
    [("'a' = 'b'", "not a journal"), ("'deltacheck.format' = '99'", "has format 99")],
)
def test_a_table_that_is_no_journal_of_ours(bench: Bench, properties: str, problem: str) -> None:
    """A foreign table and the journal of a newer deltacheck are refused and left alone."""
    schema = bench.environment.schema
    bench.session.sql(f"CREATE DATABASE {schema}")
    bench.session.sql(
        f"CREATE TABLE {schema}.journal (a INT) USING delta TBLPROPERTIES ({properties})"
    )
    with pytest.raises(LedgerError, match=problem):
        read_journal(bench.session, bench.environment)


def test_the_lock_of_a_journal_that_was_restored_can_be_taken(bench: Bench) -> None:
    """Delta keeps the tokens of the runs that were undone, so a later one is needed.

    A bug of tables that others change: the next run asked for such a token for ever.
    """

    def run() -> int:
        with locked(
            bench.session,
            bench.environment,
            command="stamp",
            revisions=[],
            tables=[],
            engine="",
        ) as lock:
            lock.end([], DONE)
        return lock.token

    assert run() == 1
    name = journal_name(bench.environment)
    version = latest_version(bench.session, name)
    assert run() == 2
    bench.session.sql(f"RESTORE TABLE {name.sql} TO VERSION AS OF {version}").collect()

    assert run() == 3
    assert [one.token for one in read_journal(bench.session, bench.environment).runs] == [1, 3]
