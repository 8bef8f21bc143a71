"""A write's arguments are checked before Spark is asked anything."""

from __future__ import annotations

from typing import Any

import pytest

from deltacheck.errors import DeclarationError, IdentifierError, UsageError
from deltacheck.quarantine import layout as own
from deltacheck.rules.model import Action, Gate
from deltacheck.writing.once import stream_batch
from deltacheck.writing.request import request


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": "errorifexists"},
        {"route": "columns"},
        {"replace_where": "id > 1"},
        {"mode": "replace", "replace_where": "id > 1"},
        {"max_bad": "5%"},
        {"batch_id": " "},
        {"figures": {"total": float("nan")}},
        {"figures": {"total": True}},
        {"batch_id": "b1", "options": {"txnAppId": "mine", "txnVersion": 1}},
    ],
)
def test_what_contradicts_itself_is_refused(arguments: dict[str, Any]) -> None:
    """The message names the argument and says that nothing was written."""
    with pytest.raises(UsageError, match="nothing was written") as refused:
        request("shop.orders", **arguments)
    assert (refused.value.table, bool(refused.value.hint)) == ("shop.orders", True)


@pytest.mark.parametrize("arguments", [{"gate": "many"}, {"max_bad": "105%", "route": "rows"}])
def test_a_limit_is_a_number_or_a_share(arguments: dict[str, Any]) -> None:
    """As everywhere else."""
    with pytest.raises(DeclarationError):
        request("shop.orders", **arguments)


def test_a_table_has_a_name() -> None:
    """Or a path."""
    with pytest.raises(IdentifierError):
        request("shop..orders")
    assert request("delta.`/data/orders`").table.path == "/data/orders"


def test_the_writers_options_that_deltacheck_needs_are_taken_out() -> None:
    """They compare without regard to case, as Spark's do."""
    asked = request(
        "shop.orders",
        mode="overwrite",
        options={
            "USERMETADATA": "mine",
            "replaceWhere": "day = '2026-11-01'",
            "PartitionOverwriteMode": "DYNAMIC",
            "mergeSchema": True,
        },
    )
    assert (asked.user_metadata, asked.replace_where) == ("mine", "day = '2026-11-01'")
    assert (asked.dynamic, asked.evolves) == (True, True)
    assert asked.options == {"mergeSchema": "True"}
    assert request("shop.orders").dynamic is None


def test_rules_may_be_given_in_any_of_the_ways_in_which_rules_are_written() -> None:
    """A text is an expression; a dict says what a file may say."""
    asked = request(
        "shop.orders",
        rules={"big": {"check": "amount < 50000", "on_violation": "warn"}, "Few": "n < 5"},
        gate="5%",
    )
    assert {key: rule.on_violation for key, rule in asked.rules.items()} == {
        "big": Action.WARN,
        "few": Action.QUARANTINE,
    }
    assert asked.gate == Gate.parse("5%")


def test_quarantined_rows_tell_whether_they_may_simply_be_appended() -> None:
    """Rows that were to overwrite something may not."""
    assert request("t").source == own.WRITE
    assert request("t", mode="overwrite").source == own.OVERWRITE
    assert request("t", mode="replace").source == own.OVERWRITE


def test_one_name_will_do_for_a_list_of_names() -> None:
    """A text is one name, not many letters."""
    asked = request("t", keep="source_file", partition_by="day")
    assert (asked.keep, asked.partition_by) == (("source_file",), ("day",))


def test_batches_of_a_stream_are_in_order() -> None:
    """A later batch's first slot is above all slots of an earlier one."""
    fences = [stream_batch("orders", number).fence(1) for number in (0, 1, 2)]
    assert len({fence.app for fence in fences}) == 1
    assert [fence.version for fence in fences] == sorted(fence.version for fence in fences)
    assert stream_batch("orders", 0).fence(999_999).version < fences[1].version
