"""Who wants to know of upgrades is told what they moved, and what stopped them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltacheck
from deltacheck.config import Environment
from deltacheck.errors import GateError
from deltacheck.events import Event
from tests.cli.projects import make_project


def test_an_upgrade_tells_what_it_did_and_one_that_is_stopped_why(
    session: SparkSession,
    environment: Environment,
    database: str,
    tmp_path: Path,
    seen: list[Event],
) -> None:
    """A bug of keys: of rules of two tables with one name, one was told for both."""
    tables = [f"{database}.{name}" for name in ("orders", "returns")]
    for table, bad in zip(tables, ("(1, -1), (2, -2), (3, 3)", "(1, -1), (2, 2)"), strict=True):
        session.sql(f"CREATE TABLE {table} (id INT, amount INT) USING delta")
        session.sql(f"INSERT INTO {table} VALUES {bad}")
    returns = tables[1]
    add = [f'op.add_check("{table}", "amount_ok", "amount > 0", gate="100%")' for table in tables]
    declared = {
        f"{table}.yml": f"table: {table}\nowner: {owner}\n"
        "rules: {amount_ok: {check: amount > 0}, id_ok: {check: id > 1}}\n"
        for table, owner in zip(tables, ("sales", "care"), strict=True)
    }
    make_project(
        tmp_path,
        environment,
        {
            "0001": "\n    ".join(add),
            "0002": f'op.add_check("{returns}", "id_ok", "id > 2", gate="0")',
        },
        declared,
    )

    run = deltacheck.upgrade("0001", project=tmp_path, session=session).run
    with pytest.raises(GateError):
        deltacheck.upgrade("head", project=tmp_path, session=session)

    done, stopped = seen
    assert (done.kind, done.run, dict(done.rules)) == ("upgraded", run, {"amount_ok": 3})
    assert done.owners == ("sales", "care")
    assert json.loads(done.text())["rules"] == {"amount_ok": 3}
    assert done.message.endswith("is at 0001; 3 rows were moved to quarantine.")
    assert (stopped.kind, stopped.table, dict(stopped.rules)) == ("stopped", returns, {"id_ok": 1})
    assert stopped.owners == ("care",)
