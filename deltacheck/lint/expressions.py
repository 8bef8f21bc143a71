"""Lints about what an expression says: NULL, NaN, time, logic.

Each function looks at one constraint; its docstring is its page in ``docs/lint.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sqlglot import exp

from deltacheck.lint.facts import Fact, column_key, operand_key, parts_of
from deltacheck.lint.finding import Remark
from deltacheck.lint.subjects import Constraint, code, columns_of, literals, shown
from deltacheck.lint.truth import Outcome, is_null, outcomes
from deltacheck.rules.model import Kind

COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_FLOATS = ("float", "double", "real")
_INSTANTS = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)
_CLOCK_TIME = re.compile(r"\d{4}-\d{1,2}-\d{1,2}[ T]\d{1,2}:\d{1,2}.*")
_CLOCKS = (exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp, exp.CurrentTime)
_SHIFTED = (
    exp.Add,
    exp.Cast,
    exp.Paren,
    exp.StrToUnix,
    exp.Sub,
    exp.TimestampAdd,
    exp.TsOrDsAdd,
    exp.UnixSeconds,
)
_DAY = re.compile(r"^\s*\d{4,}(?:-\d{1,2}){0,2}")
_ZONE = re.compile(
    r"(?:[ ]?(?:Z|UTC|GMT|UT)|(?:[ ]?(?:UTC|GMT|UT))?[+-]\d{1,2}(?::?\d{2}){0,2}"
    r"|[ ]?[A-Za-z]+/[A-Za-z_/+-]+)$"
)


def null_violates(constraint: Constraint) -> Iterator[Remark]:
    """NULL counts as a violation.

    SQL lets a row pass a CHECK that is NULL; Delta refuses it, and so does deltacheck. A
    rule that says nothing about NULL therefore also says NOT NULL. (delta-rs up to python
    1.3.1 lets NULL pass.)

    Silent where the column has a NOT NULL rule, and where the expression itself speaks of
    NULL (`IS NULL`, `IS NOT NULL`, `<=>`, `coalesce`).

        check: amount > 0                          # refuses NULL, too
        check: amount IS NULL OR amount > 0        # allows it
        check: amount IS NOT NULL AND amount > 0   # says that it is meant
    """
    if constraint.kind is Kind.NOT_NULL or Outcome.TRUE not in outcomes(constraint.tree):
        return
    settled = {column_key(column) for column in _asked_for_null(constraint.tree)}
    settled |= constraint.never_null
    refused = list(
        dict.fromkeys(
            shown(column)
            for part in constraint.conjuncts
            for key, column in _in_every_alternative(part).items()
            if not settled & {key, *_parents(key)}
            if Outcome.TRUE not in outcomes(part, {key})
        )
    )
    if refused:
        names, first = " or ".join(refused), refused[0]
        yield Remark(
            f"A row with NULL in {names} breaks this rule.",
            f"Write {code(f'{first} IS NULL OR ...')} to allow it, or "
            f"{code(f'{first} IS NOT NULL AND ...')} (or a not_null rule) to say that it is meant.",
        )


def _in_every_alternative(part: exp.Expr) -> dict[str, exp.Expr]:
    """The columns that all sides of an OR speak of: only their NULL can make it untrue."""
    alternatives = [
        {column_key(column): column for column in columns_of(side)}
        for side in parts_of(part, exp.Or)
    ]
    common = set(alternatives[0]).intersection(*alternatives)
    return {key: column for key, column in alternatives[0].items() if key in common}


def _parents(key: str) -> Iterator[str]:
    return (key[:end] for end, char in enumerate(key) if char == ".")


def _asked_for_null(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The columns of which the expression asks whether they are NULL."""
    for node in tree.walk():
        asks = (
            (isinstance(node, exp.Is) and isinstance(node.expression, exp.Null))
            or isinstance(
                node,
                (exp.NullSafeEQ, exp.NullSafeNEQ, exp.EqualNull, exp.Coalesce, exp.Nvl2, exp.Case),
            )
            or (isinstance(node, exp.Anonymous) and node.name.lower() in ("isnull", "isnotnull"))
        )
        if asks:
            yield from columns_of(node)


