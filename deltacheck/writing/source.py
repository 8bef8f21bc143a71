"""The source rows of a write of the user's own, held against the rules of its table.

Only the write itself knows what it makes of them. So they are judged as they came, by the rules
that can be evaluated on them. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame

from deltacheck.delta.failures import EngineFailure
from deltacheck.delta.table import read_definition
from deltacheck.rules.checks import BrokenShare
from deltacheck.rules.model import Action
from deltacheck.writing.judge import BatchRule, Ground, batch_rules
from deltacheck.writing.request import Request
from deltacheck.writing.seen import AS_IT_CAME
from deltacheck.writing.survey import Survey
from deltacheck.writing.verdict import Refusal, Verdict, judge_checked, judge_source, named_rule
from deltacheck.writing.watch import not_looked_at
from deltacheck.writing.whole import Whole

_INVARIANT = "EXPRESSION("
"""How Delta begins the name of an invariant that a column of an old table carries."""


def verdict_of_refusal(df: DataFrame, asked: Request, known: Survey, refusal: Refusal) -> Verdict:
    """Judge the source rows of a write that Delta has refused.

    Raises:
        DeltacheckError, PySparkException, Py4JJavaError: As for ``judge_source``; Delta's refusal,
            where it is of another table, too.
    """
    base, replaces = _ground(df, asked, known), refusal.violation.replaces
    if not _is_ours(refusal, base) or not (replaces is None or _resolves(df, replaces)):
        raise refusal.error
    return _as_far_as_can_be(
        base, asked, lambda ground: judge_source(df, ground, asked, known, refusal), refusal.error
    )


def verdict_of_checks(df: DataFrame, asked: Request, known: Survey, whole: Whole) -> Verdict:
    """Judge the source rows of a write that a check sends to quarantine before it is tried."""
    base = _ground(df, asked, known)
    return _as_far_as_can_be(base, asked, lambda ground: judge_checked(df, ground, whole))


def _ground(df: DataFrame, asked: Request, known: Survey) -> Ground:
    """What source rows are judged by: the rules that can be evaluated on them."""
    table = read_definition(df.sparkSession, asked.table)
    rules = batch_rules(known, table)
    judged = tuple(rule for rule in rules if _can_judge(df, rule))
    left = tuple(rule for rule in rules if rule not in judged)
    return Ground(table, AS_IT_CAME, judged, left)


def expressions(df: DataFrame, asked: Request, known: Survey) -> dict[str, str | None]:
    """Rule to its expression over the source rows, as far as a check asks for any.

    None: it cannot be evaluated on them.
    """
    if not any(isinstance(check.test, BrokenShare) for check in known.checks):
        return {}
    # Those too that wait for their migration.
    rules = {key: BatchRule(rule.name, rule.expression) for key, rule in known.declared.items()}
    table = read_definition(df.sparkSession, asked.table)
    rules |= {rule.name.lower(): rule for rule in batch_rules(known, table)}
    return {key: rule.sql if _can_judge(df, rule) else None for key, rule in rules.items()}


def _as_far_as_can_be(
    base: Ground,
    asked: Request,
    judge: Callable[[Ground], Verdict],
    final: BaseException | None = None,
) -> Verdict:
    """Judge source rows; where a rule cannot be evaluated, without warn rules, then without any.

    A column of the source may hold what a rule cannot read; the action makes something else of it.

    Args:
        final: What is raised in any case.
    """
    try:
        return judge(base)
    except EngineFailure as error:
        if error is final or not base.rules:
            raise
    if warned := tuple(rule for rule in base.rules if rule.action is Action.WARN):
        not_looked_at(asked.table, [rule.name for rule in warned])
        return _as_far_as_can_be(base.without(warned), asked, judge, final)
    return judge(replace(base, rules=(), unjudged=(*base.rules, *base.unjudged)))


def _is_ours(refusal: Refusal, base: Ground) -> bool:
    """Whether the rule that Delta named is one of the table's, as far as it named one.

    An action may write to other tables as well.
    """
    named = refusal.violation.constraint or refusal.violation.column
    if named is None or named.startswith(_INVARIANT):
        return True
    return base.rule(named_rule(refusal.violation, base)) is not None


def _can_judge(df: DataFrame, rule: BatchRule) -> bool:
    """Whether a batch has all columns that a rule reads, in types that it can be held against."""
    there = {name.lower() for name in df.columns}
    columns = rule.reads
    has_all = columns is not None and all(name.lower() in there for name in columns)
    return has_all and _resolves(df, rule.broken)


def _resolves(df: DataFrame, sql: str) -> bool:
    """Whether an expression can be evaluated on a batch, by its columns and their types."""
    try:
        return bool(df.selectExpr(sql).columns)
    except EngineFailure:
        return False
