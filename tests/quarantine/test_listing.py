"""`quarantine list`: numbers per table, rules, origin and state; no value of a row."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from deltacheck import quarantine
from deltacheck.config import Environment
from deltacheck.delta.table import latest_version
from deltacheck.errors import ConfigError, TableNotFoundError
from deltacheck.names import TableName
from tests.cli.shop import Shop
from tests.harness.marks import connect_is_slow
from tests.quarantine.held import hold, make_table


@connect_is_slow
def test_rows_are_counted_by_what_they_have_in_common(
    any_spark: SparkSession, database: str
) -> None:
    """Rules broken, batch and state; with the times, in UTC."""
    table = f"{database}.orders"
    make_table(any_spark, table)
    first = hold(any_spark, table, "(1, -5, 'new'), (2, -6, 'new'), (3, -1, 'lost'), (4, 1, 'new')")
    second = hold(any_spark, table, "(5, -5, 'new')", source="guard")
    quarantine.discard(table, "test", where="id = 2", session=any_spark)
    version = latest_version(any_spark, TableName.parse(f"{table}_quarantine"))

    found = quarantine.list(table, session=any_spark)

    assert {(one.rules, one.source, one.run, one.state): one.rows for one in found} == {
        (("amount_positive",), "write", first, "held"): 1,
        (("amount_positive",), "write", first, "discarded"): 1,
        (("amount_positive", "status_known"), "write", first, "held"): 1,
        ((), "write", first, "held"): 1,
        (("amount_positive",), "guard", second, "held"): 1,
    }
    now = datetime.now(timezone.utc)
    assert all(now - timedelta(hours=1) < one.oldest <= one.newest <= now for one in found)
    assert latest_version(any_spark, TableName.parse(f"{table}_quarantine")) == version

    assert (
        sum(one.rows for one in quarantine.list(table, where="amount < -4", session=any_spark)) == 3
    )
    assert [
        one.rows for one in quarantine.list(table, rules=["STATUS_known"], session=any_spark)
    ] == [1]
    assert [one.source for one in quarantine.list(table, run=second, session=any_spark)] == [
        "guard"
    ]


def test_tables_come_from_the_project_where_none_are_named(
    session: SparkSession, database: str, environment: Environment, tmp_path: Path
) -> None:
    """All that it declares; one that is not there yet has nothing in quarantine."""
    shop = Shop.make(tmp_path, environment)
    shop.declare("amount_positive: amount > 0")

    assert quarantine.list(session=session, project=tmp_path) == ()
    make_table(session, shop.orders)
    assert quarantine.list(session=session, project=tmp_path) == ()
    hold(session, shop.orders, "(1, -5, 'new')")

    assert [one.table for one in quarantine.list(session=session, project=tmp_path)] == [
        shop.orders
    ]


def test_a_table_that_is_nowhere_is_an_error_where_it_is_named(
    session: SparkSession, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so is a call that names neither a table nor a project."""
    with pytest.raises(TableNotFoundError):
        quarantine.list(f"{database}.nothing", session=session)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError):
        quarantine.list(session=session)


@pytest.mark.parametrize("source", ["write", "upgrade"])
def test_what_is_quarantined_outlives_its_table(
    session: SparkSession, database: str, source: str
) -> None:
    """A dropped table's rows can still be listed, shown and purged, whoever put them there."""
    table = f"{database}.orders"
    make_table(session, table)
    hold(session, table, "(1, -5, 'new')", source=source)
    session.sql(f"DROP TABLE {table}")

    assert [one.rows for one in quarantine.list(table, session=session)] == [1]
    assert quarantine.show(table, where="id = 1", session=session).rows[0]["amount"] == -5
    with pytest.raises(TableNotFoundError):
        quarantine.release(table, session=session)
    assert quarantine.purge(table, where="id = 1", held=True, session=session).rows == 1


def test_it_can_be_narrowed_to_rules_of_a_tag_or_an_owner(
    session: SparkSession, database: str, environment: Environment, tmp_path: Path
) -> None:
    """As `constraints/` declares them; rows that broke only other rules are left out."""
    shop = Shop.make(tmp_path, environment)
    make_table(session, shop.orders)
    hold(session, shop.orders, "(1, -5, 'new'), (2, 6, 'lost'), (3, 7, 'new')")
    (tmp_path / "constraints" / "all.yml").write_text(
        f"table: {shop.orders}\nowner: sales\nrules:\n"
        "  amount_positive:\n    check: amount > 0\n    tags: [money]\n"
        "  status_known:\n    check: status = 'new'\n    owner: platform\n",
        encoding="utf-8",
    )

    def broken(**options: Any) -> list[tuple[str, ...]]:
        found = quarantine.list(shop.orders, session=session, project=tmp_path, **options)
        return sorted(one.rules for one in found)

    assert broken() == [(), ("amount_positive",), ("status_known",)]
    assert broken(tags=["Money"]) == [("amount_positive",)]
    assert broken(owners=["platform"]) == [("status_known",)]
    assert broken(owners=["platform"], rules=["amount_positive"]) == []
    assert broken(tags=["none"]) == []
