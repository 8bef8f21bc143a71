"""Run the queries of some checks on a table at one version. Reads only.

What cannot be evaluated is told of the check that it concerns, and hides no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pyspark.sql import SparkSession

from deltacheck.delta.failures import EngineFailure, Failure, failure_of
from deltacheck.delta.table import table_problem
from deltacheck.delta.warehouse import register
from deltacheck.errors import TableError, TableNotFoundError
from deltacheck.names import TableName
from deltacheck.quality.figures import Figures
from deltacheck.quality.scan import MOST_GROUPS, Query, Wanted, figures, queries


@dataclass(frozen=True)
class Gathered:
    """What was found.

    Attributes:
        figures: Check or rule to group to its figures.
        problems: Check or rule to why it could not be evaluated.
    """

    figures: Mapping[str, Mapping[str, Figures]]
    problems: Mapping[str, str]


def gather(
    session: SparkSession,
    table: TableName,
    parts: Sequence[Wanted],
    others: Iterable[TableName] = (),
) -> Gathered:
    """Find all that is wanted of a table, in as few passes as can be.

    Args:
        others: Tables that it is held against.
    """
    for other in others:
        # A local warehouse's table may be one that nobody has asked for in this process. Where
        # it cannot be used, that is told of the check which reads it.
        with suppress(TableError, *EngineFailure):
            register(session, None, other)
    answers: list[tuple[Query, list[tuple[object, ...]]]] = []
    problems: dict[str, str] = {}
    waiting = list(queries(parts))
    while waiting:
        query = waiting.pop(0)
        found = _run(session, query)
        if isinstance(found, Failure) and len(query.names) > 1:
            # One of them is at fault: each by itself.
            waiting += [
                alone
                for name in query.names
                for alone in queries(part for part in query.parts if part.name == name)
            ]
        elif isinstance(found, Failure):
            problems[query.names[0]] = _told(found)
        elif query.grouped and len(found) > MOST_GROUPS:
            for name in query.names:
                problems[name] = f"there are more than {MOST_GROUPS:,} groups"
        else:
            answers.append((query, found))
    known = {name: one for name, one in figures(answers).items() if name not in problems}
    # A grouped check of a table without rows has been answered, by nothing.
    answered = {part.name: known.get(part.name, {}) for part in parts if part.name not in problems}
    return Gathered(answered, problems)


def _run(session: SparkSession, query: Query) -> list[tuple[object, ...]] | Failure:
    try:
        return [tuple(row) for row in session.sql(query.sql).collect()]
    except EngineFailure as error:
        return failure_of(error)


def _told(failure: Failure) -> str:
    """Why Spark could not evaluate it, without the text of the error: that may have values."""
    parameters = failure.parameters
    what = next(
        (
            parameters[key]
            for key in ("objectName", "relationName", "routineName")
            if key in parameters
        ),
        None,
    )
    subject = "" if what is None else f" ({what})"
    return f"it cannot be evaluated: Spark says {failure.condition or failure.kind}{subject}"


def problem_of(error: Exception, table: TableName) -> str:
    """Why a table could not be looked at, in a sentence.

    Args:
        error: A ``TableError``, or what Spark raised.
    """
    known = error if isinstance(error, TableError) else table_problem(error, table)
    return f"There is no table {table}." if isinstance(known, TableNotFoundError) else known.message
