"""What passed and failed is read from a table's history, so far as that tells."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from fractions import Fraction
from typing import Any

from deltacheck.delta.table import Commit
from deltacheck.ledger.quality_log import Line
from deltacheck.quality.harvest import Said, Written, lines, written_batches
from deltacheck.quality.results import Outcome
from deltacheck.rules.given import rules_given

NOON = datetime(2026, 3, 2, 12, tzinfo=timezone.utc)
BASE = Line(NOON, "prod", "shop.orders", "", "", owner="sales")
OK = rules_given("shop.orders", {"Ok": {"check": "id > 0", "on_violation": "drop"}}).rules


def commit(
    version: int,
    operation: str = "WRITE",
    tag: dict[str, Any] | None = None,
    rows: int = 0,
    **parameters: str,
) -> Commit:
    """One entry of a history."""
    return Commit(
        version=version,
        at=NOON,
        operation=operation,
        read_version=version - 1,
        parameters=parameters,
        metrics={"numOutputRows": str(rows)},
        user_metadata=None if tag is None else json.dumps({"deltacheck": tag}),
        engine=None,
    )


def clean(version: int, rows: int = 10, **tag: Any) -> Commit:
    """A clean wrapped write."""
    return commit(version, tag={"attempt": f"a{version}", **tag}, rows=rows)


def batches(*oldest_first: Commit, constraints: tuple[str, ...] = ("ok",)) -> list[Written]:
    """What is read of some commits."""
    return written_batches(oldest_first[::-1], constraints)


def test_a_clean_write_passed_every_constraint() -> None:
    """It says so of as many rows as it wrote."""
    (found,) = batches(clean(3, 10, batch="monday", job="load"), constraints=("OK", "other"))

    told = list(lines([found], BASE, OK, {}))
    assert [(one.kind, one.rule, one.action, one.owner) for one in told] == [
        ("rule", "Ok", "drop", "sales"),
        ("rule", "other", None, "sales"),
        ("batch", None, None, "sales"),
    ]
    assert {(one.state, one.rows, one.passed, one.failed) for one in told} == {
        ("passed", 10, 10, 0)
    }
    assert {(one.version, one.batch, one.job, one.source, one.run) for one in told} == {
        (3, "monday", "load", "write", "a3")
    }


def test_a_batch_that_was_split_tells_what_its_rows_broke() -> None:
    """Its rows are those written, quarantined and dropped."""
    detail = {
        "route": "rows",
        "written": 7,
        "quarantined": 2,
        "dropped": 1,
        "bad": 3,
        "broken": {"OK": 2, "Small": 3},
    }
    (found,) = batches(clean(3, 7, detail=detail))

    told = {one.rule: one for one in lines([found], BASE, OK, {})}
    assert {rule: (one.state, one.rows, one.failed) for rule, one in told.items()} == {
        "Ok": ("failed", 10, 2),
        "Small": ("failed", 10, 3),
        None: ("failed", 10, 3),
    }


def test_a_batch_that_was_quarantined_whole_failed_though_some_of_its_rows_were_good() -> None:
    """Or all of them, where it was for a check of the batch as a whole."""
    whole = {"route": "batch", "written": 0, "quarantined": 9}
    broken, checked = batches(
        clean(3, 0, detail={**whole, "broken": {"ok": 2}, "bad": 2}), clean(4, 0, detail=whole)
    )

    rule, batch = lines([broken], BASE, (), {})
    assert (rule.rows, rule.failed) == (9, 2)
    assert (batch.state, batch.rows, batch.failed, batch.passed) == ("failed", 9, 2, 7)
    rule, batch = lines([checked], BASE, (), {})
    assert (rule.state, batch.state, batch.failed) == ("passed", "failed", 0)


def test_the_rule_that_delta_named_failed_though_no_row_could_be_blamed() -> None:
    """A false pass: of it and of the rules that Delta did not come to."""
    whole = {"route": "batch", "written": 0, "quarantined": 9, "rule": "Ok"}
    few = Said("Ok", "quarantine", "", Outcome("failed", "9 rows, more than 8", 9))
    unblamed, blamed, checked = batches(
        clean(3, 0, detail=whole),
        clean(4, 0, detail={**whole, "broken": {"Ok": 2}, "bad": 2}),
        clean(5, 0, detail={**whole, "checks": {"Ok": few.told()}}),
        constraints=("ok", "other"),
    )

    def judged(batch: Written) -> list[tuple[object, ...]]:
        told = lines([batch], BASE, (), {})
        return [(one.rule, one.state, one.passed, one.failed) for one in told]

    assert judged(unblamed) == [("Ok", "failed", None, None), (None, "failed", 9, 0)]
    assert judged(blamed) == [
        ("Ok", "failed", 7, 2),
        ("other", "passed", 9, 0),
        (None, "failed", 7, 2),
    ]
    assert judged(checked) == [
        ("ok", "passed", 9, 0),
        ("other", "passed", 9, 0),
        ("Ok", "failed", 9, 0),
        (None, "failed", 9, 0),
    ]


def test_what_a_commit_tells_of_checks_is_what_they_said() -> None:
    """Figures and owners too, each check in a line of its own before that of the batch."""
    passed = Said("some", "fail", "sales", Outcome("passed", "9 rows", 9, figure=Fraction(9)))
    doubled = Said("ids", "warn", "", Outcome("failed", "2 of 9 rows share id", 9, 2))
    told = {said.check: said.told() for said in (passed, doubled)}
    (found,) = batches(clean(3, 9, detail={"written": 9, "checks": told}), constraints=())

    assert found.checked == (passed, doubled)
    assert [
        (one.kind, one.rule, one.action, one.owner, one.state, one.passed, one.failed, one.figure)
        for one in lines([found], BASE, (), {})
    ] == [
        ("check", "some", "fail", "sales", "passed", 9, 0, 9.0),
        ("check", "ids", "warn", "sales", "failed", 7, 2, None),
        ("batch", None, None, "sales", "passed", 9, 0, None),
    ]


def test_commits_of_others_and_commits_that_decide_nothing_are_passed_over() -> None:
    found = batches(
        commit(1, rows=5),
        commit(2, tag={"attempt": "a", "step": "begin"}),
        commit(3, "DELETE", tag={"attempt": "a", "run": "r", "revision": "0001"}),
        commit(4, tag={"job": "load"}),
        clean(5),
    )

    assert [one.version for one in found] == [5]


def test_a_write_is_held_against_the_constraints_of_its_own_time() -> None:
    """Not against one that was added later; against one that was dropped since."""
    found = batches(
        clean(1),
        commit(2, "ADD CONSTRAINT", name="New", expr="a > 0"),
        clean(3),
        commit(4, "DROP CONSTRAINT", name="old", existed="true"),
        commit(5, "DROP CONSTRAINT", name="never", existed="false"),
        clean(6),
        constraints=("new", "ok"),
    )

    assert [one.constraints for one in found] == [
        frozenset({"old", "ok"}),
        frozenset({"new", "old", "ok"}),
        frozenset({"new", "ok"}),
    ]


def test_what_the_schema_holds_rows_to_is_claimed_back_to_its_last_change() -> None:
    """A column that may not be NULL now may have been made so; CHECKs are told by name."""
    history = clean(1), commit(2, "CHANGE COLUMN"), clean(3)

    earlier, later = written_batches(history[::-1], ("ok",), ("Id_Not_Null",))

    assert earlier.constraints == frozenset({"ok"})
    assert later.constraints == frozenset({"ok", "id_not_null"})


def test_nothing_is_claimed_of_writes_before_the_table_was_made_anew() -> None:
    """What it was held against then, the history does not tell."""
    for operation in ("RESTORE", "CREATE OR REPLACE TABLE AS SELECT", "REPLACE TABLE"):
        earlier, later = batches(clean(1), commit(2, operation), clean(3))

        assert (earlier.constraints, later.constraints) == (None, frozenset({"ok"}))
        assert [one.kind for one in lines([earlier], BASE, (), {})] == ["batch"]


def test_properties_make_the_past_unclear_only_where_they_are_constraints() -> None:
    other = commit(2, "SET TBLPROPERTIES", properties='{"deltacheck.rules":"{}"}')
    unset = commit(2, "UNSET TBLPROPERTIES", properties='["delta.constraints.x"]')

    assert batches(clean(1), other)[0].constraints == frozenset({"ok"})
    assert batches(clean(1), unset)[0].constraints is None
