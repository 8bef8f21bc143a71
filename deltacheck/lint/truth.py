"""What an expression can come out as, whatever the rows hold: true, false, NULL.

Answers may name outcomes that never happen, but leave out none that does: what is said to
hold never, or always, does. Knows SQL's three-valued logic; knows nothing of types, rows or
Spark.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from itertools import product

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

from deltacheck.lint.facts import column_key, contradict, facts, parts_of


class Outcome(Enum):
    """One truth value of SQL."""

    TRUE = True
    FALSE = False
    NULL = None


T, F, N = Outcome.TRUE, Outcome.FALSE, Outcome.NULL
ANY = frozenset((T, F, N))
KNOWN = frozenset((T, F))

_NEGATED = {T: F, F: T, N: N}

# What is not NULL only because an argument is: everything else in Spark's SQL that takes a
# NULL gives one.
_KEEPS_NO_NULL = (
    exp.Array,
    exp.ArraySize,
    exp.Case,
    exp.Coalesce,
    exp.ConcatWs,
    exp.DecodeCase,
    exp.EqualNull,
    exp.Greatest,
    exp.If,
    exp.IsNan,
    exp.JSONFormat,
    exp.Least,
    exp.Map,
    exp.Nvl2,
    exp.Nullif,
    exp.Struct,
    exp.ToMap,
    exp.Typeof,
)
_PASSES_NULL = (exp.Binary, exp.Neg, exp.Cast, exp.Func, exp.Extract)


def outcomes(tree: exp.Expr, nulls: Collection[str] = ()) -> frozenset[Outcome]:
    """What a boolean expression can come out as.

    >>> from sqlglot import parse_one
    >>> sorted(one.name for one in outcomes(parse_one("a > 5 AND a < 3")))
    ['FALSE', 'NULL']

    Args:
        tree: The expression.
        nulls: Columns that are NULL, as ``column_key`` gives them.
    """
    if isinstance(tree, exp.Paren):
        return outcomes(tree.this, nulls)
    if isinstance(tree, exp.Boolean):
        return frozenset((T if tree.this else F,))
    if is_null(tree, nulls):
        return frozenset((N,))
    if isinstance(tree, exp.Not):
        return frozenset(_NEGATED[one] for one in outcomes(tree.this, nulls))
    if isinstance(tree, (exp.And, exp.Or)):
        return _connected(tree, nulls)
    if isinstance(tree, exp.Is):
        return _is(tree, nulls)
    if isinstance(tree, exp.In):
        return _in(tree)
    if isinstance(tree, (exp.NullSafeEQ, exp.NullSafeNEQ, exp.IsNan, exp.EqualNull)):
        return KNOWN
    if isinstance(tree, (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)):
        return _constant(tree)
    if isinstance(tree, exp.Coalesce):
        return _coalesced(tree, nulls)
    if isinstance(tree, exp.Between):
        return ANY - {T} if contradict(facts(tree)) else ANY
    return ANY


def is_null(tree: exp.Expr, nulls: Collection[str] = ()) -> bool:
    """Whether a value, or a truth value, is certainly NULL when ``nulls`` are."""
    if isinstance(tree, exp.Null):
        return True
    if isinstance(tree, exp.Paren):
        return is_null(tree.this, nulls)
    if key := column_key(tree):
        return any(key == one or key.startswith(f"{one}.") for one in nulls)
    if isinstance(tree, (exp.And, exp.Or, exp.Not, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ)):
        return False
    if isinstance(tree, (exp.Between, exp.In)):
        return is_null(tree.this, nulls)
    if isinstance(tree, (exp.Bracket, exp.Dot)):
        return is_null(tree.this, nulls)
    if isinstance(tree, (exp.Anonymous, *_KEEPS_NO_NULL)):
        return False
    if isinstance(tree, _PASSES_NULL):
        return any(is_null(child, nulls) for child in tree.iter_expressions())
    return False


def _connected(tree: exp.And | exp.Or, nulls: Collection[str]) -> frozenset[Outcome]:
    # In a conjunction F wins over N and N over T; in a disjunction it is the other way round.
    strongest, weakest = (F, T) if isinstance(tree, exp.And) else (T, F)
    parts = list(parts_of(tree, type(tree)))
    found = frozenset((weakest,))
    for part in parts:
        found = frozenset(
            strongest if strongest in pair else N if N in pair else weakest
            for pair in product(found, outcomes(part, nulls))
        )
    if weakest in found and contradict(
        fact for part in parts for fact in facts(part, holds=isinstance(tree, exp.And))
    ):
        found -= {weakest}
    return found


def conjuncts(tree: exp.Expr) -> tuple[exp.Expr, ...]:
    """The parts that must all be true."""
    return tuple(parts_of(tree, exp.And))


def _is(tree: exp.Is, nulls: Collection[str]) -> frozenset[Outcome]:
    wanted = tree.expression
    if isinstance(wanted, exp.Null):
        if is_null(tree.this, nulls):
            return frozenset((T,))
        return frozenset((F,)) if isinstance(tree.this, (exp.Literal, exp.Boolean)) else KNOWN
    if isinstance(wanted, exp.Boolean):
        truth = T if wanted.this else F
        return frozenset(T if one is truth else F for one in outcomes(tree.this, nulls))
    return KNOWN


def _in(tree: exp.In) -> frozenset[Outcome]:
    if any(isinstance(item, exp.Null) for item in tree.expressions):
        return frozenset((T, N))
    return ANY


def _constant(tree: exp.Expr) -> frozenset[Outcome]:
    if tree.find(exp.Column, exp.Func):
        return ANY
    folded = simplify(tree.copy(), dialect="spark")
    if isinstance(folded, exp.Boolean):
        return frozenset((T if folded.this else F,))
    return ANY


def _coalesced(tree: exp.Coalesce, nulls: Collection[str]) -> frozenset[Outcome]:
    found: frozenset[Outcome] = frozenset()
    for part in (tree.this, *tree.expressions):
        possible = outcomes(part, nulls)
        found |= possible - {N}
        if N not in possible:
            return found
    return found | {N}
