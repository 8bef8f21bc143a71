"""Count what warn rules are for while the batch is written, without a job of its own.

The counts ride along as observed metrics. A rule on a column that the batch does not have is
left out, and so are all where one cannot be evaluated on a row; the log tells it, since a warning
must not stop a job.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import expr

from deltacheck.delta.table import Definition
from deltacheck.delta.violators import as_written
from deltacheck.names import TableName, quote
from deltacheck.quarantine.terms import condition
from deltacheck.rules.expression import parse_rule
from deltacheck.rules.model import Action
from deltacheck.writing.request import Request
from deltacheck.writing.seen import seen_by
from deltacheck.writing.survey import Survey

log = logging.getLogger("deltacheck")


_ROWS = "rows"


@dataclass(frozen=True)
class Watched:
    """A batch that is counted while it is written.

    Attributes:
        rules: Metric to the name of its rule.
    """

    rows: DataFrame
    observation: Observation | None = None
    rules: Mapping[str, str] | None = None

    def broken(self) -> dict[str, int]:
        """Rule to the rows that broke it; only once the rows have been written."""
        if self.observation is None or self.rules is None:
            return {}
        found = self.observation.get
        return {name: found[metric] for metric, name in self.rules.items() if found[metric]}

    def rows_seen(self) -> int | None:
        """How many rows were counted; None: none were, for there is no rule to count for."""
        return None if self.observation is None else int(self.observation.get[_ROWS])


def watch(session: SparkSession, df: DataFrame, asked: Request, known: Survey) -> Watched:
    """Have warn rules counted when the batch is written, on rows as the table will hold them."""
    warned = [rule for rule in known.declared.values() if rule.on_violation is Action.WARN]
    if not warned:
        return Watched(df)
    table = Definition(asked.table, session.table(asked.table.sql).schema, known.properties)
    seen = seen_by(session, df, table, widening=asked.evolves, computing=False)
    values = {name.lower(): sql for name, sql in seen.columns.items() if sql != quote(name)}
    there = {name.lower() for name in seen.columns} - seen.missing
    metrics, rules = [expr("count(*)").alias(_ROWS)], {}
    for number, rule in enumerate(warned):
        lacking = [
            path[0] for path in parse_rule(rule.expression).columns if path[0].lower() not in there
        ]
        if lacking:
            log.warning(
                "%s: the rule %s was not looked at, the batch has no column %s",
                asked.table,
                rule.name,
                lacking[0],
            )
            continue
        metric = f"m{number}"
        broken = f"(({condition(rule.expression).over(values)}) IS NOT TRUE)"
        metrics.append(expr(f"count_if({as_written(broken, 'true')})").alias(metric))
        rules[metric] = rule.name
    if not rules:
        return Watched(df)
    observation = Observation()
    return Watched(df.observe(observation, *metrics), observation, rules)


def not_looked_at(table: TableName, rules: Iterable[str]) -> None:
    """Tell that warn rules were left out, since Spark failed while it evaluated them."""
    log.warning(
        "%s: the warn rules %s were not looked at: Spark failed while it evaluated them",
        table,
        ", ".join(rules),
    )
