"""What a batch's broken rules mean for it: stop, quarantine it whole, or split it by rows.

The batch is judged once and pinned with its judgement, so that a batch that would be
computed otherwise a second time cannot put a row into two places or into none. Writes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from deltacheck.delta.failures import Violation
from deltacheck.errors import FailRuleError, GateError
from deltacheck.names import literal, quote
from deltacheck.quality.batch import BatchResult
from deltacheck.quarantine import layout as own
from deltacheck.rules.model import Action, Gate
from deltacheck.writing.judge import IS_BROKEN, OUTSIDE, BatchRule, Counts, Ground, breaks, judged
from deltacheck.writing.request import Request
from deltacheck.writing.survey import Survey
from deltacheck.writing.whole import Whole, check_whole


@dataclass(frozen=True)
class Refusal:
    """Delta's refusal of a batch.

    Attributes:
        error: What was raised.
    """

    error: BaseException
    violation: Violation


@dataclass(frozen=True)
class Verdict:
    """A judged batch.

    Attributes:
        rows: The pinned batch as it came, with the names of the rules that each row broke; NULL
            where it broke none.
        fate: ``clean``: no row is bad, or Delta is to refuse them in its own words; ``batch``:
            all rows go to quarantine; ``rows``: each goes where it belongs.
        rule: The rule that Delta named, as declared, or the check for which the batch is
            quarantined, or None.
        checked: What each check of the batch as a whole says.
    """

    ground: Ground
    rows: DataFrame
    counts: Counts
    fate: Literal["clean", "batch", "rows"]
    rule: str | None
    checked: tuple[BatchResult, ...] = ()

    @property
    def good(self) -> DataFrame:
        """The rows that are to be written, as they came."""
        if self.fate == "clean":
            return self.rows.drop(own.RULES, OUTSIDE)
        return _only(self.rows, _is_good(self.ground.rules))

    @property
    def bad(self) -> DataFrame:
        """The rows that go to quarantine, with the names of the rules that they broke."""
        if self.fate == "batch":
            return self.rows.drop(OUTSIDE)
        return self.rows.where(_has(self.ground.rules, Action.QUARANTINE)).drop(OUTSIDE)

    @property
    def broken(self) -> dict[str, int]:
        """Rule to the rows that broke it."""
        return dict(self.counts.broken or {})


def reach_verdict(
    df: DataFrame, base: Ground, asked: Request, known: Survey, refusal: Refusal | None
) -> Verdict:
    """Judge a batch, pin it, and decide its fate.

    Args:
        refusal: Delta's refusal, where it was tried.

    Raises:
        FailRuleError: A row breaks a ``fail`` rule.
        GateError: More rows are bad than a gate allows.
        CheckError: The batch as a whole fails a check that says stop.
        PySparkException, Py4JJavaError: Delta's refusal, where it is a fault of the job and not
            of its rows; or what a rule raises that cannot be evaluated.
    """
    replaces = None if refusal is None else refusal.violation.replaces
    pinned = pin(judged(df, base.seen, base.rules, replaces))
    counts = count(pinned, base.rules, outside=replaces is not None)
    rule = None if refusal is None else named_rule(refusal.violation, base)
    if refusal is not None and _is_fault(refusal, base, counts):
        raise refusal.error
    # The batch's checks have their say first, since Delta takes a batch without rows.
    faulty = any(rule.name in (counts.broken or {}) for rule in base.lacking)
    if not faulty:
        _stop(pinned, base, asked, known, counts, rule)
    whole = check_whole(pinned, counts, base, asked, known)
    if whole.quarantined_by is not None:
        return Verdict(base, pinned, counts, "batch", whole.quarantined_by, whole.results)
    # A fault of the job: Delta's own words for it are best.
    fate = "clean" if faulty else _fate(base, asked, counts, rule)
    return Verdict(base, pinned, counts, fate, rule, whole.results)


def judge_source(
    df: DataFrame, base: Ground, asked: Request, known: Survey, refusal: Refusal
) -> Verdict:
    """Judge the source rows of a write that Delta has refused, each by itself.

    Rules that ``base`` leaves unjudged are broken by what the write makes of the rows.

    Raises:
        FailRuleError: Delta named a ``fail`` rule, or a row breaks one.
        GateError: More rows are bad than a gate allows.
        PySparkException, Py4JJavaError: Delta's refusal, where it is a fault of the job, or
            where there is no row that could be quarantined.
    """
    replaces = refusal.violation.replaces
    pinned = pin(judged(df, base.seen, base.rules, replaces))
    counts = count(pinned, base.rules, outside=replaces is not None)
    untold = not refusal.violation.certain and not counts.bad
    if not counts.rows or counts.outside or untold:
        raise refusal.error
    rule = named_rule(refusal.violation, base)
    _stop(pinned, base, asked, known, counts, rule, source=True)
    if asked.route == "batch" or not counts.bad:
        return Verdict(base, pinned, counts, "batch", rule)
    too_many = asked.max_bad is not None and not asked.max_bad.allows(counts.bad, counts.rows)
    return Verdict(base, pinned, counts, "batch" if too_many else "rows", rule)


def pin(rows: DataFrame) -> DataFrame:
    """Rows that the first action on them computes, once and for all.

    What is lost of them afterwards is an error, where a cache would compute it anew
    (`RDD.localCheckpoint`). On disk, since in memory they crowd out the job and take longer.
    """
    return rows.localCheckpoint(eager=False, storageLevel=StorageLevel.DISK_ONLY)


def judge_checked(df: DataFrame, base: Ground, whole: Whole) -> Verdict:
    """Judge the source rows of a write that a check sends to quarantine before it is tried.

    Raises:
        PySparkException, Py4JJavaError: What a rule raises that cannot be evaluated.
    """
    pinned = pin(judged(df, base.seen, base.rules))
    counts = count(pinned, base.rules, outside=False)
    return Verdict(base, pinned, counts, "batch", whole.quarantined_by, whole.results)


def count(pinned: DataFrame, rules: Iterable[BatchRule], *, outside: bool) -> Counts:
    """Count the rows of a judged batch, in one pass, which computes them."""
    listed = list(rules)
    wanted = ["count(*)"]
    for action in (Action.FAIL, Action.QUARANTINE, Action.DROP):
        wanted.append(f"count_if({_has(listed, action)})")
    wanted.append(f"count_if({quote(OUTSIDE)})" if outside else "0L")
    wanted += [f"count_if({breaks(rule.name)})" for rule in listed]
    found = [int(value) for value in pinned.selectExpr(*wanted).collect()[0]]
    broken = {rule.name: rows for rule, rows in zip(listed, found[5:], strict=True) if rows}
    rows, fail, quarantine, drop, beyond = found[:5]
    return Counts(rows, fail, quarantine, drop, beyond, broken)


def named_rule(violation: Violation, base: Ground) -> str | None:
    """The rule that Delta named, as declared; a column's NOT NULL by the name of its rule."""
    if violation.constraint is not None:
        found = base.rule(violation.constraint)
        return violation.constraint if found is None else found.name
    if violation.column is None:
        return None
    wanted = violation.column.lower()
    for rule in (*base.rules, *base.unjudged):
        if rule.column is not None and ".".join(rule.column).lower() == wanted:
            return rule.name
    return violation.column.replace(".", "_") + "_not_null"


