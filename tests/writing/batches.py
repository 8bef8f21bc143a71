"""Tables and batches in a few words, and what is in which place afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession

from deltacheck.config import Environment
from deltacheck.delta.log import quiet_query_loggers
from deltacheck.delta.table import history
from deltacheck.ledger.recorded import recorded_text, set_statement
from deltacheck.names import TableName
from deltacheck.rules.given import rules_given
from deltacheck.rules.model import Gate, TableRules

COLUMNS = "id INT, amount INT, status STRING"
OPS = Environment("local", schema="ops")
"""Where recorded rules say that deltacheck's own tables are."""

RULES = {"amount_positive": "amount > 0", "status_known": "status IN ('new', 'paid')"}

GOOD = "(1, 10, 'new'), (2, 20, 'paid')"
BAD = "(3, -1, 'new'), (4, NULL, 'gone')"
"""Row 3 breaks amount_positive, row 4 breaks both rules."""


def make_table(
    session: SparkSession,
    name: str,
    columns: str = COLUMNS,
    rules: Mapping[str, str] | None = None,
    more: str = "",
) -> str:
    """Make a table with constraints; give its name back."""
    session.sql(f"CREATE TABLE {name} ({columns}) USING delta {more}")
    for rule, expression in (RULES if rules is None else rules).items():
        session.sql(f"ALTER TABLE {name} ADD CONSTRAINT {rule} CHECK ({expression})")
    return name


def record(
    session: SparkSession,
    table: str,
    rules: Mapping[str, object],
    gate: str | None = None,
    quarantine: str | None = None,
) -> None:
    """Record rules in a table, as an upgrade does."""
    name = TableName.parse(table)
    declared = TableRules(
        name, rules_given(name, rules).rules, gate=None if gate is None else Gate.parse(gate)
    )
    place = TableName.parse(quarantine or f"{table}_quarantine")
    session.sql(set_statement(name, recorded_text(declared, place, OPS)))


def batch(session: SparkSession, *values: str, columns: str = "id, amount, status") -> DataFrame:
    """A batch of literal rows, written as after VALUES."""
    return session.sql(f"SELECT * FROM VALUES {', '.join(values)} AS t({columns})")


def good(session: SparkSession) -> DataFrame:
    """Rows 1 and 2, which break nothing."""
    return batch(session, GOOD)


def mixed(session: SparkSession) -> DataFrame:
    """Rows 1 to 4, of which 3 and 4 are bad."""
    return batch(session, GOOD, BAD)


def ids(session: SparkSession, table: str, column: str = "id") -> list[int]:
    """The ids that a table holds, in order, as often as it holds them."""
    return sorted(row[0] for row in session.table(table).select(column).collect())


def held(session: SparkSession, table: str, column: str = "id") -> dict[int, list[str]]:
    """The rows that a table's quarantine holds: id to the rules that the row broke."""
    rows = session.table(f"{table}_quarantine").collect()
    assert len({row[column] for row in rows}) == len(rows), "a row is held twice"
    return {row[column]: sorted(row["_deltacheck_rules"]) for row in rows}


def everywhere(session: SparkSession, table: str, column: str = "id") -> Counter[int]:
    """Each id to the number of rows that have it, in the table and its quarantine together."""
    found = Counter(ids(session, table, column))
    if session.catalog.tableExists(f"{table}_quarantine"):
        found.update(ids(session, f"{table}_quarantine", column))
    return found


def versions(session: SparkSession, table: str) -> int:
    """How many commits a table has."""
    return len(history(session, TableName.parse(table)))


def plain_append(df: DataFrame, table: str) -> None:
    """An append without deltacheck, which Delta may refuse."""
    with quiet_query_loggers():
        df.write.format("delta").mode("append").saveAsTable(table)


def union_of(*parts: Iterable[int]) -> Counter[int]:
    """Each id once."""
    return Counter(number for part in parts for number in part)
