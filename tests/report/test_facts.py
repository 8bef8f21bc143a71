"""What the report says of tables and days."""

from __future__ import annotations

from deltacheck.report.facts import Report
from tests.report.facts import TABLE, batch, broken, checked, day, held, report, shop


def verdicts(found: Report) -> dict[int, str]:
    """Day of the month to what is said of it."""
    return {one.day.day: one.verdict for one in found.tables[0].days}


def test_a_day_tells_what_came_in_and_what_was_rejected() -> None:
    """Of all batches together; of a batch quarantined whole all rows."""
    found = report(
        batch(day(1), 100, 2),
        batch(day(1, 9), 10, None),
        broken(day(1), "amount_positive", 2),
        broken(day(1, 9), "amount_positive", 1),
        batch(day(2), 50),
    )

    one, two = found.tables[0].days
    assert (one.batches, one.rows, one.bad, one.failed) == (2, 110, 12, {"amount_positive": 3})
    assert (two.batches, two.rows, two.bad, two.failed) == (1, 50, 0, {})


def test_a_day_on_which_a_check_failed_is_wrong_and_says_why() -> None:
    found = shop()

    assert verdicts(found)[6] == "wrong"
    assert [(table, one.day.day, one.wrong) for table, one in found.wrong_days] == [
        (TABLE, 6, {"usual_day": "row_count is 50"})
    ]


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
    assert holding.rows == 12
    assert holding.ages == {"up to a day": 4, "up to a week": 0, "up to a month": 6, "longer": 2}
    assert holding.rules == {"a": 10, "b": 6, "": 2}


def test_a_table_has_the_owners_of_its_rules_and_checks() -> None:
    assert shop().tables[0].owners == ("sales",)
