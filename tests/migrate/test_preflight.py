"""Everything that can be checked is checked before a row moves."""

from __future__ import annotations

from collections import Counter

from deltacheck.revisions.recorder import Op
from tests.migrate.bench import Bench, chain

FUNCTIONS = [
    "split_part(s, '-', 1) = 'a'",
    "luhn_check(s) OR s = 'a-b'",
    "array_size(split(s, '-')) = 2",
    "btrim(s) = s AND s LIKE 'a%'",
    "regexp_count(s, '-') = 1 AND s LIKE 'a%'",
    "try_to_timestamp(s) IS NULL AND equal_null(s, 'a-b')",
]


def test_functions_of_spark_that_delta_does_not_list(bench: Bench) -> None:
    """No row is moved for a rule that ADD CONSTRAINT refuses afterwards.

    Kind of bug: Delta's stricter validation of rules, asked for, refused ordinary functions
    after their violators had been moved.
    """
    table = bench.table("t", "s STRING", "VALUES ('a-b'), ('c-d')")

    def upgrade(op: Op) -> None:
        for place, rule in enumerate(FUNCTIONS):
            op.add_check(table, f"r{place}", rule, gate="100%")

    history = chain(upgrade)
    result = bench.upgrade(history)
    assert {step.state for step in result.steps} == {"enforced"}
    assert bench.held(table) == Counter({"('c-d',)": 1})
