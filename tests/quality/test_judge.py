"""From figures to outcomes: what is said, of how many rows, and never a value of one."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltacheck.names import TableName
from deltacheck.quality.figures import Figures
from deltacheck.quality.groups import digest, judge_groups, summed_up
from deltacheck.quality.judge import Held, judge_quarantine
from deltacheck.quality.results import Outcome
from deltacheck.quality.scan import ALL
from deltacheck.quality.trend import Past
from deltacheck.rules.checks import (
    Freshness,
    Other,
    QuarantineLimits,
    Reconcile,
    References,
    RowCount,
    TableCheck,
    TableTest,
    Trend,
    Unique,
)
from deltacheck.rules.quantities import Age, Measure, Tolerance, Window

NOW = datetime(2026, 3, 2, 6, tzinfo=timezone.utc)
CUSTOMERS = References(("customer_id",), TableName.parse("shop.customers"), ("id",))
LEDGER = Other(TableName.parse("finance.ledger"), Measure.parse("sum(total)"))


def check(test: TableTest, *by: str, show: bool = False) -> TableCheck:
    """A check with this test, by these groups."""
    return TableCheck("c", "kind", test, by=by, show_groups=show)


def judged(test: TableTest, found: Figures) -> Outcome:
    """What a test says of the rows of a whole table."""
    return judge_groups(check(test), {ALL: found}, {}, NOW)[ALL]


def trend(measure: str, last: str = "14 runs") -> Trend:
    """A trend with the usual number of spreads."""
    return Trend(Measure.parse(measure), Window.parse(last), Fraction(4))


def history(*values: float, group: str = ALL) -> dict[str, list[Past]]:
    """Figures of daily runs up to yesterday."""
    days = [NOW - timedelta(days=len(values) - place) for place in range(len(values))]
    return {digest(group): [Past(d, Fraction(v)) for d, v in zip(days, values, strict=True)]}


SENTENCES = [
    (RowCount(1, 10), Figures(rows=10), "passed", "10 rows, within 1 to 10"),
    (RowCount(1, 10), Figures(rows=11), "failed", "11 rows, more than 10"),
    (RowCount(least=2), Figures(rows=1), "failed", "1 row, fewer than 2"),
    (RowCount(most=5000), Figures(rows=0), "passed", "0 rows, at most 5,000"),
    (Unique(("a", "b")), Figures(rows=3), "passed", "a and b unique in 3 rows"),
    (
        Unique(("a",)),
        Figures(rows=11, failed=4, values=2, nulls=1),
        "failed",
        "4 of 11 rows share a with another (2 values); NULL in 1 row, not counted",
    ),
    (
        CUSTOMERS,
        Figures(rows=11, failed=3),
        "failed",
        "3 of 11 rows have a customer_id that shop.customers has not",
    ),
    (
        CUSTOMERS,
        Figures(rows=11, nulls=2),
        "passed",
        "every customer_id of 11 rows is in shop.customers; NULL in 2 rows, let pass",
    ),
    (
        Freshness("ts", Age.parse("26h")),
        Figures(rows=5, latest=NOW - timedelta(hours=26)),
        "passed",
        "the newest ts of 5 rows is 1 d 2 h old, at most 26h",
    ),
    (
        Freshness("ts", Age.parse("26h")),
        Figures(rows=5, latest=NOW - timedelta(hours=26, seconds=1)),
        "failed",
        "the newest ts of 5 rows is 1 d 2 h old, more than 26h",
    ),
    (
        Freshness("ts", Age.parse("26h")),
        Figures(rows=5),
        "failed",
        "none of 5 rows has a ts up to now",
    ),
    (
        Reconcile(Measure.parse("sum(amount)"), Tolerance.parse("1%"), LEDGER),
        Figures(rows=5, value=Fraction(99), other=Fraction(100)),
        "passed",
        "sum(amount) is 99, sum(total) of finance.ledger is 100: 1 apart, within 1%",
    ),
    (
        Reconcile(Measure.parse("sum(amount)"), Tolerance.parse("0"), LEDGER),
        Figures(rows=5, value=Fraction(199, 2)),
        "failed",
        "sum(amount) is 99.5, sum(total) of finance.ledger is 0: 99.5 apart, more than 0",
    ),
    (
        Reconcile(Measure.parse("sum(amount)"), Tolerance.parse("0"), LEDGER),
        Figures(),
        "passed",
        "sum(amount) is 0, sum(total) of finance.ledger is 0",
    ),
]


@pytest.mark.parametrize(("test", "found", "state", "message"), SENTENCES)
def test_an_outcome_says_the_figures_and_what_they_are_held_against(
    test: TableTest, found: Figures, state: str, message: str
) -> None:
    outcome = judged(test, found)

    assert (outcome.state, outcome.message) == (state, message)
    assert outcome.rows == found.rows


def test_references_may_refuse_null() -> None:
    """Then such rows are at fault like those without a counterpart."""
    strict = References(CUSTOMERS.columns, CUSTOMERS.table, CUSTOMERS.keys, nulls=False)

    outcome = judged(strict, Figures(rows=11, failed=3, nulls=2))

    assert (outcome.state, outcome.failed) == ("failed", 5)
    assert outcome.message.endswith("NULL in 2 rows, refused")
    assert judged(strict, Figures(rows=11, nulls=1)).state == "failed"


def test_a_sum_that_is_no_number_agrees_with_nothing() -> None:
    test = Reconcile(Measure.parse("sum(amount)"), Tolerance.parse("100%"), LEDGER)

    assert judged(test, Figures(rows=5, undefined=True)).state == "failed"
    assert judged(trend("sum(amount)"), Figures(rows=5, undefined=True)).state == "failed"


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_a_row_count_passes_exactly_within_its_limits(least: int, most: int, rows: int) -> None:
    outcome = judged(RowCount(least, most), Figures(rows=rows))

    assert (outcome.state == "passed") == (least <= rows <= most)
    assert outcome.figure == rows


@given(st.integers(0, 9), st.integers(0, 9))
def test_uniqueness_and_references_pass_exactly_without_rows_at_fault(
    failed: int, nulls: int
) -> None:
    for test in (Unique(("a",)), CUSTOMERS):
        outcome = judged(test, Figures(rows=20, failed=failed, nulls=nulls, values=failed))

        assert (outcome.state == "passed") == (failed == 0)
        assert outcome.failed == failed


def test_a_trend_says_what_is_usual() -> None:
    days = history(100, 102, 98, 101, 99, 100)
    found = {ALL: Figures(rows=7, value=Fraction(10))}

    outcome = judge_groups(check(trend("mean(x)")), found, days, NOW)[ALL]

    assert (outcome.state, outcome.figure) == ("failed", Fraction(10))
    assert outcome.message == (
        "mean(x) is 10; the median of 6 earlier runs is 100, usual is 96 to 104"
    )


def test_a_trend_without_enough_history_says_so() -> None:
    """It neither passes nor fails, and its figure is history for the next run."""
    found = {ALL: Figures(rows=7, value=Fraction(10))}

    outcome = judge_groups(check(trend("mean(x)")), found, history(100, 102), NOW)[ALL]

    assert (outcome.state, outcome.figure) == ("unjudged", Fraction(10))
    assert outcome.message == (
        "mean(x) is 10; 2 earlier figures, at least 5 are needed to judge it"
    )


def test_a_mean_of_nothing_is_no_figure() -> None:
    found = judge_groups(check(trend("mean(x)")), {ALL: Figures()}, history(1, 1, 1, 1, 1), NOW)

    assert found[ALL].state == "unjudged"
    assert found[ALL].figure is None
    assert found[ALL].message == "there is no row to take mean(x) of"


def test_shares_are_of_the_rows_looked_at_and_shown_in_percent() -> None:
    found = {ALL: Figures(rows=200, value=Fraction(30))}

    days = history(0.01, 0.02, 0.01, 0.01, 0.01)
    outcome = judge_groups(check(trend("null_share(x)")), found, days, NOW)[ALL]

    assert (outcome.state, outcome.figure) == ("failed", Fraction(15, 100))
    assert outcome.message.startswith("null_share(x) is 15%; the median of 5 earlier runs is 1%")


def test_the_share_of_each_value_is_judged_within_its_group() -> None:
    """A value that is gone has none of the rows."""
    paid, sent, gone = '{"k0":"EU","k1":"paid"}', '{"k0":"EU","k1":"sent"}', '{"k1":"lost"}'
    of_other = '{"k0":"US","k1":"paid"}'
    found = {
        paid: Figures(rows=30),
        sent: Figures(rows=10),
        of_other: Figures(rows=1000),
    }
    past = {
        **history(0.75, 0.75, 0.75, 0.75, 0.75, group=paid),
        **history(0.05, 0.05, 0.05, 0.05, 0.05, group=sent),
        **history(0.4, 0.4, 0.4, 0.4, 0.4, group=gone),
    }
    subject = check(trend("shares(status)"), "region")

    outcomes = judge_groups(subject, found, past, NOW)

    assert {name: (one.state, one.figure) for name, one in outcomes.items()} == {
        paid: ("passed", Fraction(3, 4)),
        sent: ("failed", Fraction(1, 4)),
        of_other: ("unjudged", 1),
        digest(gone): ("failed", 0),
    }
    whole = summed_up(subject, outcomes)
    assert whole.rows == 1040
    assert whole.message.startswith("2 of 4 groups by region and status fail: for example")


def test_a_group_that_has_been_gone_for_the_whole_window_is_forgotten() -> None:
    subject = check(trend("row_count"), "region")

    outcomes = judge_groups(subject, {}, history(0, 0, 0, 0, 0, group='{"k0":"EU"}'), NOW)

    assert outcomes == {}


def test_a_region_in_cents_shows_among_the_others() -> None:
    """Where groups may not be named they are counted; the message has their figures alone."""
    found = {f'{{"k0":"{one}"}}': Figures(rows=9, value=Fraction(100)) for one in "ABC"}
    found['{"k0":"D"}'] = Figures(rows=9, value=Fraction(10000))
    past = {}
    for group in found:
        past.update(history(99, 100, 101, 100, 98, group=group))
    subject = check(trend("mean(amount)"), "region")

    outcomes = judge_groups(subject, found, past, NOW)
    whole = summed_up(subject, outcomes)

    assert (whole.state, whole.rows) == ("failed", 36)
    assert whole.message == (
        "1 of 4 groups by region fail: mean(amount) is 10,000; the median of 5 earlier runs is "
        "100, usual is 96 to 104"
    )
    named = summed_up(check(trend("mean(amount)"), "region", show=True), outcomes)
    assert named.message.startswith("1 of 4 groups by region fail: region = D: mean(amount) is")


SECRET = "alice@example.org"


@given(st.sampled_from([one for one, _, _, _ in SENTENCES]), st.booleans())
def test_no_message_has_a_value_of_a_row_unless_asked_for(test: TableTest, show: bool) -> None:
    group = f'{{"k0":"{SECRET}"}}'
    subject = check(test, "email", show=show)
    found = {group: Figures(rows=0, failed=1, values=1, value=Fraction(5))}

    outcomes = judge_groups(subject, found, {}, NOW)
    whole = summed_up(subject, outcomes)

    assert (SECRET in whole.message) == (show and whole.state == "failed")
    assert all(SECRET not in one.message for one in outcomes.values())
    assert SECRET not in digest(group)


def test_only_the_first_of_many_groups_are_named() -> None:
    subject = check(RowCount(least=1), "g", show=True)
    found = {f'{{"k0":{place}}}': Figures() for place in range(8)}

    message = summed_up(subject, judge_groups(subject, found, {}, NOW)).message

    assert message.startswith("8 of 8 groups by g fail: g = 0: 0 rows, fewer than 1; g = 1: ")
    assert message.endswith("; and 3 more")


@pytest.mark.parametrize(
    ("test", "state"),
    [
        (RowCount(least=1), "failed"),
        (RowCount(most=1), "passed"),
        (Freshness("ts", Age.parse("1d")), "failed"),
        (Unique(("a",)), "passed"),
        (trend("mean(x)"), "unjudged"),
    ],
)
def test_a_table_without_a_row_has_no_groups(test: TableTest, state: str) -> None:
    """Which is no good news for a check that wants rows."""
    whole = summed_up(check(test, "g"), judge_groups(check(test, "g"), {}, {}, NOW))

    assert (whole.state, whole.message) == (state, "there is no row to group by g")


def test_groups_pass_together_or_are_told_to_be_unjudged() -> None:
    subject = check(trend("mean(x)"), "g")
    one, two = '{"k0":1}', '{"k0":2}'
    found = {one: Figures(rows=1, value=Fraction(1)), two: Figures(rows=2, value=Fraction(1))}
    known = history(1, 1, 1, 1, 1, group=one)

    both = summed_up(subject, judge_groups(subject, found, known, NOW))
    neither = summed_up(subject, judge_groups(subject, found, {}, NOW))
    all_known = {**known, **history(1, 1, 1, 1, 1, group=two)}

    assert (both.state, both.message) == ("passed", "1 of 2 groups by g could not be judged")
    assert neither.state == "unjudged"
    assert summed_up(subject, judge_groups(subject, found, all_known, NOW)).message == (
        "all 2 groups by g pass"
    )


@pytest.mark.parametrize(
    ("limits", "state", "message"),
    [
        (QuarantineLimits(100, None), "failed", "120 rows held, more than 100"),
        (QuarantineLimits(120, None), "passed", "120 rows held of 120"),
        (
            QuarantineLimits(None, Age.parse("7d")),
            "failed",
            "120 rows held; the oldest for 9 d, more than 7d",
        ),
        (
            QuarantineLimits(200, Age.parse("2w")),
            "passed",
            "120 rows held of 200; the oldest for 9 d",
        ),
    ],
)
def test_a_quarantine_has_limits_of_rows_and_of_time(
    limits: QuarantineLimits, state: str, message: str
) -> None:
    outcome = judge_quarantine(limits, Held(120, NOW - timedelta(days=9)), NOW)

    assert (outcome.state, outcome.message, outcome.rows) == (state, message, 120)


def test_an_empty_quarantine_is_within_its_limits() -> None:
    outcome = judge_quarantine(QuarantineLimits(0, Age.parse("1d")), Held(0), NOW)

    assert (outcome.state, outcome.message) == ("passed", "0 rows held of 0")