def _is_fault(refusal: Refusal, base: Ground, counts: Counts) -> bool:
    """Whether Delta refused the batch for a fault of the job, not of its rows."""
    untold = not refusal.violation.certain and not counts.bad and not base.unjudged
    return base.lacks_mandatory or counts.outside > 0 or untold


def _stop(
    pinned: DataFrame,
    base: Ground,
    asked: Request,
    known: Survey,
    counts: Counts,
    rule: str | None,
    *,
    source: bool = False,
) -> None:
    """Stop where a rule or a gate says so.

    Args:
        source: Whether the rows are only the source of what Delta refused, so that none of
            them need break the rule that it named.
    """
    _stop_failed(pinned, base, asked, counts, rule, source)
    for limited in base.rules:
        broken = (counts.broken or {}).get(limited.name, 0)
        if limited.gate is not None and not limited.gate.allows(broken, counts.rows):
            by, rows = {limited.name: broken}, _offending(pinned, breaks(limited.name))
            raise _gate(asked, limited.gate, limited.name, by, broken, counts, rows)
    if known.gate is not None and not known.gate.allows(counts.bad, counts.rows):
        where = f"NOT ({_is_good(base.rules)})"
        kept = {rule.name for rule in base.rules if rule.action is not Action.WARN}
        by = {name: rows for name, rows in (counts.broken or {}).items() if name in kept}
        raise _gate(asked, known.gate, None, by, counts.bad, counts, _offending(pinned, where))


