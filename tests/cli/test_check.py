"""``deltacheck check`` at a terminal: what it prints, and with what it exits."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from deltacheck.delta.table import history
from deltacheck.names import TableName
from tests.cli.projects import command
from tests.cli.shop import Shop

CHECKS = """\
tags: [core]
checks:
  some: {row_count: {min: 1}}
  ids: {unique: id, tags: [keys]}
  by_amount: {row_count: {min: 2}, by: amount, on_failure: warn}
  usual: {trend: {measure: row_count}}
"""


def test_what_passed_and_what_failed_is_printed_and_told_by_the_exit_code(
    session: SparkSession, shop: Shop
) -> None:
    """A warning stops nothing; violators of a pending rule are counted beside the checks."""
    shop.fill(session)
    shop.declare("amount_small: amount < 9", head=CHECKS)

    ran = command("check")
    assert ran.code == 0, ran
    assert "4 checks: 2 passed, 1 failed, 1 unjudged" in ran.words
    assert "3 of 3 groups by amount fail" in ran.words
    assert "1 of 3 rows break it" in ran.words

    session.sql(f"INSERT INTO {shop.orders} VALUES (1, 5)")
    keys = f"{shop.database}.keys"
    ran = command("check", "--json", "--keys", keys)
    assert ran.code == 4
    assert ran.json["failed"]
    assert ran.json["keys"] == keys
    assert [row["key"] for row in session.table(keys).collect()] == ['{"id":1}']
    checks = {one["check"]: one for one in ran.json["checks"]}
    assert {name: one["state"] for name, one in checks.items()} == {
        "some": "passed",
        "ids": "failed",
        "by_amount": "failed",
        "usual": "unjudged",
    }
    assert (checks["ids"]["rows"], checks["ids"]["failed"]) == (4, 2)
    assert checks["by_amount"]["on_failure"] == "warn"
    assert [group["name"] for group in checks["by_amount"]["groups"]] == [None] * 3
    (rule,) = ran.json["rules"]
    assert (rule["rule"], rule["state"], rule["failed"]) == ("amount_small", "pending", 1)


def test_keys_that_cannot_be_written_are_told_beside_what_was_found(
    session: SparkSession, shop: Shop
) -> None:
    """With 4 where a check fails that is not only to warn, else with the error's own code."""
    shop.fill(session, "(1, 5), (1, 5)")
    keys = f"{shop.database}.keys"
    shop.declare("amount_small: amount < 9", head="checks: {ids: {unique: id}}")
    assert command("check", "--keys", keys).code == 4
    session.sql(f"ALTER TABLE {keys} ADD CONSTRAINT few CHECK (`rows` < 3)").collect()
    session.sql(f"INSERT INTO {shop.orders} VALUES (1, 5)")

    ran = command("check", "--keys", keys)
    assert ran.code == 4
    assert "3 of 3 rows share id with another" in ran.out
    assert f"Error: The keys for which checks failed could not be written to {keys}" in ran.err

    shop.declare("amount_small: amount < 9", head="checks: {ids: {unique: id, on_failure: warn}}")
    ran = command("check", "--keys", keys, "--json")
    assert (ran.code, ran.json["failed"], ran.json["keys"]) == (1, False, None)
    assert (ran.json["unwritten"][0]["code"], len(ran.json["checks"])) == ("ledger", 1)


def test_only_what_failed_is_printed_quietly(session: SparkSession, shop: Shop) -> None:
    shop.fill(session, "(1, 5), (1, 6)")
    shop.declare("amount_small: amount < 9", head=CHECKS)

    ran = command("check", "--quiet", "--tag", "keys")

    assert ran.code == 4
    assert "2 of 2 rows share id with another (1 value)" in ran.words
    assert "some" not in ran.words


def test_checks_are_chosen_by_table_and_tag(session: SparkSession, shop: Shop) -> None:
    """Green, and nothing was checked: a mistyped name or tag is an error of usage."""
    shop.fill(session)
    shop.declare("amount_small: amount < 9", head=CHECKS)

    chosen = command("check", shop.orders.upper(), "--tag", "keys", "--json")
    assert [one["check"] for one in chosen.json["checks"]] == ["ids"]
    for words, why in (
        (["--tag", "nowhere"], "has what is asked for: nowhere; nothing was checked"),
        (["--owner", "nobody"], "has what is asked for: nobody; nothing was checked"),
        (["nowhere.*"], "matches nowhere.*; nothing was checked"),
        ([shop.orders, "nowhere.*"], "matches nowhere.*; nothing was checked"),
    ):
        refused = command("check", *words)
        assert (refused.code, why in refused.words) == (2, True), words


def test_a_table_that_is_missing_fails(session: SparkSession, shop: Shop) -> None:
    shop.declare("amount_small: amount < 9", head=CHECKS)

    ran = command("check")

    assert ran.code == 4
    assert f"{shop.orders}: there is no such table" in ran.words


def test_a_table_that_cannot_be_looked_at_is_printed_and_fails(
    session: SparkSession, shop: Shop, warehouse: Path
) -> None:
    """A bug of all or nothing: it was an error of the whole run, with nothing logged."""
    shop.fill(session)
    shop.declare("amount_small: amount < 9")
    for file in (warehouse / shop.database / "orders" / "_delta_log").glob("*0.json"):
        file.write_text("no JSON")

    ran = command("check")

    assert ran.code == 4
    assert f"{shop.orders} cannot be read: Spark says " in ran.words
    assert list(command("check", "--json").json["problems"]) == [shop.orders]


def test_a_gate_that_does_not_hold_is_printed_with_its_figures(
    session: SparkSession, shop: Shop
) -> None:
    """Of a rule and of a table, as an upgrade would be stopped by it."""
    shop.fill(session)
    shop.declare("amount_small: amount < 9", head="gate: 1/4")

    ran = command("check")
    assert ran.code == 4
    assert f"{shop.orders}: 1 of 3 rows break a rule, more than the gate 1/4" in ran.words
    assert command("check", "--json").json["gates"] == [
        {"table": shop.orders, "rows": 3, "failed": 1, "gate": "1/4", "gated": True, "note": ""}
    ]

    refused = command("check", "--keys", "not a table")
    assert refused.code == 1
    assert "`not a table` cannot be made for failing keys: Spark says INVALID" in refused.words


def test_a_check_that_keeps_log_and_journal_small_stops_no_later_upgrade(
    session: SparkSession, shop: Shop
) -> None:
    """A bug of words that others write: such a check's commit to the journal has no place in the
    order of runs, and the next upgrade took it for one, died of it and left the lock behind."""
    shop.fill(session)
    shop.declare("amount_small: amount < 90")
    assert command("revision", "--autogenerate", "-m", "one").code == 0
    assert command("upgrade").code == 0
    assert command("check", "--keep", "30d").code == 0
    journal = TableName.parse(f"{shop.database}_deltacheck.journal")
    assert history(session, journal, limit=1)[0].operation == "OPTIMIZE"

    shop.declare("amount_small: amount < 90", "id_there: id")
    assert command("revision", "--autogenerate", "-m", "two").code == 0

    assert command("upgrade").code == 0
    rules = command("status", "--json").json["rules"]
    assert {one["rule"]: one["state"] for one in rules} == {
        "amount_small": "enforced",
        "id_there": "enforced",
    }
