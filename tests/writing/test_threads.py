"""Several threads write through one session, and nothing of one shows in another."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

import deltacheck
from deltacheck.delta.table import history
from deltacheck.names import TableName
from tests.writing.batches import batch, everywhere, ids, make_table, record

THREADS, BATCHES = 4, 2
DELTAS_OWN = "spark.databricks.delta.lastCommitVersionInSession"


def settings_of(session: SparkSession) -> dict[str, str]:
    """A session's settings."""
    return {key: value for key, value in dict(session.conf.getAll).items() if key != DELTAS_OWN}


def test_threads_write_clean_and_bad_batches_to_the_same_and_to_other_tables(
    spark: SparkSession, database: str
) -> None:
    """Figures, routes, tags, metadata and settings are each write's own."""
    shared = make_table(spark, f"{database}.shared")
    record(spark, shared, {"id_even": {"check": "id % 2 = 0", "on_violation": "warn"}})
    own = [make_table(spark, f"{database}.own{number}") for number in range(THREADS)]
    settings = settings_of(spark)

    def work(number: int) -> list[deltacheck.WriteResult]:
        results = []
        for step in range(BATCHES):
            first = 100 * number + 10 * step
            # Thread and step say which rows are bad and how they are to be written.
            values = [f"({first + n}, {-1 if n < step else 5}, 'new')" for n in range(4)]
            results += [
                deltacheck.write(
                    batch(spark, *values),
                    table,
                    route="rows" if number % 2 else "batch",
                    batch_id=f"{number}/{step}" if number < 2 else None,
                    job=f"job{number}",
                    options={"userMetadata": json.dumps({"thread": number})},
                )
                for table in (shared, own[number])
            ]
        return results

    with ThreadPoolExecutor(THREADS) as pool:
        done = list(pool.map(work, range(THREADS)))

    for number, results in enumerate(done):
        rows = Counter(100 * number + 10 * step + n for step in range(BATCHES) for n in range(4))
        assert everywhere(spark, own[number]) == rows
        for place, result in enumerate(results):
            step, by_rows = place // 2, bool(number % 2)
            assert result.route == ("clean" if not step else "rows" if by_rows else "batch")
            assert result.quarantined == (0 if not step else step if by_rows else 4)
            assert result.broken.get("amount_positive", 0) == step
            warned = {"id_even": 2} if result.table == shared else {}
            assert {k: n for k, n in result.broken.items() if k == "id_even"} == warned
            assert result.written == 4 - result.quarantined
        kept = spark.table(f"{own[number]}_quarantine").collect()
        assert {row["_deltacheck_job"] for row in kept} == {f"job{number}"}
    assert (
        len(ids(spark, shared)) + len(ids(spark, f"{shared}_quarantine")) == 4 * BATCHES * THREADS
    )

    for table in (shared, *own):
        tagged = [entry for entry in history(spark, TableName.parse(table)) if entry.tag]
        by_attempt: dict[str, set[str]] = {}
        for entry in tagged:
            told = json.loads(entry.user_metadata or "{}")
            if "thread" in told:
                assert entry.tag["job"] == f"job{told['thread']}"
            by_attempt.setdefault(entry.tag["attempt"], set()).add(entry.tag["job"])
        assert all(len(jobs) == 1 for jobs in by_attempt.values())
        plain = [entry for entry in history(spark, TableName.parse(table)) if not entry.tag]
        assert all(entry.operation != "WRITE" for entry in plain)
    assert settings_of(spark) == settings