def _stop_failed(
    pinned: DataFrame,
    base: Ground,
    asked: Request,
    counts: Counts,
    rule: str | None,
    source: bool,
) -> None:
    failed = [r for r in base.rules if r.action is Action.FAIL and r.name in (counts.broken or {})]
    named = base.rule(rule)
    told = named is not None and (source or named in base.unjudged)
    if told and named is not None and named.action is Action.FAIL and named not in failed:
        failed.append(named)
    if failed:
        first = failed[0].name
        some = _rows(counts.fail) if counts.fail else "Some rows"
        raise FailRuleError(
            f"{some} of {counts.rows} of a batch for {asked.table} break "
            f"{', '.join(r.name for r in failed)}, which must not be broken; nothing was written "
            "or quarantined.",
            hint="The error's rows(limit) gives them.",
            table=str(asked.table),
            rule=first,
            violators=counts.fail,
            rows=counts.rows,
            offending=_offending(pinned, _has(base.rules, Action.FAIL)),
            by={one.name: (counts.broken or {}).get(one.name, 0) for one in failed},
            broken=counts.broken,
            bad=counts.bad,
        )


def _gate(
    asked: Request,
    gate: Gate,
    rule: str | None,
    by: Mapping[str, int],
    bad: int,
    counts: Counts,
    offending: Callable[[int], list[Any]],
) -> GateError:
    what = "are bad" if rule is None else f"break {rule}"
    return GateError(
        f"{_rows(bad)} of {counts.rows} of a batch for {asked.table} {what}, more than the gate "
        f"{gate}; nothing was written or quarantined.",
        hint="The error's rows(limit) gives them; a larger gate lets the batch pass.",
        table=str(asked.table),
        rule=rule,
        violators=bad,
        rows=counts.rows,
        offending=offending,
        by=by,
        broken=counts.broken,
        bad=counts.bad,
    )


def _rows(number: int) -> str:
    return f"{number} row" if number == 1 else f"{number} rows"


def _offending(pinned: DataFrame, where: str) -> Callable[[int], list[Any]]:
    return lambda limit: pinned.where(where).drop(OUTSIDE).limit(limit).collect()


def _fate(
    base: Ground, asked: Request, counts: Counts, rule: str | None
) -> Literal["clean", "batch", "rows"]:
    named = base.rule(rule)
    if named is not None and named in base.unjudged:
        # Nobody but Delta can tell which rows break it.
        return "batch"
    if not counts.bad:
        return "clean"
    if not counts.quarantine:
        return "rows"
    if asked.route == "batch":
        return "batch"
    too_many = asked.max_bad is not None and not asked.max_bad.allows(counts.bad, counts.rows)
    return "batch" if too_many else "rows"


def _names(rules: Iterable[BatchRule], *actions: Action) -> str:
    listed = [literal(rule.name) for rule in rules if rule.action in actions]
    if not listed:
        return "false"
    return f"({IS_BROKEN} AND arrays_overlap({quote(own.RULES)}, array({', '.join(listed)})))"


def _has(rules: Iterable[BatchRule], action: Action) -> str:
    """SQL for the rows whose fate an action is: fail before quarantine before drop."""
    listed = list(rules)
    order = (Action.FAIL, Action.QUARANTINE, Action.DROP)
    stronger = order[: order.index(action)]
    return f"({_names(listed, action)} AND NOT {_names(listed, *stronger)})"


def _is_good(rules: Iterable[BatchRule]) -> str:
    return f"NOT {_names(rules, Action.FAIL, Action.QUARANTINE, Action.DROP)}"


def _only(rows: DataFrame, where: str) -> DataFrame:
    return rows.where(where).drop(own.RULES, OUTSIDE)
