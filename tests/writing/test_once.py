"""With a batch id a batch is written once, whatever is killed and however often it is retried."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import deltacheck
from deltacheck import quarantine
from deltacheck.delta import commit as door
from deltacheck.delta.commit import Tag
from deltacheck.delta.failures import EngineFailure
from deltacheck.delta.table import Definition, history
from deltacheck.errors import QuarantineError
from deltacheck.names import TableName
from deltacheck.writing import judge, once
from deltacheck.writing.judge import BatchRule, batch_rules
from deltacheck.writing.once import job_batch, stream_batch
from deltacheck.writing.survey import Survey
from tests.harness.marks import connect_is_slow
from tests.writing.batches import (
    BAD,
    GOOD,
    batch,
    everywhere,
    good,
    held,
    ids,
    make_table,
    mixed,
    plain_append,
    union_of,
    versions,
)
from tests.writing.kills import ROWS, Killed, Straggler, drawn, moments

ROUTES = ("rows", "batch")


@pytest.mark.parametrize("route", ROUTES)
def test_rows_of_a_batch_that_is_not_decided_wait_for_its_retry(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    """They are not released in between, since the retry brings them again.

    A bug of what one command leaves half done and another takes for done: released rows came
    once more with the retry, which then removed the first attempt's copy.
    """

    def moment(when: str, at: TableName | None, tag: Tag) -> None:
        if (when, tag.step) == ("after", once.ROWS):
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(door, "moment", moment)
        with pytest.raises(Killed):
            deltacheck.write(drawn(spark, 1, 0), table, route=route, batch_id="a")  # type: ignore[arg-type]
    assert {one.note for one in quarantine.list(table, session=spark)} == {"unsettled"}
    repairs = ["amount = abs(amount) + 1"]
    with pytest.raises(QuarantineError, match="its retry will bring them again"):
        quarantine.release(table, repairs=repairs, session=spark)

    again = deltacheck.write(drawn(spark, 1, 1), table, route=route, batch_id="a")  # type: ignore[arg-type]
    assert {one.note for one in quarantine.list(table, session=spark)} == {""}
    done = quarantine.release(table, repairs=repairs, session=spark)

    assert done.rows == again.quarantined > 0
    assert Counter(ids(spark, table)) == union_of(range(1, 1 + ROWS))


@connect_is_slow
@pytest.mark.parametrize("route", ROUTES)
def test_a_batch_that_is_written_again_tells_what_became_of_it(
    any_spark: SparkSession, database: str, route: str
) -> None:
    """Nothing is written twice; the result is the first one's, but for ``repeated``."""
    table = make_table(any_spark, f"{database}.orders")
    clean = deltacheck.write(good(any_spark), table, batch_id="good")
    first = deltacheck.write(mixed(any_spark), table, batch_id="bad", route=route)  # type: ignore[arg-type]
    before = versions(any_spark, table), everywhere(any_spark, table)

    again = deltacheck.write(mixed(any_spark), table, batch_id="bad", route=route)  # type: ignore[arg-type]
    clean_again = deltacheck.write(good(any_spark), table, batch_id="good")

    assert (versions(any_spark, table), everywhere(any_spark, table)) == before
    assert (first.repeated, again.repeated, clean_again.repeated) == (False, True, True)
    for one, other in ((first, again), (clean, clean_again)):
        assert (one.ok, one.route, one.written) == (other.ok, other.route, other.written)
        assert (one.quarantined, one.broken) == (other.quarantined, other.broken)
        assert (one.rule, one.version) == (other.rule, other.version)
        assert one.batch_id == other.batch_id


def test_a_batch_that_was_quarantined_is_not_written_when_it_is_clean_later(
    spark: SparkSession, table: str
) -> None:
    """What was decided is decided; strict says so again."""
    deltacheck.write(mixed(spark), table, batch_id=7)

    with pytest.raises(deltacheck.BatchQuarantined) as raised:
        deltacheck.write(good(spark), table, batch_id=7, strict=True)

    assert raised.value.result.repeated
    assert ids(spark, table) == []
    rows = spark.table(f"{table}_quarantine").collect()
    assert {row["_deltacheck_batch"] for row in rows} == {"7"}


