"""Other packages that split a batch by rows, each in a process and an environment of its own.

    python -m benchmarks.rivals NAME

is told on standard input what to do: first a JSON document (Spark settings, the batch's place,
the rules), then a line for each round. It answers with a JSON document for each: seconds, good
and bad rows, or why the package cannot do it. A process of its own, since what these packages
require contradicts what deltacheck requires. Imports nothing of deltacheck.

Each package does what its documentation says for rows that break rules: good rows to one Delta
table, bad rows to another.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

Round = Callable[[DataFrame, str, str], None]
"""Splits a batch into a table of good rows and a table of bad rows."""


def sparkdq(session: SparkSession, rules: list[Mapping[str, Any]], folder: Path) -> Round:
    """``BatchDQEngine``: one pass marks the rows, each half is written by hand."""
    engine, management = import_module("sparkdq.engine"), import_module("sparkdq.management")
    checks = management.CheckSet()
    checks.add_checks_from_dicts([{**rule["sparkdq"], "check-id": rule["name"]} for rule in rules])

    def run(df: DataFrame, good: str, bad: str) -> None:
        result = engine.BatchDQEngine(checks).run_batch(df)
        result.pass_df().write.format("delta").mode("append").saveAsTable(good)
        result.fail_df().write.format("delta").mode("append").saveAsTable(bad)

    return run


def spark_expectations(
    session: SparkSession, rules: list[Mapping[str, Any]], folder: Path
) -> Round:
    """``with_expectations``: row rules with the action ``drop``; it writes both tables."""
    package = import_module("spark_expectations.core.expectations")
    Setting = import_module("spark_expectations.config.user_config").Constants  # noqa: N806
    settings = {
        Setting.se_notifications_enable_email: False,
        Setting.se_notifications_enable_slack: False,
        Setting.se_enable_error_table: True,
        Setting.se_enable_streaming: False,
    }

    def run(df: DataFrame, good: str, bad: str) -> None:
        rows = [
            {
                "product_id": "bench",
                "table_name": good,
                "rule_type": "row_dq",
                "rule": rule["name"],
                "column_name": rule["column"],
                "expectation": rule["sql"],
                "action_if_failed": "drop",
                "tag": "validity",
                "description": rule["name"],
                "enable_for_source_dq_validation": True,
                "enable_for_target_dq_validation": True,
                "is_active": True,
                "enable_error_drop_alert": False,
                "error_drop_threshold": 0,
                "query_dq_delimiter": "",
                "enable_querydq_custom_output": False,
                "priority": "medium",
            }
            for rule in rules
        ]
        writer = package.WrappedDataFrameWriter().mode("append").format("delta")
        expectations = package.SparkExpectations(
            product_id="bench",
            rules_df=session.createDataFrame(rows),
            stats_table=f"{good}_stats",
            stats_table_writer=writer,
            target_and_error_table_writer=writer,
            stats_streaming_options={Setting.se_enable_streaming: False},
        )

        wrap = expectations.with_expectations(good, write_to_table=True, user_conf=settings)
        wrap(lambda: df)()
        session.sql(f"CREATE VIEW {bad} AS SELECT * FROM {good}_error")

    return run


def lakelogic(session: SparkSession, rules: list[Mapping[str, Any]], folder: Path) -> Round:
    """``DataProcessor`` with the engine ``spark``; each half is written by hand."""
    import yaml

    processor = import_module("lakelogic").DataProcessor
    contract = folder / "contract.yaml"
    row_rules = [
        {"name": rule["name"], "sql": rule["sql"], "category": "validity"} for rule in rules
    ]
    document = {
        "version": "1.0.0",
        "info": {"title": "bench", "version": "1.0.0"},
        "dataset": "bench",
        "quality": {"row_rules": row_rules},
        "quarantine": {"enabled": True},
    }
    contract.write_text(yaml.safe_dump(document), encoding="utf-8")

    def run(df: DataFrame, good: str, bad: str) -> None:
        found, wrong = processor(str(contract), engine="spark").run(df)
        found.write.format("delta").mode("append").saveAsTable(good)
        wrong.write.format("delta").mode("append").saveAsTable(bad)

    return run


RIVALS: Mapping[str, Callable[[SparkSession, list[Mapping[str, Any]], Path], Round]] = {
    "spark-expectations": spark_expectations,
    "lakelogic": lakelogic,
    "sparkdq": sparkdq,
}


def main(name: str) -> None:
    """Answer on standard output; what the package prints goes to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    task = json.loads(sys.stdin.readline())
    builder = SparkSession.builder.appName(name)
    for key, value in task["conf"].items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    folder = Path(task["folder"])
    session.sql("CREATE DATABASE IF NOT EXISTS bench")
    number = 0

    def answer(**told: object) -> None:
        print(json.dumps(told), file=answers, flush=True)

    answer(version=version(name))
    run = None
    for _ in sys.stdin:
        number += 1
        good, bad = f"bench.good{number}", f"bench.bad{number}"
        started = time.perf_counter()
        try:
            if run is None:
                run = RIVALS[name](session, task["rules"], folder)
            run(session.read.parquet(task["batch"]), good, bad)
        except Exception as error:  # noqa: BLE001  (whatever it is, the answer tells it)
            answer(unable=f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200]}")
            continue
        seconds = time.perf_counter() - started
        rows = [session.table(table).count() for table in (good, bad)]
        answer(seconds=seconds, good=rows[0], bad=rows[1])
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])
