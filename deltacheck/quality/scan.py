"""From checks to SQL: what is asked of a table, in as few passes over it as can be.

Checks that look at the same rows grouped in the same way share a pass, each with aggregates of
its own; so do all checks without ``by:``, together with the counts of violators. Uniqueness and
references need a pass of their own, which reads only the columns concerned. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from deltacheck.delta.violators import as_written
from deltacheck.names import TableName, quote
from deltacheck.quality.figures import Figures, Found, Role
from deltacheck.rules.checks import (
    BatchCheck,
    BatchTest,
    BrokenShare,
    Freshness,
    NullShare,
    Other,
    Reconcile,
    References,
    Requires,
    RowCount,
    TableCheck,
    TableTest,
    Trend,
    Unique,
)
from deltacheck.rules.expression import parse_rule, violator_predicate
from deltacheck.rules.quantities import Measure, MeasureKind

MOST_GROUPS = 10_000
"""How many groups a check may have: they are judged one by one, and each is logged."""

_ALIAS = "AS _deltacheck"
"""Keeps Spark from taking WHERE for an alias: ``FROM t WHERE (a)`` names its columns anew."""

_EXACT = (
    "map('timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\", "
    "'timestampNTZFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\")"
)
"""How times stand in the name of a group: Spark's own way of writing them ends with milliseconds
(``JSONOptions``), and a time is known to the microsecond."""

ALWAYS = "_deltacheck_always"
"""A column of a batch that is true in each row, which Spark does not know; see ``as_written``."""

ALL = ""
"""The one group of a check that does not group its rows."""


@dataclass(frozen=True)
class Pass:
    """Rows that are looked at together.

    Attributes:
        source: SQL of a table or a sub-query.
        by: SQL of what they are grouped by.
    """

    source: str
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """Figures of one check that one pass gives.

    Attributes:
        name: The check or rule.
        wanted: Role to the SQL of its aggregate.
        where: SQL of the rows that matter to it; None: all.
    """

    name: str
    over: Pass
    wanted: Mapping[Role, str]
    where: str | None = None


@dataclass(frozen=True)
class Query:
    """One pass as SQL, and what it is for.

    Attributes:
        aggregates: The SQL of its columns, after that of the group where there is one.
        parts: What its figures are for.
    """

    sql: str
    grouped: bool
    aggregates: tuple[str, ...]
    parts: tuple[Wanted, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The checks and rules that it is for."""
        return tuple(dict.fromkeys(part.name for part in self.parts))


def queries(parts: Iterable[Wanted]) -> tuple[Query, ...]:
    """The fewest passes that give all that is wanted."""
    passes: dict[Pass, list[Wanted]] = {}
    for part in parts:
        passes.setdefault(part.over, []).append(part)
    return tuple(_query(over, together) for over, together in passes.items())


def _query(over: Pass, parts: Sequence[Wanted]) -> Query:
    aggregates = tuple(dict.fromkeys(sql for part in parts for sql in part.wanted.values()))
    columns = [f"{sql} AS a{place}" for place, sql in enumerate(aggregates)]
    wheres = dict.fromkeys(part.where for part in parts)
    where = group = ""
    if over.by:
        # A group none of whose rows matter is still there: that it has none may be the news.
        columns.insert(0, f"to_json({_struct(over.by)}, {_EXACT}) AS g")
        group = f" GROUP BY {', '.join(f'({sql})' for sql in over.by)} LIMIT {MOST_GROUPS + 1}"
    elif None not in wheres:
        where = " WHERE " + " OR ".join(f"({sql})" for sql in wheres)
    sql = f"SELECT {', '.join(columns)} FROM {over.source} {_ALIAS}{where}{group}"
    return Query(sql, bool(over.by), aggregates, tuple(parts))


def _struct(by: Sequence[str]) -> str:
    return f"struct({', '.join(f'({sql}) AS k{place}' for place, sql in enumerate(by))})"


def figures(
    answers: Iterable[tuple[Query, Sequence[Sequence[object]]]],
) -> dict[str, dict[str, Figures]]:
    """Check or rule to group to its figures, from what the queries returned.

    A group that one pass has and another has not, such as one without repeated rows, keeps
    what the first says. Without groups there is one, ``ALL``.
    """
    found: dict[str, dict[str, Figures]] = {}
    for query, rows in answers:
        for row in rows:
            group = str(row[0]) if query.grouped else ALL
            values: dict[str, Found] = dict(
                zip(query.aggregates, row[1:] if query.grouped else row, strict=True)  # type: ignore[arg-type]
            )
            for part in query.parts:
                groups = found.setdefault(part.name, {})
                told = {role: values[sql] for role, sql in part.wanted.items()}
                groups[group] = groups.get(group, Figures()).filled(told)
    return found