def nan_passes(constraint: Constraint) -> Iterator[Remark]:
    """NaN passes a lower limit.

    Spark holds NaN greater than every number, so `amount > 0` is true for it.

    Silent where the operand has an upper limit (here or in another enforced rule) or is
    tested with `isnan`, and, where the table's column types are known, for columns that are
    neither FLOAT nor DOUBLE.

        check: ratio > 0                        # NaN passes
        check: ratio > 0 AND NOT isnan(ratio)   # it does not
    """
    limited = constraint.limited | constraint.limits
    tested = {operand_key(test.this) for test in constraint.tree.find_all(exp.IsNan)}
    columns = {column_key(column): column for column in columns_of(constraint.tree)}
    passed = [
        shown(columns[key])
        for key in _lower_limits(constraint.facts)
        if key in columns
        and key not in limited | tested
        and constraint.types.get(key, "double").lower() in _FLOATS
    ]
    if passed:
        yield Remark(
            f"If {' or '.join(passed)} is FLOAT or DOUBLE, NaN passes: Spark holds it greater than "
            "every number.",
            f"Add an upper limit or {code(f'AND NOT isnan({passed[0]})')}, if it can be NaN.",
        )


def _lower_limits(known: Iterable[Fact]) -> list[str]:
    limits = (
        fact.key
        for fact in known
        if fact.relation in (">", ">=") and fact.values[0].domain == "number"
    )
    return list(dict.fromkeys(limits))


def compares_with_null(constraint: Constraint) -> Iterator[Remark]:
    """A comparison with NULL.

    `x = NULL` and `x <> NULL` are NULL for every row, so the rule refuses rows that it was
    not meant to refuse, mostly all of them.

        check: cancelled_at = NULL     # never true
        check: cancelled_at IS NULL
    """
    for node in constraint.tree.find_all(*COMPARISONS):
        if is_null(node.this) or is_null(node.args["expression"]):
            yield Remark(
                f"{code(shown(node))} is NULL for every row, so it is never true.",
                "Write `IS NULL` or `IS NOT NULL`; `<=>` compares two columns that may be NULL.",
            )


def not_in_with_null(constraint: Constraint) -> Iterator[Remark]:
    """NOT IN a list that holds NULL.

    `x NOT IN (1, NULL)` is false for 1 and NULL for everything else: never true.

        check: status NOT IN ('deleted', NULL)   # refuses every row
        check: status IS NOT NULL AND status NOT IN ('deleted')
    """
    for node in _lists_with_null(constraint.tree, negated=True):
        yield Remark(
            f"{code(f'{shown(node.this)} NOT IN (..., NULL)')} is never true: comparing "
            "with NULL gives NULL.",
            "Take NULL out of the list; write `IS NOT NULL AND ...` where it is meant.",
        )


def null_in_list(constraint: Constraint) -> Iterator[Remark]:
    """NULL in an IN list.

    `x IN (1, NULL)` is true for 1 and NULL for everything else; a NULL in x is not found in
    the list, so the row breaks the rule all the same.

        check: status IN ('placed', NULL)          # refuses NULL
        check: status IS NULL OR status IN ('placed')
    """
    for node in _lists_with_null(constraint.tree, negated=False):
        name = shown(node.this)
        yield Remark(
            f"NULL in the list of {code(f'{name} IN (...)')} matches nothing: a row with NULL in "
            "it still breaks the rule.",
            f"Write {code(f'{name} IS NULL OR {name} IN (...)')} to allow NULL, or take it out.",
        )


def _lists_with_null(tree: exp.Expr, *, negated: bool) -> Iterator[exp.In]:
    for node in tree.find_all(exp.In):
        above = node.parent
        while isinstance(above, exp.Paren):
            above = above.parent
        holds_null = any(isinstance(item, exp.Null) for item in node.expressions)
        if holds_null and isinstance(above, exp.Not) == negated:
            yield node


def or_beside_and(constraint: Constraint) -> Iterator[Remark]:
    """OR beside AND without parentheses.

    AND binds tighter, which is not what everybody who reads `a OR b AND c` thinks.

        check: express OR amount > 10 AND paid
        check: express OR (amount > 10 AND paid)
    """
    for node in constraint.tree.find_all(exp.Or):
        if isinstance(node.this, exp.And) or isinstance(node.expression, exp.And):
            yield Remark(
                "OR stands beside AND without parentheses; AND binds tighter.",
                "Put parentheses around the part that belongs together.",
            )
            return


def timestamp_without_zone(constraint: Constraint) -> Iterator[Remark]:
    """A point in time without a time zone.

    `TIMESTAMP '2024-01-01 00:00:00'` is another instant in each session time zone, so two
    writers can read one constraint differently.

    Silent for TIMESTAMP_NTZ and for times with a zone.

        check: placed_at >= TIMESTAMP '2024-01-01 00:00:00'
        check: placed_at >= TIMESTAMP '2024-01-01 00:00:00Z'
    """
    for text in _times(constraint):
        if not _ZONE.search(_DAY.sub("", text)):
            yield Remark(
                f"'{text}' is another instant in each session time zone.",
                f"Write the zone: '{text if ':' in text else text + ' 00:00:00'}Z' for UTC.",
            )


