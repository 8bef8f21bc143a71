"""stamp, current and unlock: what the journal says, changed by hand."""

from __future__ import annotations

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.table import latest_version
from deltacheck.ledger.lock import locked
from deltacheck.names import TableName
from tests.cli.runner import Run
from tests.cli.shop import Shop


def three_revisions(shop: Shop, cli: Run) -> None:
    """0001, 0002 and 0003, each with a rule more."""
    rules: list[str] = []
    for name, expression in (("a", "amount > 0"), ("b", "amount < 100"), ("c", "id > 0")):
        rules.append(f"{name}: {expression}")
        shop.declare(*rules)
        assert cli("revision", "--autogenerate", "-m", name).code == 0


def test_stamp_records_without_running(cli: Run, shop: Shop, session: SparkSession) -> None:
    """The revision and all that it builds on count as applied; the table is as it was."""
    shop.fill(session)
    three_revisions(shop, cli)
    table = TableName.parse(shop.orders)
    before = latest_version(session, table)
    done = cli("stamp", "0002", "--json").document
    assert done["before"] is None
    assert done["current"] == "0002"
    assert done["stamped"] == ["0001", "0002"]
    assert latest_version(session, table) == before
    assert cli("current").out.strip() == "0002"
    found = {one["rule"]: one["state"] for one in cli("status", "--json").document["rules"]}
    assert found == {"a": "drifted", "b": "drifted", "c": "pending"}


def test_stamp_goes_back_and_to_base(cli: Run, shop: Shop) -> None:
    """What comes after the revision counts as not applied; base is nothing at all."""
    three_revisions(shop, cli)
    cli("stamp", "head")
    back = cli("stamp", "0001", "--json").document
    assert back["reverted"] == ["0003", "0002"]
    assert back["current"] == "0001"
    said = cli("stamp", "base")
    assert "recorded as not applied: 0001" in said.out
    assert "is at base" in said.out
    assert "base" in cli("current").out
    again = cli("stamp", "head", "--json").document
    assert again["stamped"] == ["0001", "0002", "0003"]


def test_stamping_what_is_so_writes_nothing(
    cli: Run, shop: Shop, session: SparkSession, environment: Environment
) -> None:
    """No run and no commit where the journal says so already."""
    three_revisions(shop, cli)
    journal = TableName.parse(f"{environment.schema}.journal")
    assert "Nothing to do" in cli("stamp", "base").out
    cli("stamp", "0002")
    before = latest_version(session, journal)
    again = cli("stamp", "0002", "--json").document
    assert again["run"] is None
    assert again["current"] == "0002"
    assert latest_version(session, journal) == before


def test_stamp_takes_an_edited_file_as_it_is_now(cli: Run, shop: Shop) -> None:
    """After stamp, an applied file that was edited stands in nobody's way any more."""
    three_revisions(shop, cli)
    cli("stamp", "head")
    file = next((shop.folder / "versions").glob("0002*.py"))
    file.write_text(
        file.read_text(encoding="utf-8").replace("amount < 100", "amount < 200"), encoding="utf-8"
    )
    assert cli("status").code == 6
    done = cli("stamp", "head", "--json").document
    assert done["stamped"] == ["0002", "0003"]
    assert done["current"] == "0003"
    assert cli("status").code == 0


def test_stamp_gives_up_a_revision_whose_file_is_gone(cli: Run, shop: Shop) -> None:
    """It counts as not applied any more."""
    three_revisions(shop, cli)
    cli("stamp", "head")
    for path in (shop.folder / "versions").iterdir():
        if path.name.startswith("0003") or path.name == "HEAD":
            path.unlink()
    assert cli("upgrade", "--quiet").code == 6
    done = cli("stamp", "head", "--json").document
    assert done["reverted"] == ["0003"]
    assert cli("current").out.strip() == "0002"


def test_an_unknown_revision_is_refused(cli: Run, shop: Shop) -> None:
    """Exit 2; the journal is not even made."""
    three_revisions(shop, cli)
    refused = cli("stamp", "0009")
    assert refused.code == 2
    assert "no revision '0009'" in refused.words
    assert "base" in cli("current").out


def test_stamp_waits_for_no_other_run(
    cli: Run, shop: Shop, session: SparkSession, environment: Environment
) -> None:
    """Exit 5 while another run holds the lock; unlock breaks it, and the holder is told."""
    three_revisions(shop, cli)
    assert "No run holds the lock" in cli("unlock").out
    assert cli("unlock", "--json").document["broken"] is None
    with locked(
        session, environment, command="upgrade", revisions=[], tables=[], engine="{}"
    ) as lock:
        refused = cli("stamp", "head")
        assert refused.code == 5
        assert lock.run in refused.words
        assert "deltacheck unlock" in refused.words
        broken = cli("unlock", "--json").document["broken"]
        assert broken == lock.run
    assert "No run holds the lock" in cli("unlock").out
