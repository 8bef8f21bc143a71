"""All rules on all rows of a batch, once.

Each row gets the names of the rules that it breaks, in Delta's own sense: a rule is broken
unless it is true. Rules are evaluated under the settings of the writer's session, as Delta
does. Knows nothing of what becomes of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from deltacheck.delta.failures import LENGTH_RULE
from deltacheck.delta.table import Definition, read_definition
from deltacheck.delta.violators import as_written
from deltacheck.errors import ExpressionError, UsageError
from deltacheck.names import literal, quote
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.place import NO_RULES, broken_rules
from deltacheck.quarantine.today import (
    declared_not_null,
    length_rule,
    not_null_name,
    not_null_path,
)
from deltacheck.rules.expression import parse_rule, same_rule
from deltacheck.rules.model import Action, Gate, Rule
from deltacheck.writing.request import Request, Rules, request
from deltacheck.writing.seen import AS_IT_CAME, BATCH, Seen, seen_by, view
from deltacheck.writing.survey import Survey, survey

NO_NAMES = "CAST(NULL AS array<string>)"
"""SQL for what a good row has for the names of the rules that it breaks."""

IS_BROKEN = f"({quote(own.RULES)} IS NOT NULL)"
"""SQL that is true for the judged rows that break a rule, a warn rule too, else false."""

OUTSIDE = "_deltacheck_outside"
"""Whether a row is not among those that the batch replaces."""


@dataclass(frozen=True)
class BatchRule:
    """A rule as a batch is judged by it.

    Attributes:
        sql: What must be true of each row.
        action: What becomes of a row that breaks it.
        enforced: Whether Delta enforces it.
        column: The column that must not be null, where that is the rule.
    """

    name: str
    sql: str
    action: Action = Action.QUARANTINE
    enforced: bool = True
    column: tuple[str, ...] | None = None
    gate: Gate | None = None

    @property
    def built_in(self) -> bool:
        """Whether it comes with the types of columns: the lengths of CHAR and VARCHAR."""
        return self.name == LENGTH_RULE

    @property
    def broken(self) -> str:
        """SQL that is true for exactly the rows that break the rule; never NULL."""
        # On a line of its own, a comment at the end of a constraint's text stays harmless.
        return f"(({self.sql}\n) IS NOT TRUE)"

    @property
    def reads(self) -> frozenset[str] | None:
        """The columns that the rule reads, as it spells them; None: only Delta can read it."""
        try:
            return frozenset(path[0] for path in parse_rule(self.sql).columns)
        except ExpressionError:
            return None


def batch_rules(known: Survey, table: Definition | None) -> tuple[BatchRule, ...]:
    """The rules that a batch is judged by: what the table enforces, and what is declared.

    A declared rule that the table does not enforce counts where it is a warning or was given
    with the batch; else it waits for its migration.

    Raises:
        UsageError: A rule given with the batch has the name of a constraint that says
            something else.
    """
    declared = dict(known.declared)
    rules: dict[str, BatchRule] = {}
    for name, text in ({} if table is None else table.constraints).items():
        rule = declared.pop(name.lower(), None)
        rules[name.lower()] = _enforced(rule, name, text, not_null_path(rule))
    for path in sorted(() if table is None else table.not_null):
        rule = declared_not_null(declared.values(), path)
        name = not_null_name(declared.values(), path)
        if rule is not None:
            declared.pop(rule.key)
        text = f"{'.'.join(map(quote, path))} IS NOT NULL"
        rules.setdefault(name.lower(), _enforced(rule, name, text, path))
    if table is not None and (lengths := length_rule(table.schema)):
        rule = declared.pop(LENGTH_RULE, None)
        rules[LENGTH_RULE] = _enforced(rule, LENGTH_RULE, lengths, None)
    for key, rule in declared.items():
        if rule.on_violation is Action.WARN or key in known.given:
            rules[key] = BatchRule(
                rule.name, rule.expression, rule.on_violation, False, not_null_path(rule), rule.gate
            )
    return tuple(rules.values())


def _enforced(rule: Rule | None, name: str, text: str, column: tuple[str, ...] | None) -> BatchRule:
    if rule is None:
        return BatchRule(name, text, column=column)
    # Delta refuses the rows, whatever the declaration would have them be.
    warn = rule.on_violation is Action.WARN
    action = Action.QUARANTINE if warn else rule.on_violation
    return BatchRule(rule.name, text, action, True, column, rule.gate)


def broken_names(rules: Iterable[BatchRule]) -> str:
    """SQL for the array of the names of the rules that a row breaks; NULL for a good row."""
    listed = list(rules)
    if not listed:
        return NO_NAMES
    names = broken_rules({rule.name: rule.broken for rule in listed})
    any_broken = " OR ".join(rule.broken for rule in listed)
    # Most rows are good: for them no array is built, pinned and searched.
    return as_written(f"CASE WHEN {any_broken} THEN {names} END", NO_NAMES)


def breaks(name: str) -> str:
    """SQL that is true for the judged rows that break a rule, else false."""
    # The guard keeps good rows, most of them, from being searched for each rule.
    return f"({IS_BROKEN} AND array_contains({quote(own.RULES)}, {literal(name)}))"


def judged(
    df: DataFrame, seen: Seen, rules: Iterable[BatchRule], replaces: str | None = None
) -> DataFrame:
    """The rows of a batch as they came, with the names of the rules that each breaks, or NULL.

    Args:
        replaces: The predicate of the rows that the batch replaces: each row is told
            whether it is outside of them.
    """
    marks = {own.RULES: broken_names(rules)}
    if replaces is not None:
        marks[OUTSIDE] = as_written(f"(({replaces}\n) IS NOT TRUE)", "true")
    told = [f"{sql} AS {quote(name)}" for name, sql in marks.items()]
    if seen.as_it_came:
        return df.selectExpr("*", *told)
    rows = view(df, seen, f"struct(*) AS {quote(BATCH)}").selectExpr(quote(BATCH), *told)
    return rows.selectExpr(f"{quote(BATCH)}.*", *map(quote, marks))


@dataclass(frozen=True)
class Counts:
    """How many rows of a batch are what.

    Attributes:
        broken: Rule to the rows that broke it, for rules that were broken.
        outside: Rows that are not among those that the batch replaces.
    """

    rows: int
    fail: int = 0
    quarantine: int = 0
    drop: int = 0
    outside: int = 0
    broken: Mapping[str, int] | None = None

    @property
    def bad(self) -> int:
        """Rows that may not be written."""
        return self.fail + self.quarantine + self.drop


@dataclass(frozen=True)
class Ground:
    """What a batch is judged by.

    Attributes:
        table: The table; None: there is none yet.
        unjudged: Rules on columns whose values are not known before the write.
        left_out: Warn rules, one of which cannot be evaluated on some row.
    """

    table: Definition | None
    seen: Seen
    rules: tuple[BatchRule, ...]
    unjudged: tuple[BatchRule, ...] = ()
    left_out: tuple[BatchRule, ...] = ()

    def without(self, warned: tuple[BatchRule, ...]) -> Ground:
        """The same without some warn rules, which stop no job where they cannot be evaluated."""
        rules = tuple(rule for rule in self.rules if rule not in warned)
        return replace(self, rules=rules, left_out=warned)

    @property
    def lacking(self) -> tuple[BatchRule, ...]:
        """The rules on columns that may not be NULL, that the batch lacks and nothing fills."""
        return tuple(
            rule
            for rule in self.rules
            if rule.enforced
            and rule.column is not None
            and rule.column[0].lower() in self.seen.missing
        )

    @property
    def lacks_mandatory(self) -> bool:
        """Whether the batch lacks a column that may not be NULL and that nothing fills."""
        return bool(self.lacking)

    def rule(self, name: str | None) -> BatchRule | None:
        """The rule of that name, in any case."""
        key = None if name is None else name.lower()
        return next((r for r in (*self.rules, *self.unjudged) if r.name.lower() == key), None)


def ground(session: SparkSession, df: DataFrame, asked: Request, known: Survey) -> Ground:
    """Find out what a batch is to be judged by.

    Raises:
        UsageError: A rule given with the batch contradicts a constraint.
    """
    check_given(known, asked)
    table = read_definition(session, asked.table) if known.exists else None
    rules = batch_rules(known, table)
    if table is None or asked.mode == "replace":
        return Ground(table, AS_IT_CAME, rules)
    seen = seen_by(session, df, table, widening=asked.evolves)
    unjudged = [rule for rule in rules if _reads(rule, seen.unknown)]
    return Ground(table, seen, tuple(r for r in rules if r not in unjudged), tuple(unjudged))


def check_given(known: Survey, asked: Request) -> None:
    """Whether rules given with a batch go with the table's constraints.

    Raises:
        UsageError: One contradicts the constraint of its name.
    """
    for rule in asked.rules.values():
        text = next((t for n, t in known.constraints.items() if n.lower() == rule.key), None)
        if text is not None and not same_rule(text, rule.expression):
            raise UsageError(
                f"The rule {rule.name} given with a batch for {asked.table} says something else "
                "than the constraint of that name; nothing was written.",
                hint="Give it another name, or change the constraint by a migration.",
                table=str(asked.table),
                rule=rule.name,
            )


def _reads(rule: BatchRule, columns: frozenset[str]) -> bool:
    if not columns:
        return False
    # A constraint that only Delta can read may read any column.
    return rule.reads is None or any(name.lower() in columns for name in rule.reads)


def judge(df: DataFrame, table: str, *, rules: Rules | None = None) -> DataFrame:
    """A batch with the names of the rules that each row breaks, for you to route.

    Nothing is written and no job runs. The rules are those that ``write`` would judge by: the
    table's constraints, its warn rules, and ``rules``.

    Args:
        df: The batch.
        table: The table that it is meant for, which must be there.
        rules: Further rules, as for ``write``.

    Returns:
        The batch, with the column ``_deltacheck_rules``: an array, empty for a good row.

    Raises:
        TableNotFoundError: There is no such table.
        UsageError: The batch has a column of that name.
    """
    session = df.sparkSession
    asked = request(table, rules=rules, create=False)
    if own.RULES in {name.lower() for name in df.columns}:
        raise UsageError(
            f"The batch for {asked.table} has a column {own.RULES} already; it was not judged.",
            hint="Drop the column, or judge the batch as it was before.",
            table=str(asked.table),
        )
    base = ground(session, df, asked, survey(session, asked))
    rows = judged(df, base.seen, base.rules)
    return rows.withColumn(own.RULES, expr(f"coalesce({quote(own.RULES)}, {NO_RULES})"))


__all__ = [
    "IS_BROKEN",
    "OUTSIDE",
    "BatchRule",
    "Counts",
    "Ground",
    "batch_rules",
    "breaks",
    "broken_names",
    "check_given",
    "ground",
    "judge",
    "judged",
]