def violators(name: str, expressions: Iterable[str], source: str) -> Wanted:
    """How many rows of a table break any of some rules.

    Args:
        name: The rule, where it is one.
        expressions: The SQL of each.
        source: SQL of the table.
    """
    broken = violator_predicate(*map(parse_rule, expressions))
    return Wanted(name, Pass(source), {"rows": "count(*)", "failed": f"count_if({broken})"})


def other_tables(test: TableTest | BatchTest) -> tuple[TableName, ...]:
    """The tables that a test holds its own against."""
    if isinstance(test, (References, Requires)):
        return (test.table,)
    if isinstance(test, Reconcile) and test.other is not None:
        return (test.other.table,)
    return ()


def wanted(check: TableCheck, source: str, rules: Mapping[str, str]) -> list[Wanted]:
    """What a check wants to know of its table; nothing for one of the quarantine.

    Args:
        source: SQL of the table.
        rules: Key to expression, of the table's rules.
    """
    test, over = check.test, Pass(source, check.by)
    rows: dict[Role, str] = {"rows": _count(check.where)}

    def shared(more: Mapping[Role, str], by: tuple[str, ...] = ()) -> Wanted:
        where = Pass(source, (*check.by, *by))
        return Wanted(check.name, where, {**rows, **more}, check.where)

    if isinstance(test, RowCount):
        return [shared({})]
    if isinstance(test, Freshness):
        return [shared({"latest": _latest(test.column, check.where)})]
    if isinstance(test, Unique):
        nulls = shared({"nulls": _count(check.where, _any_null(test.columns))})
        return [nulls, _repeated(check, test, over)]
    if isinstance(test, References):
        nulls = shared({"nulls": _count(check.where, _any_null(test.columns))})
        return [nulls, _orphans(check, test, over)]
    if isinstance(test, Reconcile):
        value = shared({"value": _measure(test.measure, check.where, rules)})
        return [value, *([] if test.other is None else [_other(check, test.other)])]
    if isinstance(test, Trend):
        if test.measure.kind is MeasureKind.SHARES:
            return [shared({}, by=(test.measure.of,))]
        return [shared({"value": _measure(test.measure, check.where, rules)})]
    return []


def failing_keys(check: TableCheck, source: str) -> str | None:
    """SQL for the values at fault, each once as JSON with the number of its rows.

    None: the check is not about keys.

    Args:
        source: SQL of the table.
    """
    test = check.test
    if not isinstance(test, (Unique, References)):
        return None
    columns, by = _inner(check, _named(test.columns, "k"))
    rows = f"SELECT {columns} FROM {source} {_ALIAS} WHERE {_none_null(test.columns, check.where)}"
    found, having = f"({rows})", " HAVING count(*) > 1"
    if isinstance(test, References):
        found, having = _joined("ANTI", rows, test.keys, test.table.sql), ""
    names = [*by, *(f"k{place}" for place in range(len(test.columns)))]
    shown = zip(names, (*check.by, *test.columns), strict=True)
    key = ", ".join(f"{name} AS {quote(sql)}" for name, sql in shown)
    return (
        f"SELECT to_json(struct({key})) AS key, count(*) AS rows FROM {found} "
        f"GROUP BY {', '.join(names)}{having}"
    )


def wanted_of_batch(
    check: BatchCheck, source: str, rest: str | None, rules: Mapping[str, str]
) -> list[Wanted]:
    """What a check wants to know of a batch; nothing for one of its columns.

    Args:
        source: SQL of the batch, which has a column ``ALWAYS`` as well.
        rest: SQL of the rows that its table is to have besides; None: there are none.
        rules: Key to expression over the batch, of the table's rules.
    """
    test, over = check.test, Pass(source)
    if isinstance(test, (RowCount, Reconcile, Unique)):
        parts = wanted(TableCheck(check.name, check.kind, test), source, rules)
        if isinstance(test, Unique) and test.in_table and rest is not None:
            parts.append(_taken(check, test, source, rest))
        return parts
    if isinstance(test, NullShare):
        null = f"count_if(({test.column}) IS NULL)"
        return [Wanted(check.name, over, {"rows": "count(*)", "failed": null})]
    if isinstance(test, BrokenShare):
        texts = list(rules.values()) if test.rule is None else [rules[test.rule.lower()]]
        broken = violator_predicate(*map(parse_rule, texts or ["true"]))
        failed = f"count_if({as_written(broken, 'true', ALWAYS)})"
        return [Wanted(check.name, over, {"rows": "count(*)", "failed": failed})]
    if isinstance(test, Requires):
        roles: dict[Role, str] = {"rows": "count(*)"}
        if test.fresh is not None:
            roles["latest"] = _latest(test.fresh.column, None)
        return [Wanted(check.name, Pass(test.table.sql), roles)]
    return []