def test_another_id_is_another_batch(spark: SparkSession, table: str) -> None:
    """And no id is no promise: the rows are written again."""
    for batch_id in ("a", "b", None, None):
        assert not deltacheck.write(good(spark), table, batch_id=batch_id).repeated
    assert ids(spark, table) == [1, 1, 1, 1, 2, 2, 2, 2]


def test_a_batch_that_is_looked_at_first_is_written_once_too(
    spark: SparkSession, table: str
) -> None:
    """Rules of the batch's own, of which Delta knows nothing."""
    rules = {"not_two": "id != 2"}
    first = deltacheck.write(good(spark), table, "append", "rows", batch_id="a", rules=rules)
    again = deltacheck.write(good(spark), table, "append", "rows", batch_id="a", rules=rules)
    nothing = deltacheck.write(good(spark), table, batch_id="b", rules={"few": "id < 9"})
    repeated = deltacheck.write(good(spark), table, batch_id="b", rules={"few": "id < 9"})

    assert (first.written, first.quarantined) == (again.written, again.quarantined) == (1, 1)
    assert (nothing.route, repeated.route, repeated.repeated) == ("clean", "clean", True)
    assert ids(spark, table) == [1, 1, 2]
    assert held(spark, table) == {2: ["not_two"]}


def test_a_write_that_fails_leaves_nothing_and_can_be_tried_again(
    spark: SparkSession, table: str
) -> None:
    """The last commit fails: what is in quarantine by then is taken back."""
    rows = mixed(spark).selectExpr("id", "amount", "status", "assert_true(id > 0) AS x").drop("x")
    broken = mixed(spark).selectExpr("id", "amount", "status", "id AS more")
    with pytest.raises(Exception, match="DELTA_METADATA_MISMATCH"):
        deltacheck.write(broken, table, route="rows", batch_id="a", rules={"few": "id < 9"})
    assert everywhere(spark, table) == union_of()

    result = deltacheck.write(rows, table, route="rows", batch_id="a")

    assert (result.repeated, result.written, result.quarantined) == (False, 2, 2)
    assert everywhere(spark, table) == union_of(range(1, 5))


