"""Write each batch of a stream once, whatever is killed in between.

Spark may hand the same batch to ``foreachBatch`` again after a restart, with the same number
and, from a source that has moved on, with other rows. The query's name and the number are the
batch's id.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from pyspark.sql import DataFrame

from deltacheck.delta.session import is_connect
from deltacheck.errors import UsageError
from deltacheck.writing.once import stream_batch
from deltacheck.writing.request import (
    Figure,
    OnQuarantine,
    Request,
    Rules,
    read_figures,
    request,
)
from deltacheck.writing.write import perform, quarantined_error

log = logging.getLogger("deltacheck")

FiguresOf = Callable[[DataFrame, int], Mapping[str, Figure]]
"""What a job says of a batch of a stream and its number."""

_QUERY_ID = "sql.streaming.queryId"
"""Where Spark keeps, while it works on a batch, the id that it took from the checkpoint
(``StreamExecution.QUERY_ID_KEY``)."""


@dataclass(frozen=True)
class StreamWriter:
    """What ``foreachBatch`` calls with each batch and its number.

    Attributes:
        figures: What gives the figures of each batch; None: those that are asked for.
    """

    query: str
    asked: Request
    figures: FiguresOf | None = None

    def __call__(self, df: DataFrame, number: int) -> None:
        """Write one batch.

        Raises:
            BatchError: The stream was started anew from another checkpoint under the same
                query name.
            DeltacheckError, PySparkException, Py4JJavaError: As for ``write``.
        """
        batch = stream_batch(self.query, number, _checkpoint(df))
        asked = replace(self.asked, batch=batch)
        if self.figures is not None:
            told = read_figures(str(asked.table), self.figures(df, number))
            asked = replace(asked, figures=told)
        result = perform(df, asked)
        # Whether another checkpoint's batch had this number cannot be told over Connect.
        doubtful = result.repeated and batch.checkpoint is None
        log.log(
            logging.WARNING if doubtful else logging.INFO,
            "%s: batch %s %s; %s rows written, %d quarantined, %d dropped; rules broken: %s; Delta "
            "named %s; version %s",
            result.table,
            result.batch_id,
            "had been written before" if result.repeated else f"took the route {result.route}",
            result.written,
            result.quarantined,
            result.dropped,
            dict(result.broken) or "none",
            result.rule or "none",
            result.version,
        )
        # A batch that is tried again after the error would otherwise stop the stream for good.
        if self.asked.strict and not result.ok and not result.repeated:
            raise quarantined_error(result)


def _checkpoint(df: DataFrame) -> str | None:
    session = df.sparkSession
    if is_connect(session):
        return None
    told: str | None = session.sparkContext.getLocalProperty(_QUERY_ID)
    return told


def foreach_batch(
    table: str,
    *,
    query: str,
    mode: Literal["append", "overwrite"] = "append",
    route: Literal["batch", "rows"] = "batch",
    replace_where: str | None = None,
    options: Mapping[str, object] | None = None,
    rules: Rules | None = None,
    checks: Mapping[str, object] | None = None,
    figures: Mapping[str, Figure] | FiguresOf | None = None,
    keep: str | Iterable[str] = (),
    quarantine: str | None = None,
    max_bad: str | int | None = None,
    gate: str | int | None = None,
    strict: bool = False,
    create: bool = True,
    job: str | None = None,
    on_quarantine: OnQuarantine | None = None,
) -> StreamWriter:
    """A function for ``foreachBatch`` that writes each batch of a stream once.

    ::

        stream.writeStream.foreachBatch(
            deltacheck.foreach_batch("shop.orders", query="orders", route="rows")
        ).option("checkpointLocation", checkpoint).start()

    Args:
        table: The table.
        query: A name of the stream's own: no other stream that writes to the table may have
            it, nor this one after it has been started anew from another checkpoint.
        figures: Figures that checks hold each batch against, by name; or a function of a batch
            and its number that gives them.
        strict: Stop the stream after a batch of which no row was written has been
            quarantined. Started again, it goes on with the next batch.

    The other arguments are those of ``write``.

    Raises:
        UsageError: The arguments contradict each other.
        DeclarationError: A rule or a gate is malformed.
    """
    if not query.strip() or "/" in query:
        raise UsageError(
            f"{query!r} is not a name for a stream that writes to {table}; nothing was written.",
            hint="Give it a name without a slash.",
            table=table,
        )
    return StreamWriter(
        query,
        request(
            table,
            mode=mode,
            route=route,
            # Every batch has an id; this one is only looked at.
            batch=stream_batch(query, 0),
            replace_where=replace_where,
            options=options,
            rules=rules,
            checks=checks,
            figures=None if callable(figures) else figures,
            keep=keep,
            quarantine=quarantine,
            max_bad=max_bad,
            gate=gate,
            strict=strict,
            create=create,
            job=job,
            on_quarantine=on_quarantine,
        ),
        figures if callable(figures) else None,
    )
