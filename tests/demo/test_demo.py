"""The worked example, run as a newcomer runs it: a real process on a new folder."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

pytestmark = pytest.mark.slow

# One process, so that Spark starts once: the commands that the example tells a newcomer to go
# on with, then the rows of both tables and of their quarantines.
AFTERWARDS = """
import json, sys
from contextlib import redirect_stdout
from io import StringIO
from deltacheck.cli.app import _run
from deltacheck import session
from deltacheck.delta.table import history, read_table
from deltacheck.names import TableName

def command(*words):
    text = StringIO()
    with redirect_stdout(text):
        code = _run([*words, "--quiet"])
    return code, text.getvalue()

tables = ["shop.orders", "shop.customers", "shop.orders_quarantine", "shop.customers_quarantine",
          "deltacheck.journal"]
spark = session()
def versions():
    found = {}
    for name in tables:
        read_table(spark, TableName.parse(name))
        found[name] = history(spark, TableName.parse(name), limit=1)[0].version
    return found

before = versions()
again = command("upgrade")
after = versions()
rows = {name: [list(map(str, row)) for row in spark.table(name).collect()] for name in tables[:4]}
json.dump({
    "again": again, "before": before, "after": after,
    "status": command("status", "--json"), "held": command("quarantine", "list", "--json"),
    "columns": spark.table("shop.orders_quarantine").columns, "rows": rows,
}, sys.stdout)
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """What the demo printed, and what was found in its folder afterwards."""
    folder = tmp_path_factory.mktemp("demo") / "shop"
    made = subprocess.run(
        [sys.executable, "-m", "deltacheck.cli.app", "demo", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    looked = subprocess.run(
        [sys.executable, "-c", AFTERWARDS], cwd=folder, capture_output=True, text=True, check=False
    )
    assert looked.returncode == 0, looked.stderr
    return made.stdout, json.loads(looked.stdout)


def test_the_demo_shows_that_no_row_is_lost(demo: tuple[str, dict[str, Any]]) -> None:
    """Rows before = rows left + rows moved, in the demo's own output and in its tables."""
    output, found = demo
    sums = re.findall(
        r"(shop\.\w+): (\d+) rows before = (\d+) left \+ (\d+) moved to (\S+)", output
    )
    assert {name for name, *_ in sums} == {"shop.orders", "shop.customers"}
    for name, before, left, moved, quarantine in sums:
        assert int(before) == int(left) + int(moved)
        written = 3 if name == "shop.orders" else 0
        refused = 4 if name == "shop.orders" else 0
        assert len(found["rows"][name]) == int(left) + written
        assert len(found["rows"][quarantine]) == int(moved) + refused


def test_duplicates_among_the_bad_rows_keep_their_multiplicity(
    demo: tuple[str, dict[str, Any]],
) -> None:
    """The order that the shop has twice is twice in quarantine."""
    _, found = demo
    place = found["columns"].index("order_id")
    counts = Counter(row[place] for row in found["rows"]["shop.orders_quarantine"])
    assert counts["1012"] == 2


def test_a_second_upgrade_has_nothing_to_do_and_makes_no_commit(
    demo: tuple[str, dict[str, Any]],
) -> None:
    """The versions of all tables, the journal's among them, are what they were."""
    _, found = demo
    code, text = found["again"]
    assert code == 0
    assert "Nothing to do" in text
    assert found["before"] == found["after"]


def test_every_rule_of_the_demo_is_enforced(demo: tuple[str, dict[str, Any]]) -> None:
    """Status reads every constraint back from the tables, with the rows that broke it."""
    _, found = demo
    code, text = found["status"]
    assert code == 0
    states = {rule["rule"]: rule for rule in json.loads(text)["rules"]}
    assert {name: rule["state"] for name, rule in states.items()} == {
        "customer_id_present": "enforced",
        "email_has_at": "enforced",
        "order_id_present": "enforced",
        "amount_positive": "enforced",
        "status_known": "enforced",
        "amount_plausible": "warn",
    }
    # The upgrade found two NULL amounts that a naive NOT (amount > 0) would have missed.
    assert states["amount_positive"]["quarantined"] == 7
    assert states["order_id_present"]["kind"] == "not_null"
    assert states["order_id_present"]["enforced_by"] == "check"


def test_the_refused_batch_waits_whole(demo: tuple[str, dict[str, Any]]) -> None:
    """The bad batch is in quarantine with its good rows, each row with all rules it broke."""
    _, found = demo
    code, text = found["held"]
    assert code == 0
    batch = [entry for entry in json.loads(text)["held"] if entry["source"] == "write"]
    assert {tuple(sorted(entry["rules"])): entry["rows"] for entry in batch} == {
        (): 2,
        ("amount_positive",): 1,
        ("order_id_present", "status_known"): 1,
    }