def test_what_nobody_remembers_is_an_error(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta skips the batch, and the history no longer says why: not a silent skip."""
    deltacheck.write(good(spark), table, batch_id="a")
    monkeypatch.setattr(once, "history", lambda *_, **__: [])

    with pytest.raises(deltacheck.BatchError, match=r"was written to .* before"):
        deltacheck.write(good(spark), table, batch_id="a")
    assert ids(spark, table) == [1, 2]


def test_ids_of_jobs_and_streams_do_not_meet() -> None:
    """Nor do two streams'."""
    apps = {job_batch("orders/1").app, stream_batch("orders", 1).app, stream_batch("o", 1).app}
    assert len(apps) == 3


def test_what_was_decided_stays_decided_whatever_a_retry_would_be_judged_by(
    spark: SparkSession, table: str
) -> None:
    """A rule of the batch's own is looked at before the write: the log is asked first."""
    rules = {"few": {"check": "id < 9", "on_violation": "fail"}}
    deltacheck.write(good(spark), table, batch_id="a", rules=rules)
    again = deltacheck.write(drawn(spark, 100, 1), table, batch_id="a", rules=rules)
    assert (again.repeated, again.route) == (True, "clean")
    with pytest.raises(deltacheck.FailRuleError):
        deltacheck.write(drawn(spark, 100, 1), table, batch_id="b", rules=rules)
    assert everywhere(spark, table) == union_of([1, 2])


def test_a_table_made_anew_loses_no_row_to_the_memory_of_its_quarantine(
    spark: SparkSession, table: str
) -> None:
    """The quarantine's log has the batch's id, so Delta would skip its rows in silence."""
    deltacheck.write(mixed(spark), table, "append", "rows", batch_id="a")
    spark.sql(f"DROP TABLE {table}")
    make_table(spark, table)

    with pytest.raises(deltacheck.BatchError, match="the table was made anew"):
        deltacheck.write(drawn(spark, 100, 1), table, "append", "rows", batch_id="a")
    assert ids(spark, table) == []
    deltacheck.write(drawn(spark, 100, 1), table, "append", "rows", batch_id="a2")

    assert everywhere(spark, table) == union_of([3, 4], range(100, 100 + ROWS))


def test_clearing_up_after_a_dead_attempt_takes_nobody_elses_rows(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guarded write may have used the same id."""
    deltacheck.guard(mixed(spark), table, lambda rows: plain_append(rows, table), batch_id="a")
    with moments(monkeypatch, kill_at=5):
        deltacheck.write(drawn(spark, 100, 1), table, "append", "rows", batch_id="a")
    deltacheck.write(drawn(spark, 100, 2), table, "append", "rows", batch_id="a")
    assert everywhere(spark, table) == union_of(range(1, 5), range(100, 100 + ROWS))


def test_a_jobs_id_that_looks_like_a_streams_batch_is_not_taken_for_one(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither for the same batch, nor for a later one of a stream that was started anew."""
    for batch_id in ("orders/1", "orders/20261130"):
        deltacheck.write(good(spark), table, batch_id=batch_id)
    stream = deltacheck.foreach_batch(table, query="orders", route="rows")
    with moments(monkeypatch, kill_at=5):
        stream(drawn(spark, 100, 1), 1)
    stream(drawn(spark, 100, 2), 1)
    assert everywhere(spark, table) == union_of([1, 2], [1, 2], range(100, 100 + ROWS))


@pytest.mark.parametrize("route", ROUTES)
def test_rows_that_delta_refuses_although_they_were_judged_good(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    """The batch goes to quarantine whole, once, and a retry says so."""

    def fewer(known: Survey, found: Definition | None) -> tuple[BatchRule, ...]:
        return tuple(r for r in batch_rules(known, found) if r.name != "status_known")

    monkeypatch.setattr(judge, "batch_rules", fewer)
    rows = batch(spark, GOOD, BAD, "(5, 5, 'gone')")
    for repeated in (False, True):
        result = deltacheck.write(rows, table, route=route, batch_id="a")  # type: ignore[arg-type]
        assert (result.ok, result.quarantined, result.repeated) == (False, 5, repeated)
    assert ids(spark, table) == []
    assert set(held(spark, table)) == {1, 2, 3, 4, 5}


def test_a_table_that_is_not_there_is_made_once(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With bad rows by rules of the batch's own; killed at each moment of the first write."""
    rules = {"amount_positive": "amount > 0"}
    for kill_at in (None, *range(8)):
        name = f"{database}.made_{kill_at}"

        def write(name: str = name) -> deltacheck.WriteResult:
            return deltacheck.write(mixed(spark), name, "append", "rows", batch_id="a", rules=rules)

        with moments(monkeypatch, kill_at):
            write()
        again = write()
        assert again.repeated or kill_at is not None
        assert everywhere(spark, name) == union_of(range(1, 5))
        assert write().repeated


def test_a_quarantine_that_fails_in_the_midst_leaves_nothing_behind(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta's refusal is raised, with the quarantine's failure as its cause; a retry is free."""

    def moment(when: str, at: TableName | None, tag: Tag) -> None:
        if (when, str(at), tag.step) == ("before", f"{table}_quarantine", once.ROWS):
            raise PySparkException("", errorClass="NO_SPACE_LEFT", messageParameters={})

    for number in (None, "a"):
        with monkeypatch.context() as here:
            here.setattr(door, "moment", moment)
            with pytest.raises(EngineFailure) as raised:
                deltacheck.write(mixed(spark), table, "append", "rows", batch_id=number)
        cause = raised.value.__cause__
        assert isinstance(cause, deltacheck.QuarantineError)
        assert "NO_SPACE_LEFT" in str(cause)
        assert everywhere(spark, table) == union_of()

    deltacheck.write(mixed(spark), table, "append", "rows", batch_id="a")
    assert everywhere(spark, table) == union_of(range(1, 5))


def test_whoever_is_to_be_told_is_told_by_the_retry_too(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first write may have died between its last commit and the call."""
    told: list[deltacheck.WriteResult] = []
    with moments(monkeypatch, kill_at=8):
        deltacheck.write(mixed(spark), table, batch_id="a", on_quarantine=told.append)
    assert told == []
    result = deltacheck.write(mixed(spark), table, batch_id="a", on_quarantine=told.append)
    assert told == [result]
    assert (result.repeated, result.quarantined) == (True, 4)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["overwrite", "replace"])
def test_a_replacing_write_killed_at_any_moment_is_completed_by_a_retry(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """What was there before is replaced by one evaluation of the batch, and held once."""
    for kill_at in itertools.count():
        first, batch_id = (kill_at + 1) * 100, f"killed {kill_at}"

        def write(seed: int, first: int = first, batch_id: str = batch_id) -> None:
            rows = drawn(spark, first, seed)
            deltacheck.write(rows, table, mode, "rows", batch_id=batch_id)  # type: ignore[arg-type]

        with moments(monkeypatch, kill_at) as watched:
            write(kill_at)
        write(kill_at + 1)
        mine = Counter(
            {one: n for one, n in everywhere(spark, table).items() if first <= one < first + ROWS}
        )
        assert mine == union_of(range(first, first + ROWS)), watched.seen
        assert min(ids(spark, table)) >= first, "what was to be replaced is there"
        if kill_at == len(watched.seen):
            break
    assert kill_at >= 7


@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("hold", range(4), ids=["plain", "begin", "quarantine", "decision"])
def test_a_slow_attempt_that_lives_on_gives_way_to_a_quick_one(
    spark: SparkSession, table: str, hold: int, route: str
) -> None:
    """It finds that the other has won, and tells what became of the batch."""
    deltacheck.write(mixed(spark), table, route="rows")
    expected = everywhere(spark, table) + union_of(range(100, 100 + ROWS))
    told: list[deltacheck.WriteResult] = []

    def slow() -> None:
        rows = drawn(spark, 100, 1)
        told.append(deltacheck.write(rows, table, route=route, batch_id="late"))  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        straggler = Straggler(patch, hold, slow, dies=False)
        quick = deltacheck.write(drawn(spark, 100, 2), table, route=route, batch_id="late")  # type: ignore[arg-type]
        straggler.go_on()

    assert everywhere(spark, table) == expected
    assert straggler.died_of is None
    assert (quick.repeated, told[0].repeated) == (False, True)
    assert told[0].quarantined == quick.quarantined


@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("clean", [False, True], ids=["bad again", "clean then"])
def test_a_write_killed_at_any_moment_is_completed_by_a_retry(
    spark: SparkSession,
    table: str,
    monkeypatch: pytest.MonkeyPatch,
    route: str,
    clean: bool,
) -> None:
    """The retry computes other rows; each row is in exactly one place in the end."""
    with moments(monkeypatch) as undisturbed:
        deltacheck.write(drawn(spark, 0, 1), table, route=route, batch_id="whole")  # type: ignore[arg-type]
    expected = union_of(range(ROWS))
    assert everywhere(spark, table) == expected
    # The plain write, then begin, quarantine and decision, each before and after; the
    # quarantine is there already for the later ones.
    kinds = [kind for kind in undisturbed.seen if "_quarantine" not in kind or "before" in kind]
    assert len(kinds) >= 6

    for kill_at in itertools.count():
        first, batch_id = (kill_at + 1) * 100, f"killed {kill_at}"
        with moments(monkeypatch, kill_at) as watched:
            deltacheck.write(drawn(spark, first, kill_at), table, route=route, batch_id=batch_id)  # type: ignore[arg-type]
        retry = deltacheck.write(
            drawn(spark, first, kill_at + 1, clean=clean),
            table,
            route=route,  # type: ignore[arg-type]
            batch_id=batch_id,
        )
        expected += union_of(range(first, first + ROWS))
        assert everywhere(spark, table) == expected, watched.seen
        assert (retry.written or 0) + retry.quarantined == ROWS
        if kill_at == len(watched.seen):
            break
    assert kill_at >= 7


@pytest.mark.slow
def test_a_retry_killed_at_any_moment_is_completed_by_the_next(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while it clears up what the first attempt left in quarantine."""
    deltacheck.write(mixed(spark), table, route="rows")
    expected = everywhere(spark, table)
    for kill_at in itertools.count():
        first, batch_id = (kill_at + 1) * 100, f"killed {kill_at}"

        def write(seed: int, batch_id: str = batch_id, first: int = first) -> None:
            deltacheck.write(drawn(spark, first, seed), table, route="rows", batch_id=batch_id)

        # The first attempt dies once its bad rows are in quarantine: before it decides.
        with moments(monkeypatch, kill_at=5):
            write(0)
        assert everywhere(spark, table) != expected
        with moments(monkeypatch, kill_at) as watched:
            write(1)
        write(2)
        expected += union_of(range(first, first + ROWS))
        assert everywhere(spark, table) == expected, watched.seen
        if kill_at == len(watched.seen):
            break
    assert kill_at >= 11


@pytest.mark.slow
@pytest.mark.parametrize("clean", [False, True], ids=["bad again", "clean then"])
@pytest.mark.parametrize("hold", range(4), ids=["plain", "begin", "quarantine", "decision"])
def test_a_late_commit_of_a_dead_attempt_changes_nothing(
    spark: SparkSession, table: str, hold: int, clean: bool
) -> None:
    """A statement outlives the process that sent it, and ends after the retry has written."""
    deltacheck.write(mixed(spark), table, route="rows")
    expected = everywhere(spark, table) + union_of(range(100, 100 + ROWS))

    with pytest.MonkeyPatch.context() as patch:
        straggler = Straggler(
            patch,
            hold,
            lambda: deltacheck.write(drawn(spark, 100, 1), table, route="rows", batch_id="late"),
        )
        deltacheck.write(drawn(spark, 100, 2, clean=clean), table, route="rows", batch_id="late")
        assert everywhere(spark, table) == expected
        straggler.go_on()

    assert everywhere(spark, table) == expected
    assert deltacheck.write(drawn(spark, 100, 3), table, batch_id="late").repeated
    assert everywhere(spark, table) == expected


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_random_kills_lose_and_double_nothing(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Up to three kills in a row, either route, sources that differ each time."""
    chance = random.Random(seed)
    expected = union_of()
    for number in range(4):
        first, route = number * 100, chance.choice(ROUTES)
        for attempt in range(4):
            kill_at = chance.randrange(9) if attempt < 3 else None
            rows = drawn(spark, first, chance.randrange(50), clean=chance.random() < 0.3)
            with moments(monkeypatch, kill_at):
                deltacheck.write(rows, table, route=route, batch_id=number)  # type: ignore[arg-type]
        expected += union_of(range(first, first + ROWS))
        assert everywhere(spark, table) == expected


def test_the_tables_history_tells_each_attempt(spark: SparkSession, table: str) -> None:
    """Which batch, which attempt, what it did."""
    deltacheck.write(mixed(spark), table, route="rows", batch_id="a", job="nightly")
    decided, begun = (entry.tag for entry in history(spark, TableName.parse(table), limit=2))

    assert (begun["step"], begun["batch"], begun["job"]) == ("begin", "a", "nightly")
    assert begun["detail"] == {"slot": 1, "quarantine": f"{table}_quarantine"}
    assert decided["attempt"] == begun["attempt"]
    assert "step" not in decided
    assert decided["detail"]["quarantined"] == 2
