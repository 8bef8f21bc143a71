"""Rules against a running table: does Spark accept them, and how many rows break them.

The predicate has the shape that lets Delta skip files, and stands in the WHERE, so that a
file whose statistics prove it clean is not read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import BooleanType

from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.delta.table import Definition, at_version, count_rows
from deltacheck.errors import ExpressionError
from deltacheck.names import TableName
from deltacheck.rules.expression import Expression, parse_rule, violator_predicate


@dataclass(frozen=True)
class Violators:
    """How many rows of a table break some rules, at one version.

    Attributes:
        rows: All rows of the table.
        any: Rows that break at least one of the rules.
        false: Rule name to rows for which it is false.
        null: Rule name to rows for which it is NULL.
        groups: Group name to rows that break at least one rule of the group.
    """

    version: int
    rows: int
    any: int
    false: Mapping[str, int]
    null: Mapping[str, int]
    groups: Mapping[str, int]

    def of(self, rule: str) -> int:
        """Rows that break one rule."""
        return self.false[rule] + self.null[rule]


def violators_of(rules: Mapping[str, str]) -> dict[str, str]:
    """Rule name to the predicate of its violators, from rule name to expression."""
    return {name: violator_predicate(parse_rule(text)) for name, text in rules.items()}


def any_violator(rules: Mapping[str, str]) -> str:
    """The predicate of the rows that break at least one rule, from rule name to expression."""
    return violator_predicate(*map(parse_rule, rules.values()))


UNTOLD = "spark_partition_id() >= 0"
"""A condition that always holds, which Spark does not know."""


def as_written(sql: str, otherwise: str, always: str = UNTOLD) -> str:
    """SQL for a value whose parts are evaluated in the order in which they are written.

    What occurs twice in a projection or in its aggregates is else computed first, even behind a
    guard that keeps it from failing: `a = 0 OR 10 DIV a > 1` beside another rule with `10 DIV a`
    would end in a division by zero, where Delta, which checks rules one by one, takes the row.
    Spark spares what stands behind a condition (`EquivalentExpressions`). Where the session is
    ours, ``REPEATED_FIRST`` is off instead; a job's session is shared with other threads.

    Args:
        otherwise: What the value is where it is NULL.
        always: A condition that always holds, which Spark does not know; an aggregate takes
            none but one that is deterministic.
    """
    return f"coalesce(CASE WHEN {always} THEN {sql} END, {otherwise})"


def count_violators(
    session: SparkSession,
    table: TableName,
    version: int,
    rules: Mapping[str, str],
    groups: Mapping[str, Collection[str]] | None = None,
) -> Violators:
    """Count, in one pass, the rows that break each of some rules.

    Args:
        version: The version to read.
        rules: Rule name to expression; at least one.
        groups: Group name to rule names whose union is wanted.

    Raises:
        ExpressionError: A rule cannot be evaluated on some row.
    """
    stored = {name: parse_rule(text).stored for name, text in rules.items()}
    wrong = {name: f"({expression}) IS NOT TRUE" for name, expression in stored.items()}
    wanted = ["count(*)"]
    for name, expression in stored.items():
        wanted += [f"count_if({wrong[name]})", f"count_if(({expression}) IS NULL)"]
    unions = dict(groups or {})
    for members in unions.values():
        wanted.append("count_if(" + " OR ".join(wrong[name] for name in members) + ")")
    listed = ", ".join(f"{sql} AS c{place}" for place, sql in enumerate(wanted))
    # Only rows that break a rule reach the counters.
    query = f"SELECT {listed} FROM {at_version(table, version)} WHERE {any_violator(rules)}"
    try:
        found = [int(value) for value in session.sql(query).collect()[0]]
    except EngineFailure as error:
        raise _cannot_evaluate(error, table, list(rules)) from None
    both = found[1 : 1 + 2 * len(rules)]
    nulls = dict(zip(rules, both[1::2], strict=True))
    totals = dict(zip(rules, both[0::2], strict=True))
    return Violators(
        version=version,
        rows=count_rows(session, table, version),
        any=found[0],
        false={name: total - nulls[name] for name, total in totals.items()},
        null=nulls,
        groups=dict(zip(unions, found[1 + 2 * len(rules) :], strict=True)),
    )


def _cannot_evaluate(error: BaseException, table: TableName, rules: list[str]) -> ExpressionError:
    failure = failure_of(error)
    named = rules[0] if len(rules) == 1 else None
    return ExpressionError(
        f"The {'rule' if len(rules) == 1 else 'rules'} {', '.join(rules)} cannot be evaluated "
        f"on every row of {table}: Spark says {failure.condition or failure.kind}. Nothing was "
        "moved.",
        hint="Write the rule so that it is true or false for every row, for example with "
        "try_cast instead of cast.",
        table=str(table),
        rule=named,
    )


def check_rules(session: SparkSession, table: Definition, rules: Mapping[str, str]) -> None:
    """Have Spark analyse rules against the table's columns; reads no row.

    Args:
        rules: Rule name to expression.

    Raises:
        ExpressionError: A rule names a column or function that is not there, or is not
            boolean.
    """
    built_in: frozenset[str] | None = None
    for name, text in rules.items():
        expression = parse_rule(text, table=str(table.name), rule=name)
        _check_type(session, table, name, expression)
        if expression.functions:
            built_in = built_in or _built_in_functions(session)
            own = sorted(f for f in expression.functions if f.lower() not in built_in)
            if own:
                raise ExpressionError(
                    f"The rule {name} of {table.name} calls {own[0]}, a function of this session "
                    "that other writers do not have; nothing was changed.",
                    hint="Use Spark's built-in functions in rules.",
                    table=str(table.name),
                    rule=name,
                )


def _check_type(
    session: SparkSession, table: Definition, name: str, expression: Expression
) -> None:
    rows = session.table(table.name.sql)
    try:
        # WHERE refuses aggregates and window functions, SELECT tells the type.
        rows.where(expression.stored).schema  # noqa: B018
        dtype = rows.selectExpr(expression.stored).schema.fields[0].dataType
    except EngineFailure as error:
        failure = failure_of(error)
        what = failure.parameters.get("objectName") or failure.parameters.get("routineName")
        subject = f" ({what})" if what else ""
        raise ExpressionError(
            f"The rule {name} cannot be understood on {table.name}: Spark says "
            f"{failure.condition or failure.kind}{subject}. Nothing was changed.",
            hint=f"The table has the columns {_few(table.schema.names)}.",
            table=str(table.name),
            rule=name,
        ) from None
    if not isinstance(dtype, BooleanType):
        raise ExpressionError(
            f"The rule {name} of {table.name} is of type {dtype.simpleString()}, not boolean; "
            "nothing was changed.",
            hint="Write a comparison that is true for every good row.",
            table=str(table.name),
            rule=name,
        )


def _few(names: list[str], most: int = 12) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _built_in_functions(session: SparkSession) -> frozenset[str]:
    rows = session.sql("SHOW SYSTEM FUNCTIONS").collect()
    return frozenset(row[0].lower().rsplit(".", 1)[-1] for row in rows)
