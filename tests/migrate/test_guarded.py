"""An upgrade evaluates what stands behind a guard only where the guard lets it, as Delta does.

Compiled code computes first what occurs twice. Kind of bug: an upgrade said of a rule that it
cannot be evaluated, which Delta evaluates.
"""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.revisions.recorder import Op
from tests.harness import guarded
from tests.harness.marks import connect_is_slow
from tests.migrate.bench import Bench, chain

pytestmark = pytest.mark.usefixtures("compiled")


@connect_is_slow
@pytest.mark.parametrize("kind", guarded.RULES)
def test_violators_move_and_the_rules_are_enforced(
    any_spark: SparkSession, environment: Environment, database: str, kind: str
) -> None:
    """Counted, copied, deleted and enforced, all of it compiled."""
    bench, rules = Bench(any_spark, environment, database), guarded.RULES[kind]
    table = bench.table("t", guarded.COLUMNS, f"VALUES {guarded.VALUES}")

    def upgrade(op: Op) -> None:
        for name, text in rules.items():
            op.add_check(table, name, text, gate="100%")

    done = bench.upgrade(chain(upgrade))

    good = Counter(repr(row) for row in guarded.ROWS if guarded.good(kind, row))
    assert bench.rows(table) == good
    assert bench.held(table) == Counter(map(repr, guarded.ROWS)) - good
    assert bench.constraints(table).keys() == rules.keys()
    assert sum(one.moved for one in done.tables) == len(guarded.ROWS) - good.total()
