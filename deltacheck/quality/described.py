"""A check in one line, as the log and the terminal tell it."""

from __future__ import annotations

from deltacheck.rules.checks import (
    Freshness,
    QuarantineLimits,
    Reconcile,
    References,
    RowCount,
    TableCheck,
    TableTest,
    Trend,
    Unique,
)


def described(check: TableCheck) -> str:
    """What a check tests.

    Of a trend it says what is measured and where, not what that is held against: figures with
    the same line can be compared.

    >>> described(TableCheck("few", "row_count", RowCount(most=9), where="a > 0", by=("b", "c")))
    'row_count: at most 9, where a > 0, by b, c'
    """
    where = "" if check.where is None else f", where {check.where}"
    by = f", by {', '.join(check.by)}" if check.by else ""
    return f"{check.kind}: {_test(check.test)}{where}{by}"


def _test(test: TableTest) -> str:
    if isinstance(test, RowCount):
        least = [] if test.least is None else [f"at least {test.least}"]
        most = [] if test.most is None else [f"at most {test.most}"]
        return ", ".join([*least, *most])
    if isinstance(test, Unique):
        return ", ".join(test.columns)
    if isinstance(test, References):
        nulls = "" if test.nulls else ", no NULL"
        return f"{', '.join(test.columns)} in {test.table} ({', '.join(test.keys)}){nulls}"
    if isinstance(test, Freshness):
        return f"{test.column} at most {test.max_age} old"
    if isinstance(test, Reconcile):
        other = test.other
        assert other is not None, "a figure of the job's is for batches"
        there = "" if other.where is None else f" where {other.where}"
        within = f", within {test.tolerance}" if test.tolerance.limit else ""
        return f"{test.measure} = {other.measure} of {other.table}{there}{within}"
    if isinstance(test, Trend):
        return str(test.measure)
    assert isinstance(test, QuarantineLimits), "there is no other test"
    rows = [] if test.rows is None else [f"at most {test.rows} rows"]
    oldest = [] if test.oldest is None else [f"none older than {test.oldest}"]
    return ", ".join([*rows, *oldest])
