"""baseline: what tables enforce already becomes rules and a revision that counts as applied."""

from __future__ import annotations

from pyspark.sql import SparkSession

from deltacheck.config import load_project
from deltacheck.delta.table import latest_version
from deltacheck.names import TableName
from deltacheck.rules.files import read_rules
from tests.cli.projects import command
from tests.cli.shop import Shop


def test_a_whole_schema_is_taken_over(any_spark: SparkSession, shop: Shop) -> None:
    """CHECK and NOT NULL, names kept; what cannot be a rule is left and said; then in sync."""
    any_spark.sql(
        f"CREATE TABLE {shop.orders} (id INT NOT NULL, amount INT, status STRING, tags ARRAY<INT>, "
        "address STRUCT<zip: STRING NOT NULL>) USING delta TBLPROPERTIES ("
        "'delta.constraints.StatusKnown' = \"status IN ('a', 'it''s')\","
        "'delta.constraints.lambda' = 'exists(tags, x -> x > 0)')"
    )
    any_spark.sql(f"ALTER TABLE {shop.orders} ADD CONSTRAINT amount_positive CHECK (amount>0)")
    any_spark.sql(f"ALTER TABLE {shop.orders} ADD CONSTRAINT here CHECK (status IS NOT NULL)")
    bare = f"{shop.database}.bare"
    any_spark.sql(f"CREATE TABLE {bare} (id INT) USING delta")
    version = latest_version(any_spark, TableName.parse(shop.orders))

    done = command("baseline", "--schema", shop.database, "--json")
    assert done.code == 0, done.err
    taken = {one["rule"]: (one["kind"], one["enforced_by"]) for one in done.json["rules"]}
    assert taken == {
        "StatusKnown": ("check", "check"),
        "amount_positive": ("check", "check"),
        "here": ("not_null", "check"),
        "id_not_null": ("not_null", "not_null"),
        "address_zip_not_null": ("not_null", "not_null"),
    }
    left = {(one["table"], one["rule"]) for one in done.json["left"]}
    assert left == {(shop.orders, "lambda"), (bare, None)}
    assert done.json["files"] == ["constraints/orders.yml", "versions/0001_baseline.py"]
    assert latest_version(any_spark, TableName.parse(shop.orders)) == version

    status = command("status", "--check", "--json")
    assert status.code == 0
    states = {one["rule"]: one["state"] for one in status.json["rules"]}
    assert states == {**dict.fromkeys(taken, "enforced"), "lambda": "unmanaged"}
    declared = read_rules(load_project(shop.folder).constraints)
    assert set(map(str, declared)) == {shop.orders}
    assert command("revision", "--autogenerate", "-m", "more").out.startswith("Nothing to do")
    nothing = command("upgrade", "--dry-run", "--json").json
    assert nothing["steps"] == []


def test_a_table_that_has_rules_or_migrations_is_refused(session: SparkSession, shop: Shop) -> None:
    """Exit 2 and nothing is written; the same for a revision that is not applied."""
    session.sql(f"CREATE TABLE {shop.orders} (id INT NOT NULL) USING delta")
    shop.declare("id_here: id")
    declared = command("baseline", shop.orders)
    assert declared.code == 2
    assert "rules in constraints/" in declared.words
    command("revision", "--autogenerate", "-m", "ids")
    (shop.folder / "constraints" / "orders.yml").unlink()
    migrated = command("baseline", shop.orders.upper())
    assert migrated.code == 2
    assert "migrations (revision 0001)" in migrated.words
    assert "deltacheck stamp" in migrated.words

    session.sql(f"CREATE TABLE {shop.database}.items (id INT NOT NULL) USING delta")
    pending = command("baseline", f"{shop.database}.items")
    assert pending.code == 2
    assert "deltacheck upgrade" in pending.words
    assert list((shop.folder / "constraints").iterdir()) == []

    assert command("stamp", "head").code == 0
    (shop.folder / "constraints" / "items.yml").write_text(
        "description: Shared.\nrules:\n  a:\n    check: id > 0\n", encoding="utf-8"
    )
    done = command("baseline", "--schema", shop.database, "-m", "items, too")
    assert done.code == 0
    assert f"left alone: {shop.orders}: it has migrations (revision 0001) already" in done.words
    assert f"made constraints/{shop.database}_items.yml" in done.out
    assert "is at 0002" in done.out
    assert command("status", "--check", "--table", "*.items").code == 0


def test_baseline_needs_to_be_told_what(shop: Shop) -> None:
    """Tables or a schema, one of the two; both must be there."""
    assert command("baseline").code == 2
    assert command("baseline", "a.b", "--schema", "a").code == 2
    nowhere = command("baseline", "--schema", "nowhere")
    assert nowhere.code == 2
    assert "no table in nowhere" in nowhere.words
    missing = command("baseline", shop.orders)
    assert missing.code == 1
    assert missing.words.count(shop.orders) == 1


def test_nothing_to_take_over_writes_nothing(session: SparkSession, shop: Shop) -> None:
    """A table without constraints: exit 0, no file, and no journal is made."""
    session.sql(f"CREATE TABLE {shop.orders} (id INT) USING delta")
    done = command("baseline", shop.orders, "--json").json
    assert (done["revision"], done["run"], done["files"]) == (None, None, [])
    assert list((shop.folder / "versions").iterdir()) == []
    assert "Nothing to take over" in command("baseline", shop.orders).out
