"""What people are told of a run of checks."""

from __future__ import annotations

from datetime import datetime, timezone

from deltacheck.quality.events import events_of
from deltacheck.quality.results import Checked, CheckResult, Outcome, RuleCount, State
from deltacheck.rules.checks import OnFailure, RowCount, TableCheck

NOON = datetime(2026, 3, 2, 12, tzinfo=timezone.utc)


def result(
    table: str, name: str, state: State, *, warn: bool = False, owner: str = "sales"
) -> CheckResult:
    """The result of a check of row counts."""
    action = OnFailure.WARN if warn else OnFailure.FAIL
    check = TableCheck(name, "row_count", RowCount(least=5), on_failure=action)
    outcome = Outcome(state, "3 rows, fewer than 5", 3)
    return CheckResult(table, check, "row_count: at least 5", outcome, owner=owner)


def checked(*checks: CheckResult, rules: tuple[RuleCount, ...] = (), missing: str = "") -> Checked:
    """A run of checks."""
    return Checked("prod", "r1", NOON, checks, rules, (missing,) if missing else ())


def test_a_run_without_bad_news_is_not_told() -> None:
    rule = RuleCount("a", "r", "x > 0", "warn", "warn", rows=9, failed=4)

    assert list(events_of(checked(result("a", "c", "passed"), rules=(rule,)))) == []


def test_each_table_has_one_event_of_what_failed_and_one_of_what_warns() -> None:
    """With the owners, each once."""
    gated = RuleCount(
        "a", "r", "x > 0", "warn", "warn", rows=9, failed=4, gate="1/3", gated=True, owner="finance"
    )
    found = checked(
        result("a", "one", "failed"),
        result("a", "two", "failed"),
        result("a", "three", "failed", warn=True),
        result("b", "four", "failed"),
        result("b", "five", "unjudged"),
        rules=(gated,),
    )

    events = list(events_of(found))

    assert [(one.kind, one.table, list(one.rules), one.owners) for one in events] == [
        ("check_failed", "a", ["one", "two", "r"], ("sales", "finance")),
        ("warned", "a", ["three"], ("sales",)),
        ("check_failed", "b", ["four"], ("sales",)),
    ]
    assert events[0].rules["r"] == 4
    assert events[0].message.startswith("a: one, two and r failed (one: 3 rows, fewer than 5; ")
    assert {(one.environment, one.run) for one in events} == {("prod", "r1")}


def test_a_table_that_is_missing_is_told() -> None:
    (event,) = events_of(checked(missing="shop.orders"))

    assert (event.kind, event.table) == ("check_failed", "shop.orders")
    assert event.message == "shop.orders has checks and is not there."
