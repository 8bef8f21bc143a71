"""Tables with quarantined rows, made in a few words."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.commit import Frame, Tag, commit
from deltacheck.delta.table import latest_version, read_table
from deltacheck.migrate.run import run, scene
from deltacheck.names import TableName
from deltacheck.quarantine.layout import quarantine_name
from deltacheck.quarantine.place import Labels, labelled, prepare
from deltacheck.quarantine.today import rules_today
from deltacheck.revisions.graph import Revision, history_of
from deltacheck.revisions.operations import AddConstraint
from deltacheck.rules.model import Gate, Kind

RULES = {"amount_positive": "amount > 0", "status_known": "status IN ('new', 'paid')"}
COLUMNS = "id BIGINT, amount INT, status STRING"


def make_table(
    session: SparkSession,
    table: str,
    columns: str = COLUMNS,
    rules: Mapping[str, str] | None = None,
    more: str = "",
) -> None:
    """Make a table with constraints."""
    session.sql(f"CREATE TABLE {table} ({columns}) USING delta {more}")
    for name, expression in (RULES if rules is None else rules).items():
        session.sql(f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({expression})")


def hold(
    session: SparkSession,
    table: str,
    values: str,
    *,
    columns: Sequence[str] = ("id", "amount", "status"),
    source: str = "write",
    attempt: str | None = None,
    quarantine: str | None = None,
) -> str:
    """Put rows into the quarantine of a table, as a batch that it refused.

    Args:
        values: As after VALUES.

    Returns:
        The attempt.
    """
    name = TableName.parse(table)
    found = read_table(session, name)
    bad = quarantine_name(name) if quarantine is None else TableName.parse(quarantine)
    place = prepare(session, name, found.schema, bad, Tag())
    batch = attempt or secrets.token_hex(4)
    labels = Labels(source=source, attempt=batch, version=latest_version(session, name), job="test")
    rows = session.sql(f"SELECT * FROM VALUES {values} AS t({', '.join(columns)})")
    violators = {
        rule: f"({term.over({})}) IS NOT TRUE" for rule, term in rules_today(found).rules.items()
    }
    write = Frame(labelled(rows, place, labels, violators))
    commit(session, bad, write, tag=Tag(attempt=batch))
    return batch


def upgrade(
    session: SparkSession, environment: Environment, table: str, rules: Mapping[str, str]
) -> str:
    """Add constraints to a table by a migration, which moves their violators.

    Returns:
        The run.
    """
    name = TableName.parse(table)
    added = tuple(
        AddConstraint(name, rule, Kind.CHECK, text, gate=Gate.parse("100%"))
        for rule, text in rules.items()
    )
    history = history_of([Revision(secrets.token_hex(3), upgrade=added)])
    with scene(session, environment, history, {}) as stage:
        done = run(stage, "head", "upgrade")
    assert done.run is not None
    return done.run


def rows(session: SparkSession, table: str, columns: str = "id") -> Counter[object]:
    """The rows of a table, with multiplicity."""
    return Counter(tuple(row) for row in session.sql(f"SELECT {columns} FROM {table}").collect())


def states(session: SparkSession, table: str) -> dict[int, str]:
    """The id of each quarantined row to its state."""
    query = f"SELECT id, _deltacheck_state AS state FROM {table}_quarantine"
    return {row["id"]: row["state"] for row in session.sql(query).collect()}
