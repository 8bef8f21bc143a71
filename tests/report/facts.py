"""A report to be shown, put together from a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from deltacheck.ledger.quality_log import Line
from deltacheck.migrate.status import RuleStatus
from deltacheck.quarantine.listing import Held
from deltacheck.report.facts import Report, report_of

NOW = datetime(2026, 3, 12, 12, tzinfo=timezone.utc)
TABLE = "shop.orders"


def day(number: int, hour: int = 6) -> datetime:
    """An hour of a day in March."""
    return datetime(2026, 3, number, hour, tzinfo=timezone.utc)


def batch(at: datetime, rows: int, bad: int | None = 0) -> Line:
    """A wrapped write."""
    state = "passed" if bad == 0 else "failed"
    return Line(at, "prod", TABLE, "batch", state, rows=rows, failed=bad, source="write")


def broken(at: datetime, rule: str, failed: int) -> Line:
    """A rule that rows of a wrapped write broke."""
    return Line(at, "prod", TABLE, "rule", "failed", rule=rule, failed=failed, source="write")


def checked(at: datetime, check: str, state: str, message: str = "", action: str = "fail") -> Line:
    """What a check said."""
    return Line(
        at, "prod", TABLE, "check", state, rule=check, message=message, action=action, owner="sales"
    )


def held(rows: int, days: int, *rules: str, state: str = "held", note: str = "") -> Held:
    """Quarantined rows."""
    came = NOW - timedelta(days=days)
    return Held(TABLE, f"{TABLE}_quarantine", rules, "write", "b", state, rows, came, came, 0, note)  # type: ignore[arg-type]


RULE = RuleStatus(TABLE, "amount_positive", "check", "amount > 0", "enforced", "check", "0001", 3)


def report(*lines: Line, waiting: Sequence[Held] = (), rules: Sequence[RuleStatus] = ()) -> Report:
    """The report of some lines."""
    return report_of("prod", NOW, rules=rules, lines=lines, held=waiting)


def shop() -> Report:
    """Ten days, one of them half a file."""
    lines = []
    for number in range(1, 11):
        rows = 50 if number == 6 else 100
        lines.append(batch(day(number, 5), rows, number % 3))
        if number % 3:
            lines.append(broken(day(number, 5), "amount_positive", number % 3))
        state = "failed" if number == 6 else "passed"
        lines.append(checked(day(number), "usual_day", state, f"row_count is {rows}"))
    waiting = (held(4, 0, "amount_positive"), held(6, 9, "amount_positive", "status_known"))
    return report(*lines, waiting=waiting, rules=(RULE,))
