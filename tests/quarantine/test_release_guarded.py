"""A release evaluates what stands behind a guard only where the guard lets it, as Delta does.

Kind of bug: compiled code computes first what occurs twice, so that rows could not be judged.
"""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from deltacheck import quarantine
from tests.harness import guarded
from tests.quarantine.held import hold, make_table, rows

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.mark.parametrize("kind", guarded.RULES)
def test_rows_that_pass_go_back(session: SparkSession, database: str, kind: str) -> None:
    table = f"{database}.t"
    make_table(session, table, guarded.COLUMNS, guarded.RULES[kind])
    hold(session, table, guarded.VALUES, columns=("a", "b"))

    done = quarantine.release(table, session=session)

    good = [row for row in guarded.ROWS if guarded.good(kind, row)]
    assert rows(session, table, "a, b") == Counter(good)
    assert (done.rows, done.kept) == (len(good), len(guarded.ROWS) - len(good))
