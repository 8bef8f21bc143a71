"""A report to be shown, put together from a few lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from deltacheck.ledger.journal import Run, Touched
from deltacheck.ledger.quality_log import Line
from deltacheck.migrate.status import RuleStatus
from deltacheck.names import TableName
from deltacheck.quarantine.listing import Held
from deltacheck.report.facts import Report, report_of

NOW = datetime(2026, 3, 12, 12, tzinfo=timezone.utc)
TABLE = "shop.orders"


def day(number: int, hour: int = 6) -> datetime:
    """An hour of a day in March."""
    return datetime(2026, 3, number, hour, tzinfo=timezone.utc)


def batch(at: datetime, rows: int, bad: int = 0, *, stopped: str | None = None) -> Line:
    """A wrapped write, or one that was stopped, and why."""
    state = "failed" if bad or stopped else "passed"
    return Line(
        at,
        "prod",
        TABLE,
        "batch",
        state,
        rows=rows,
        failed=bad,
        source="write",
        run=f"{at}",
        message=stopped,
    )


def unread(at: datetime, why: str | None) -> Line:
    """How far a table's history was read, and what it no longer told."""
    return Line(at, "prod", TABLE, "harvest", "done", message=why)


def broken(at: datetime, rule: str, failed: int, action: str = "quarantine") -> Line:
    """A rule that rows of a wrapped write broke."""
    return Line(
        at,
        "prod",
        TABLE,
        "rule",
        "failed",
        rule=rule,
        failed=failed,
        source="write",
        action=action,
    )


def counted(at: datetime, rule: str, failed: int, rows: int) -> Line:
    """A rule that Delta does not enforce, counted by a run of checks."""
    return Line(
        at, "prod", TABLE, "rule", "failed", rule=rule, rows=rows, failed=failed, source="check"
    )


def checked(at: datetime, check: str, state: str, message: str = "", action: str = "fail") -> Line:
    """What a check said."""
    return Line(
        at,
        "prod",
        TABLE,
        "check",
        state,
        rule=check,
        expression="trend: row_count",
        message=message,
        action=action,
        source="check",
        run=at.isoformat(),
        owner="sales",
    )


def held(rows: int, days: int, *rules: str, state: str = "held", note: str = "") -> Held:
    """Quarantined rows."""
    came = NOW - timedelta(days=days)
    return Held(TABLE, f"{TABLE}_quarantine", rules, "write", "b", state, rows, came, came, 0, note)  # type: ignore[arg-type]


RULE = RuleStatus(TABLE, "amount_positive", "check", "amount > 0", "enforced", "check", "0001", 3)


def report(
    *lines: Line,
    waiting: Sequence[Held] = (),
    rules: Sequence[RuleStatus] = (),
    runs: Sequence[Run] = (),
    problems: Mapping[str, str] | None = None,
    days: int = 30,
) -> Report:
    """The report of some lines."""
    return report_of(
        "prod",
        NOW,
        rules=rules,
        lines=lines,
        held=waiting,
        runs=runs,
        problems=problems,
        days=days,
    )


UPGRADE = Run(
    1, "r1", "upgrade", "ci", NOW, NOW, "done", (Touched(TableName.parse(TABLE), 3),), ("0001",)
)


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
    return report(*lines, waiting=waiting, rules=(RULE,), runs=(UPGRADE,))


def crowded() -> Report:
    """Sixty days of forty rules and ten checks, all of whose names are as long as can be."""
    names = [
        f"a_rule_with_a_name_that_does_not_end_{number:02}_{'x' * 200}" for number in range(40)
    ]
    table = f"{'catalog' * 9}.{'schema' * 9}.{'orders' * 30}"
    states = ("enforced", "pending", "drifted", "unmanaged", "warn")
    rules = [
        RuleStatus(
            table,
            name,
            "check",
            " OR ".join(f"{'column' * 20} = {value}" for value in range(number + 1)),
            states[number % 5],  # type: ignore[arg-type]
            "check",
            "0001",
            10**12,
            note="dropped by another tool in version 7",
        )
        for number, name in enumerate(names)
    ]
    lines: list[Line] = []
    for number in range(60):
        at = NOW - timedelta(days=number)
        lines.append(batch(at, 10**12 + number, 10**11))
        lines += [broken(at, name, 10**10 + number) for name in names[:10]]
        state = ("passed", "failed", "unjudged")[number % 3]
        lines += [checked(at, name, state, "figures " * 30) for name in names[:10]]
    told = [replace(line, table=table) for line in lines]
    waiting = [replace(held(10**12, days, *names), table=table) for days in (0, 3, 20, 90)]
    return report(*told, waiting=waiting, rules=rules, runs=(UPGRADE,) * 30, days=60)
