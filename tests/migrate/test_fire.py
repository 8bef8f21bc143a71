"""Whatever other clients do, and whenever we die, every row is in exactly one place."""

from __future__ import annotations

import pytest

from tests.migrate.bench import Bench
from tests.migrate.fire import balance, burn

SECONDS = 120


@pytest.mark.slow
@pytest.mark.connect
@pytest.mark.usefixtures("connect")
@pytest.mark.parametrize("seed", [1, 2])
def test_no_row_is_lost_or_doubled_under_fire(bench: Bench, seed: int) -> None:
    """Appends, updates, deletes, OPTIMIZE, upgrades, downgrades, releases and deaths at random.

    More seeds by hand: ``python -m tests.migrate.fire --seeds 1-20``.
    """
    fire = burn(bench, seed, SECONDS)
    lost, doubled = balance(fire)
    assert (dict(lost), dict(doubled)) == ({}, {}), dict(fire.events)
    assert fire.events["append"] > 0
    for client in ("upgrade", "release"):
        assert fire.events[client] + fire.events[f"{client} killed"] > 0, dict(fire.events)
    # On a slow machine each of them may lose to the others whenever it tries.
    for client in ("update", "delete", "optimize"):
        assert any(what.startswith(client) for what in fire.events), dict(fire.events)
    assert fire.events["rows moved"] > 0
