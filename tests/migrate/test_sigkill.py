"""Real processes, really killed: what they leave, the next process finishes.

A chain of processes: each recovers what the one before left, then dies at the next moment, so
that each moment costs one start of Java.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.harness.connect_server import SHORT_LIVED, ConnectServer
from tests.harness.processes import run_module

MOMENTS = 19
"""Moments of a run with one table and one revision."""

LOCAL_MOMENTS = (5, 12, 14)
"""After a constraint was tried, after the copy, after the DELETE: each costs a start of Java here,
and every moment is tried over Connect."""

DONE = {
    "left": {"(1, 5.0)": 1},
    "held": {"(2, -1.0)": 2, "(3, None)": 2},
    "distinct": 2,
    "constraints": ["amount_positive", "id_known"],
    "applied": ["0001"],
    "unsettled": 0,
    "attempts": 1,
}
SLOW_DONE = DONE | {"left": 39960, "held": 40, "distinct": 40}
CONF = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": SHORT_LIVED,
}


def run_victim(task: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    """Run a process to its end or death.

    Returns:
        Its exit code, and the documents that it printed.
    """
    process = run_module("tests.migrate.victim", task, seconds=900)
    documents = [json.loads(line) for line in process.stdout.splitlines() if line[:1] == "{"]
    assert process.returncode in (0, -signal.SIGKILL), process.stderr[-3000:]
    return process.returncode, documents


def chain_of(
    base: dict[str, Any], deaths: list[dict[str, Any]], prefix: str
) -> list[dict[str, Any]]:
    """Kill a process at each of some moments; what the next one found and finished."""
    accounts = []
    for number, death in enumerate([*deaths, None]):
        task = dict(base)
        if number:
            task["recover"] = f"{prefix}{number - 1}"
        if death is not None:
            task |= {"begin": f"{prefix}{number}", **death}
        code, documents = run_victim(task)
        assert code == (0 if death is None else -signal.SIGKILL), (death, documents)
        accounts += documents
    for account in accounts:
        del account["database"]
    return accounts


@pytest.mark.slow
def test_killed_in_a_local_warehouse(tmp_path: Path) -> None:
    """Python dies by SIGKILL after each commit to the tables, and its Java soon after."""
    base = {"spark": "local", "warehouse": str(tmp_path / "warehouse"), "conf": CONF}
    deaths = [{"moment": number} for number in LOCAL_MOMENTS]
    assert chain_of(base, deaths, "local") == [DONE] * len(deaths)


@pytest.mark.slow
@pytest.mark.connect
def test_killed_at_every_moment_of_an_upgrade_over_connect(connect_service: ConnectServer) -> None:
    """The client dies by SIGKILL; the server and its catalog live on; the lock is broken."""
    base = {"spark": connect_service.url, "unlock": True}
    deaths = [{"moment": number} for number in range(MOMENTS)]
    assert chain_of(base, deaths, "remote") == [DONE] * MOMENTS


@pytest.mark.slow
def test_killed_while_java_deletes(tmp_path: Path) -> None:
    """Python dies during the DELETE; Java may or may not commit it before it dies too."""
    base = {
        "spark": "local",
        "warehouse": str(tmp_path / "warehouse"),
        "conf": CONF,
        "slow": True,
    }
    deaths = [{"seconds": seconds} for seconds in (0.2, 1.0, 2.0)]
    assert chain_of(base, deaths, "dying") == [SLOW_DONE] * len(deaths)


@pytest.mark.slow
@pytest.mark.connect
def test_killed_while_a_server_deletes(connect_service: ConnectServer) -> None:
    """The client dies during the DELETE, and the server goes on with it all the same.

    The next run begins at once: its fence makes the DELETE fail, or comes after it and finds it
    in the history. Either way each row is in one place.
    """
    base = {"spark": connect_service.url, "unlock": True, "slow": True}
    deaths = [{"seconds": seconds} for seconds in (0.2, 1.0, 2.0)]
    assert chain_of(base, deaths, "orphan") == [SLOW_DONE] * len(deaths)
