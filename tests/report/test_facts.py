"""What the report says of tables and days."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from deltacheck.report.facts import Report
from tests.report.facts import (
    NOW,
    RULE,
    TABLE,
    batch,
    broken,
    checked,
    counted,
    day,
    held,
    report,
    shop,
)


def verdicts(found: Report) -> dict[int, str]:
    """Day of the month to what is said of it."""
    return {one.day.day: one.verdict for one in found.tables[0].days}


def test_a_day_tells_what_came_in_and_what_was_rejected() -> None:
    """Of all its batches together."""
    found = report(
        batch(day(1), 100, 2),
        batch(day(1, 9), 10, 1),
        broken(day(1), "amount_positive", 2),
        broken(day(1, 9), "amount_positive", 1),
        batch(day(2), 50),
    )

    one, two = found.tables[0].days
    assert (one.batches, one.rows, one.bad, one.failed) == (2, 110, 3, {"amount_positive": 3})
    assert (two.batches, two.rows, two.bad, two.failed) == (1, 50, 0, {})


def test_a_day_on_which_a_batch_was_stopped_is_wrong_and_says_why() -> None:
    """By a gate: then its bad rows are known; by a check of it as a whole: then all are bad."""
    found = report(
        batch(day(1), 100, 40, stopped="40 of 100 rows, more than 5%"),
        batch(day(2), 100, stopped="few: row_count is 100"),
    )

    assert verdicts(found) == {1: "wrong", 2: "wrong"}
    one, two = found.tables[0].days
    assert (one.bad, one.stops) == (40, ("40 of 100 rows, more than 5%",))
    assert (two.bad, two.stops) == (100, ("few: row_count is 100",))


def test_a_day_on_which_a_check_failed_is_wrong_and_says_why() -> None:
    found = shop()

    assert verdicts(found)[6] == "wrong"
    assert [(one.table, wrong.day.day, wrong.wrong) for one, wrong in found.wrong_days] == [
        (TABLE, 6, {"usual_day": "row_count is 50"})
    ]


def test_a_gate_that_stopped_an_upgrade_is_a_stop_and_no_state_of_the_table() -> None:
    """A day that stays wrong: no later run asks that gate again under the same figures."""
    gate = replace(checked(day(1), "gate of the table", "failed", "3 of 5 rows"), source="upgrade")
    found = report(gate)

    (only,) = found.tables[0].days
    assert (only.verdict, only.stops, only.checks) == ("wrong", ("3 of 5 rows",), {})
    assert found.tables[0].checks == ()


def test_a_table_that_a_job_spells_otherwise_is_one_table() -> None:
    """Two tables, and what came in beside the wrong one: a job knows no declaration."""
    lines = [batch(day(1), 100, 2), replace(batch(day(2), 50), table=TABLE.lower())]
    found = report(*lines, rules=(replace(RULE, table=TABLE.upper()),))

    (only,) = found.tables
    assert (only.table, [one.rows for one in only.days]) == (TABLE.upper(), [100, 50])


def test_all_rows_are_bad_of_a_batch_that_a_check_refused() -> None:
    """Though some of them broke rules by themselves."""
    few = replace(checked(day(1), "few", "failed"), source="write", run="a")
    found = report(few, replace(batch(day(1), 100, 3, stopped="few: 100 rows"), run="a"))

    assert [one.bad for one in found.tables[0].days] == [100]


def test_bad_rows_and_checks_that_only_warn_make_a_day_warned() -> None:
    found = report(
        batch(day(1), 10, 1),
        checked(day(2), "few", "failed", "2 rows", "warn"),
        checked(day(3), "few", "passed"),
        checked(day(4), "few", "unjudged"),
    )

    assert verdicts(found) == {1: "warned", 2: "warned", 3: "fine", 4: "fine"}


def test_the_last_run_of_a_check_on_a_day_counts() -> None:
    """Whoever looks again after a repair clears the day."""
    found = report(
        checked(day(1, 9), "some", "passed", "100 rows"), checked(day(1, 6), "some", "failed")
    )

    assert verdicts(found) == {1: "fine"}
    (last,) = found.tables[0].checks
    assert last.message == "100 rows"


def test_a_batch_that_failed_is_not_hidden_by_one_that_passes_on_that_day() -> None:
    """A bug of the last word: of a batch that was quarantined at six nothing was left at seven."""
    bad = replace(checked(day(1, 6), "few", "failed", "2 rows"), source="write")
    good = replace(checked(day(1, 7), "few", "passed", "90 rows"), source="write")
    found = report(bad, good)

    assert verdicts(found) == {1: "wrong"}
    (table,) = found.tables
    assert table.days[0].wrong == {"few": "2 rows"}
    assert table.failing == ()


def test_a_batch_that_was_tried_again_came_in_once() -> None:
    """A bug of double counting: each try of a stopped batch added its rows; why is still told."""
    tries = [
        replace(batch(day(number, hour), 100, bad, stopped=why), batch="monday")
        for number, hour, bad, why in ((1, 6, 40, "40"), (1, 7, 40, "again 40"), (2, 6, 1, None))
    ]
    rules = [
        replace(broken(one.at, "amount_positive", one.failed or 0), run=one.run) for one in tries
    ]

    one, two = report(*tries, *rules, batch(day(2, 8), 5)).tables[0].days

    assert (one.batches, one.rows, one.bad, one.stopped, one.failed) == (0, 0, 0, 0, {})
    assert (one.verdict, one.stops) == ("wrong", ("40", "again 40"))
    assert (two.batches, two.rows, two.bad, two.failed) == (2, 105, 1, {"amount_positive": 1})


def test_a_gate_that_does_not_hold_makes_a_day_wrong() -> None:
    """A bug of silence: `check` failed for it, and the report had no wrong day."""
    why = "2 of 9 rows break it, more than the gate 1"
    found = report(
        counted(day(1), "amount_positive", 2, 9),
        checked(day(1), "gate of amount_positive", "failed", why),
    )

    assert [wrong.wrong for _, wrong in found.wrong_days] == [{"gate of amount_positive": why}]
    assert [dict(run.states) for run in found.check_runs] == [{"failed": 1}]


def test_a_rule_that_could_not_be_counted_leaves_its_last_count() -> None:
    """A bug of zeros: nobody counted, and the page said that none of 0 rows break it."""
    unknown = replace(counted(day(2), "few", 0, 0), message="it cannot be evaluated")
    (table,) = report(counted(day(1), "few", 3, 10), unknown).tables

    assert table.counted["few"].failed == 3


def test_quarantined_rows_are_told_by_age_and_rule() -> None:
    """Those that are held; not what was released, or is back in the table."""
    found = report(
        waiting=(
            held(4, 0, "a"),
            held(6, 9, "a", "b"),
            held(2, 100),
            held(7, 1, "a", state="released"),
            held(8, 1, "a", note="restored"),
        )
    )

    holding = found.tables[0].held
    assert holding is not None
    assert holding.rows == 12
    assert holding.ages == {"up to a day": 4, "up to a week": 0, "up to a month": 6, "longer": 2}
    assert holding.rules == {"a": 10, "b": 6, "": 2}


def test_a_table_has_the_owners_of_its_rules_and_checks() -> None:
    assert shop().tables[0].owners == ("sales",)


def test_an_upgrade_tells_of_a_day_where_it_found_bad_rows_or_was_stopped() -> None:
    """That all rows passed a new rule is no event; nothing of it came in."""
    moved = replace(broken(day(1), "few", 4), source="upgrade", rows=10)
    passed = replace(moved, at=day(2), state="passed", failed=0)
    stopped = replace(moved, at=day(3), message="4 of 10 rows, more than 5%")
    found = report(moved, passed, stopped)

    assert verdicts(found) == {1: "warned", 3: "wrong"}
    one, three = found.tables[0].days
    assert (one.batches, one.rows, one.failed) == (0, 0, {"few": 4})
    assert three.stops == ("4 of 10 rows, more than 5%",)


def test_a_rule_of_which_nobody_could_count_the_rows_is_told_as_broken() -> None:
    """A bug of silence: only Delta knew which rows broke it, and the report left it out."""
    unknown = replace(broken(day(1), "few", 0), failed=None)
    found = report(unknown, unknown, replace(unknown, at=day(2)), broken(day(2), "few", 3))

    assert verdicts(found) == {1: "warned", 2: "warned"}
    assert [one.failed for one in found.tables[0].days] == [{"few": None}, {"few": 3}]


def test_days_further_back_and_other_environments_are_left_out() -> None:
    """Today counts as one of the days."""
    elsewhere = replace(batch(day(12), 10), environment="test")
    found = report(batch(day(1), 10), batch(day(10), 20), batch(day(12), 30), elsewhere, days=3)

    assert [one.rows for one in found.tables[0].days] == [20, 30]


def test_a_harvest_and_a_count_make_no_day() -> None:
    """But how many rows broke a rule when they were last counted is known."""
    mark = replace(batch(day(3), 0), kind="harvest", state="done")
    found = report(counted(day(1), "few", 9, 10), counted(day(2), "few", 3, 10), mark)

    (table,) = found.tables
    assert table.days == ()
    assert {rule: line.failed for rule, line in table.counted.items()} == {"few": 3}


def test_a_calendar_has_the_days_of_nothing_too() -> None:
    """Up to the day of the report: that nothing came in since is to be seen."""
    (table,) = report(batch(day(8), 10), batch(day(10), 20)).tables

    calendar = table.calendar(NOW.date())
    assert [(one.day, one.rows) for one in calendar] == [
        (date(2026, 3, 8), 10),
        (date(2026, 3, 9), 0),
        (date(2026, 3, 10), 20),
        (date(2026, 3, 11), 0),
        (date(2026, 3, 12), 0),
    ]


def test_runs_of_checks_are_told_with_their_outcomes() -> None:
    """The newest first."""
    found = report(
        checked(day(1), "a", "passed"),
        checked(day(1), "b", "failed"),
        checked(day(2), "a", "passed"),
    )

    newest, before = found.check_runs
    assert (newest.at, dict(newest.states)) == (day(2), {"passed": 1})
    assert (before.tables, dict(before.states)) == ((TABLE,), {"passed": 1, "failed": 1})


def test_a_problem_is_told_of_a_table_of_which_nothing_else_is_known() -> None:
    (table,) = report(problems={TABLE: "It cannot be read."}).tables

    assert (table.problem, table.rules, table.days) == ("It cannot be read.", (), ())
    assert table.held is None