def _times(constraint: Constraint) -> Iterator[str]:
    for cast in constraint.tree.find_all(exp.Cast):
        text = isinstance(cast.this, exp.Literal) and cast.this.is_string
        if text and cast.is_type(*_INSTANTS):
            yield cast.this.name
    for node in constraint.tree.find_all(*COMPARISONS, exp.Between):
        operands = list(node.iter_expressions())
        keys = {key for one in operands if (key := column_key(one))}
        types = {constraint.types.get(key, "timestamp").lower() for key in keys}
        for one in operands:
            if isinstance(one, exp.Literal) and one.is_string and types == {"timestamp"}:
                known = any(key in constraint.types for key in keys)
                if known or _CLOCK_TIME.fullmatch(one.name):
                    yield one.name


def uses_clock(constraint: Constraint) -> Iterator[Remark]:
    """The rule asks for the current date or time.

    It is judged anew on every write, so a row that was good can break it later, and
    rewriting old files (UPDATE, MERGE, OPTIMIZE) then fails.

    Silent where time can only make the rule true, and for `warn` rules, which Delta does
    not hold old rows against.

        check: expires_on > current_date()   # turns false on its own
        check: placed_on <= current_date()   # stays true: nothing to say
    """
    if not constraint.enforced or not constraint.expression.uses_clock:
        return
    clocks = sum(1 for _ in _clocks(constraint.tree))
    harmless = sum(1 for part in constraint.conjuncts if _grows_true(part))
    if clocks != harmless:
        yield Remark(
            "The rule depends on the current date or time: rows that were good can break it "
            "later, and OPTIMIZE or MERGE then fails on them.",
            "Compare with a column that holds the time of writing.",
        )


def _clocks(tree: exp.Expr) -> Iterator[exp.Expr]:
    for node in tree.find_all(*_CLOCKS, exp.Anonymous):
        if not isinstance(node, exp.Anonymous) or node.name.lower() in ("now", "getdate"):
            yield node


def _grows_true(part: exp.Expr) -> bool:
    """Whether a comparison with one clock stays true once it is."""
    if isinstance(part, (exp.LT, exp.LTE)):
        late = part.args["expression"]
    elif isinstance(part, (exp.GT, exp.GTE)):
        late = part.this
    else:
        return False
    while isinstance(late, _SHIFTED):
        late = late.this
    clocks = list(_clocks(part))
    return clocks == [late] and not isinstance(late, exp.CurrentTime)


def doubled_quote(constraint: Constraint) -> Iterator[Remark]:
    """A doubled single quote in a string.

    `'it''s'` is one string only to Spark 4. Spark 3 and the parser of ALTER TABLE ADD
    CONSTRAINT read two strings, `'it'` and `'s'`, and join them to `its`. deltacheck stores
    `'it\\'s'` in its place; whoever copies the text by hand does not.

        check: note <> 'it''s'
        check: note <> 'it\\'s'
    """
    for text in literals(constraint.text):
        if text[0] in "'\"" and text[0] * 2 in text[1:-1]:
            plain = text[1:-1].replace(text[0] * 2, "\\" + text[0])
            yield Remark(
                f"{text} reads otherwise in ALTER TABLE and in Spark 3: as two strings.",
                f"Write {text[0]}{plain}{text[0]}.",
            )


def never_holds(constraint: Constraint) -> Iterator[Remark]:
    """The rule is true for no row.

    Every row of the table would be a violator.

        check: amount > 100 AND amount < 10
        check: amount > 10 AND amount < 100
    """
    specific = (compares_with_null, not_in_with_null)
    if any(True for look in specific for _ in look(constraint)):
        return
    if Outcome.TRUE not in outcomes(constraint.tree):
        yield Remark(
            "The rule is true for no row: its parts contradict each other.",
            "Correct a limit, or put OR in place of AND.",
        )


def always_holds(constraint: Constraint) -> Iterator[Remark]:
    """The rule refuses nothing, or nothing but NULL.

    Mostly an OR that should have been AND.

        check: status <> 'lost' OR status <> 'stolen'    # true for every status
        check: status <> 'lost' AND status <> 'stolen'
    """
    if constraint.kind is Kind.NOT_NULL or any(
        True for _ in _lists_with_null(constraint.tree, negated=False)
    ):
        return
    found = outcomes(constraint.tree)
    if Outcome.FALSE not in found and Outcome.TRUE in found:
        if Outcome.NULL in found:
            yield Remark(
                "The rule refuses nothing but NULL: it is true for every other row.",
                "Correct a limit, or put AND in place of OR; write not_null where that is all.",
            )
        else:
            yield Remark(
                "The rule refuses nothing: it is true for every row.",
                "Correct a limit, or put AND in place of OR; or delete the rule.",
            )
