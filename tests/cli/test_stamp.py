"""stamp, current and unlock: what the journal says, changed by hand."""

from __future__ import annotations

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.table import latest_version
from deltacheck.ledger.lock import locked
from deltacheck.names import TableName
from tests.cli.projects import command
from tests.cli.shop import Shop


def three_revisions(shop: Shop) -> None:
    """0001, 0002 and 0003, each with a rule more."""
    rules: list[str] = []
    for name, expression in (("a", "amount > 0"), ("b", "amount < 100"), ("c", "id > 0")):
        rules.append(f"{name}: {expression}")
        shop.declare(*rules)
        assert command("revision", "--autogenerate", "-m", name).code == 0


def test_stamp_records_without_running(shop: Shop, session: SparkSession) -> None:
    """The revision and all that it builds on count as applied; the table is as it was."""
    shop.fill(session)
    three_revisions(shop)
    table = TableName.parse(shop.orders)
    before = latest_version(session, table)
    done = command("stamp", "0002", "--json").json
    assert done["before"] is None
    assert done["current"] == "0002"
    assert done["stamped"] == ["0001", "0002"]
    assert latest_version(session, table) == before
    assert command("current").out.strip() == "0002"
    found = {one["rule"]: one["state"] for one in command("status", "--json").json["rules"]}
    assert found == {"a": "drifted", "b": "drifted", "c": "pending"}


def test_stamp_goes_back_and_to_base(shop: Shop) -> None:
    """What comes after the revision counts as not applied; base is nothing at all."""
    three_revisions(shop)
    command("stamp", "head")
    back = command("stamp", "0001", "--json").json
    assert back["reverted"] == ["0003", "0002"]
    assert back["current"] == "0001"
    said = command("stamp", "base")
    assert "recorded as not applied: 0001" in said.out
    assert "is at base" in said.out
    assert "base" in command("current").out
    again = command("stamp", "head", "--json").json
    assert again["stamped"] == ["0001", "0002", "0003"]


def test_stamping_what_is_so_writes_nothing(
    shop: Shop, session: SparkSession, environment: Environment
) -> None:
    """No run and no commit where the journal says so already."""
    three_revisions(shop)
    journal = TableName.parse(f"{environment.schema}.journal")
    assert "Nothing to do" in command("stamp", "base").out
    command("stamp", "0002")
    before = latest_version(session, journal)
    again = command("stamp", "0002", "--json").json
    assert again["run"] is None
    assert again["current"] == "0002"
    assert latest_version(session, journal) == before


def test_stamp_takes_an_edited_file_as_it_is_now(shop: Shop) -> None:
    """After stamp, an applied file that was edited stands in nobody's way any more."""
    three_revisions(shop)
    command("stamp", "head")
    file = next((shop.folder / "versions").glob("0002*.py"))
    file.write_text(
        file.read_text(encoding="utf-8").replace("amount < 100", "amount < 200"), encoding="utf-8"
    )
    assert command("status").code == 6
    done = command("stamp", "head", "--json").json
    assert done["stamped"] == ["0002", "0003"]
    assert done["current"] == "0003"
    assert command("status").code == 0


def test_stamp_gives_up_a_revision_whose_file_is_gone(shop: Shop) -> None:
    """It counts as not applied any more."""
    three_revisions(shop)
    command("stamp", "head")
    for path in (shop.folder / "versions").iterdir():
        if path.name.startswith("0003") or path.name == "HEAD":
            path.unlink()
    assert command("upgrade", "--quiet").code == 6
    done = command("stamp", "head", "--json").json
    assert done["reverted"] == ["0003"]
    assert command("current").out.strip() == "0002"


def test_an_unknown_revision_is_refused(shop: Shop) -> None:
    """Exit 2; the journal is not even made."""
    three_revisions(shop)
    refused = command("stamp", "0009")
    assert refused.code == 2
    assert "no revision '0009'" in refused.words
    assert "base" in command("current").out


def test_stamp_waits_for_no_other_run(
    shop: Shop, session: SparkSession, environment: Environment
) -> None:
    """Exit 5 while another run holds the lock; unlock breaks it, and the holder is told."""
    three_revisions(shop)
    assert "No run holds the lock" in command("unlock").out
    assert command("unlock", "--json").json["broken"] is None
    with locked(
        session, environment, command="upgrade", revisions=[], tables=[], engine="{}"
    ) as lock:
        refused = command("stamp", "head")
        assert refused.code == 5
        assert lock.run in refused.words
        assert "deltacheck unlock" in refused.words
        broken = command("unlock", "--json").json["broken"]
        assert broken == lock.run
    assert "No run holds the lock" in command("unlock").out
