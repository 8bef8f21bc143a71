"""status on tables that other hands have changed, and upgrade --repair that mends them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from deltacheck.delta.table import latest_version
from deltacheck.names import TableName
from tests.cli.projects import Ran, command
from tests.cli.shop import Shop


def by_rule(ran: Ran) -> dict[str, dict[str, Any]]:
    """The rules of a status by name."""
    return {one["rule"]: one for one in ran.json["rules"]}


def test_drift_is_told_with_its_cause_and_repaired(session: SparkSession, shop: Shop) -> None:
    """What, in which version, when and by what; --repair counts, quarantines and adds again."""
    shop.fill(session)
    shop.declare("gone: amount > 0", "other: amount < 100", "id_here: id", head="gate: 50%")
    command("revision", "--autogenerate", "-m", "first")
    assert command("upgrade", "--quiet").code == 0
    alter = f"ALTER TABLE {shop.orders}"
    session.sql(f"{alter} DROP CONSTRAINT gone")
    session.sql(f"{alter} DROP CONSTRAINT other")
    session.sql(f"{alter} ADD CONSTRAINT other CHECK (amount < 1000)")
    session.sql(f"{alter} UNSET TBLPROPERTIES ('delta.constraints.id_here')")
    session.sql(f"{alter} ADD CONSTRAINT by_hand CHECK (amount > -1000)")
    session.sql(f"INSERT INTO {shop.orders} VALUES (4, -4), (NULL, 5)")
    version = latest_version(session, TableName.parse(shop.orders))

    found = command("status", "--json", "--check")
    assert found.code == 3
    rules = by_rule(found)
    causes = {name: (one["state"], one["drift"]["cause"]) for name, one in rules.items()}
    assert causes == {
        "gone": ("drifted", "dropped"),
        "other": ("drifted", "changed"),
        "id_here": ("drifted", "unset"),
        "by_hand": ("unmanaged", "added"),
    }
    versions = [rules[name]["drift"]["version"] for name in ("gone", "other", "id_here", "by_hand")]
    assert versions == [version - 5, version - 3, version - 2, version - 1]
    assert datetime.fromisoformat(rules["gone"]["drift"]["at"]).utcoffset() is not None
    said = command("status").out
    assert "dropped by hand: DROP CONSTRAINT" in said
    assert "the table has: amount < 1000" in said
    assert command("upgrade", "--dry-run", "--json").json["steps"] == []

    planned = command("plan", "--repair", "--json")
    assert {one["rule"]: one["violators"] for one in planned.json["steps"]} == {
        "gone": {"false": 1, "null": 0},
        "other": {"false": 0, "null": 0},
        "id_here": {"false": 1, "null": 0},
    }
    assert latest_version(session, TableName.parse(shop.orders)) == version
    done = command("upgrade", "--repair", "--json")
    assert done.code == 0, done.err
    assert {one["rule"]: one["state"] for one in done.json["steps"]} == dict.fromkeys(
        ("gone", "other", "id_here"), "enforced"
    )
    assert [(one["before"], one["moved"], one["after"]) for one in done.json["tables"]] == [
        (5, 2, 3)
    ]
    mended = command("status", "--json", "--check")
    assert mended.code == 0
    assert by_rule(mended)["gone"]["quarantined"] == 1
    assert "Nothing to do" in command("upgrade", "--repair").out


def test_a_gate_holds_for_a_repair_too(session: SparkSession, shop: Shop) -> None:
    """Too many bad rows since the rule was lost: exit 4, and nothing is moved."""
    shop.fill(session)
    shop.declare("positive: amount > 0")
    command("revision", "--autogenerate", "-m", "first")
    command("upgrade", "--quiet")
    session.sql(f"CREATE OR REPLACE TABLE {shop.orders} (id INT, amount INT) USING delta")
    session.sql(f"INSERT INTO {shop.orders} VALUES (1, -1), (2, 2)")
    drift = by_rule(command("status", "--json"))["positive"]["drift"]
    assert (drift["cause"], drift["operation"]) == ("replaced", "CREATE OR REPLACE TABLE")
    refused = command("upgrade", "--repair")
    assert refused.code == 4
    assert "1 of 2 rows" in refused.words
    assert session.table(shop.orders).count() == 2


def test_status_can_be_narrowed(session: SparkSession, shop: Shop) -> None:
    """By table, tag, owner and column; --check then speaks of these rules alone."""
    shop.fill(session)
    (shop.folder / "constraints" / "all.yml").write_text(
        f"table: {shop.orders}\ntags: [money]\nowner: sales\nrules:\n"
        "  positive:\n    check: amount > 0\n    tags: [nightly]\n"
        "  known:\n    check: id > 0\n    owner: platform\n"
        "  plausible:\n    check: amount < 50\n    on_violation: warn\n"
        f"---\ntable: {shop.database}.missing\nrules:\n  other:\n    check: address.zip > 0\n",
        encoding="utf-8",
    )

    def names(*options: str) -> list[str]:
        ran = command("status", "--json", *options)
        assert ran.code == 0
        return sorted(one["rule"] for one in ran.json["rules"])

    assert names() == ["known", "other", "plausible", "positive"]
    assert names("--tag", "money") == ["known", "plausible", "positive"]
    assert names("--tag", "nightly", "--tag", "none") == ["positive"]
    assert names("--owner", "Platform") == ["known"]
    assert names("--owner", "sales", "--tag", "money") == ["plausible", "positive"]
    assert names("--table", "*.MISSING") == ["other"]
    assert names("--column", "amount") == ["plausible", "positive"]
    assert names("--column", "address") == ["other"]
    assert names("--column", "address.zip.code") == ["other"]
    assert names("--column", "address.street") == []
    narrowed = command("status", "--json", "--table", "*.orders")
    assert narrowed.json["missing"] == []
    assert by_rule(narrowed)["positive"]["tags"] == ["money", "nightly"]
    assert by_rule(narrowed)["known"]["owner"] == "platform"
    assert command("status", "--check", "--tag", "nightly").code == 3
    assert command("status", "--check", "--column", "nothing").code == 0
    assert "there is no such rule" in command("status", "--tag", "never").out

    session.sql(f"ALTER TABLE {shop.orders} ADD CONSTRAINT by_hand CHECK (amount < 90)")
    said = command("status", "--column", "amount").out
    assert "Delta refuses to rename, drop or retype amount while a CHECK reads it." in said
    assert "by_hand" in said
