"""Keep deltacheck's own tables quick to read, however many runs and batches they tell of.

Each run and each batch adds a small file. Here they are put together, which changes no row, so
whoever reads or appends meanwhile goes on.
"""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.commit import Statement, Tag, commit
from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.errors import LedgerError
from deltacheck.ledger.journal import JOURNAL, journal_name
from deltacheck.ledger.quality_log import LOG, log_name
from deltacheck.ledger.tables import own_properties
from deltacheck.names import TableName

MANY_FILES = 50
"""More than so many are worth putting together. Counting them reads the table's log alone."""

TRIM = "trim"
"""What a commit says of itself that deletes old lines of the log, or puts small files together."""

_TRIES = 5
"""How often to compact a table that others append to."""

_warnings = logging.getLogger("deltacheck")


def compact(session: SparkSession, environment: Environment, tag: Tag, *, above: int = 1) -> None:
    """Put the files of the quality log and of the journal together, where they are many.

    Args:
        above: So many may stay as they are.

    Raises:
        LedgerError: A newer deltacheck wrote one, or it is something else.
        PySparkException, Py4JJavaError: It cannot be written.
    """
    for name, what in ((log_name(environment), LOG), (journal_name(environment), JOURNAL)):
        if own_properties(session, name, what) is not None:
            compact_table(session, name, tag, above=above)


def compact_table(session: SparkSession, name: TableName, tag: Tag, *, above: int) -> None:
    """Put the files of one of deltacheck's own tables together, where they are many.

    Raises:
        PySparkException, Py4JJavaError: It cannot be written.
    """
    if len(session.table(name.sql).inputFiles()) > above:
        commit(session, name, Statement(f"OPTIMIZE {name.sql}"), tag=tag, tries=_TRIES)


def compact_where_many(session: SparkSession, environment: Environment, tag: Tag) -> None:
    """As ``compact``, where there are more than ``MANY_FILES``; what fails is only warned of.

    It is for after a run, which has done its work by then; the next run tries again.
    """
    try:
        compact(session, environment, tag, above=MANY_FILES)
    except (LedgerError, *EngineFailure) as error:
        why = error.code if isinstance(error, LedgerError) else failure_of(error).kind
        place = environment.schema
        _warnings.warning("the small files of %s could not be put together (%s)", place, why)