def _count(*conditions: str | None) -> str:
    given = [f"({one})" for one in conditions if one is not None]
    return f"count_if({' AND '.join(given)})" if given else "count(*)"


def _only(where: str | None) -> str:
    return "" if where is None else f" FILTER (WHERE {where})"


def _any_null(columns: Sequence[str]) -> str:
    return " OR ".join(f"({column}) IS NULL" for column in columns)


def _none_null(columns: Sequence[str], where: str | None) -> str:
    present = [f"({column}) IS NOT NULL" for column in columns]
    return " AND ".join([*([] if where is None else [f"({where})"]), *present])


def _latest(column: str, where: str | None) -> str:
    moment = f"CAST(({column}) AS TIMESTAMP)"
    past = f"{moment} <= current_timestamp()"
    only = past if where is None else f"{past} AND ({where})"
    return f"unix_micros(max({moment}) FILTER (WHERE {only}))"


def _measure(measure: Measure, where: str | None, rules: Mapping[str, str]) -> str:
    """The SQL of a measure; a share as the number of rows, which stay to be divided by."""
    if measure.kind is MeasureKind.SUM:
        return f"sum({measure.of}){_only(where)}"
    if measure.kind is MeasureKind.MEAN:
        return f"avg({measure.of}){_only(where)}"
    if measure.kind is MeasureKind.NULL_SHARE:
        return _count(where, f"({measure.of}) IS NULL")
    if measure.kind is MeasureKind.FAILURE_SHARE:
        return _count(where, violator_predicate(parse_rule(rules[measure.of.lower()])))
    return _count(where)


def _inner(check: TableCheck, more: Sequence[str] = ()) -> tuple[str, tuple[str, ...]]:
    """The columns of a sub-query that groups as its check does, and how it is grouped by them."""
    names = tuple(f"b{place}" for place in range(len(check.by)))
    named = [f"({sql}) AS {name}" for sql, name in zip(check.by, names, strict=True)]
    return ", ".join([*named, *more]), names


def _repeated(check: TableCheck, test: Unique, over: Pass) -> Wanted:
    columns, by = _inner(check, ["count(*) AS n"])
    keys = ", ".join(f"({sql})" for sql in (*check.by, *test.columns))
    source = (
        f"(SELECT {columns} FROM {over.source} {_ALIAS} "
        f"WHERE {_none_null(test.columns, check.where)} GROUP BY {keys} HAVING count(*) > 1)"
    )
    return Wanted(check.name, Pass(source, by), {"failed": "sum(n)", "values": "count(*)"})


def _orphans(check: TableCheck, test: References, over: Pass) -> Wanted:
    columns, by = _inner(check, _named(test.columns, "k"))
    rows = (
        f"SELECT {columns} FROM {over.source} {_ALIAS} "
        f"WHERE {_none_null(test.columns, check.where)}"
    )
    source = _joined("ANTI", rows, test.keys, test.table.sql)
    return Wanted(check.name, Pass(source, by), {"failed": "count(*)"})


def _taken(check: BatchCheck, test: Unique, source: str, table: str) -> Wanted:
    columns = ", ".join(_named(test.columns, "k"))
    rows = f"SELECT {columns} FROM {source} {_ALIAS} WHERE {_none_null(test.columns, None)}"
    found = _joined("SEMI", rows, test.columns, table)
    return Wanted(check.name, Pass(found), {"taken": "count(*)"})


def _named(columns: Sequence[str], letter: str) -> list[str]:
    return [f"({sql}) AS {letter}{place}" for place, sql in enumerate(columns)]


def _joined(kind: str, rows: str, keys: Sequence[str], table: str) -> str:
    """The rows that have (SEMI), or have not (ANTI), their ``k0``, ``k1`` ... in a table."""
    same = " AND ".join(f"c.k{place} = p.p{place}" for place in range(len(keys)))
    theirs = f"SELECT {', '.join(_named(keys, 'p'))} FROM {table}"
    return f"(SELECT c.* FROM ({rows}) AS c LEFT {kind} JOIN ({theirs}) AS p ON {same})"


def _other(check: TableCheck, other: Other) -> Wanted:
    measured = _measure(other.measure, other.where, {})
    return Wanted(check.name, Pass(other.table.sql, check.by), {"other": measured}, other.where)
