"""What became of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from pyspark.sql import SparkSession

from deltacheck.delta.table import Commit, exists, latest_version
from deltacheck.names import TableName
from deltacheck.quality.batch import BatchResult
from deltacheck.writing.once import find_commit


@dataclass(frozen=True)
class WriteResult:
    """What became of a batch.

    Attributes:
        ok: False where rows came and none of them is in the table, since they are in
            quarantine.
        table: The table, as named.
        route: ``clean``: written as it came; ``batch``: quarantined whole; ``rows``: each row
            went where it belongs.
        quarantine: Where bad rows are, or None where none were quarantined.
        quarantined: Rows that went to quarantine.
        dropped: Rows that were left out, since they broke a ``drop`` rule.
        bad: Rows that broke a rule which is more than a warning, each once.
        rule: The rule that Delta named, or the check for which the batch is quarantined; None
            where there is neither.
        broken: Rule to the rows of the batch that broke it, warn rules included; only rules
            that were broken.
        checks: Check of the batch as a whole to why it failed, for those that failed and did
            not stop it.
        batch_id: The batch's id; None: writing this batch again would write it twice.
        repeated: Whether this id had been written before; this is what became of it then.
    """

    ok: bool
    table: str
    route: Literal["clean", "batch", "rows"]
    quarantine: str | None = None
    quarantined: int = 0
    dropped: int = 0
    bad: int = 0
    rule: str | None = None
    broken: Mapping[str, int] = field(default_factory=dict)
    checks: Mapping[str, str] = field(default_factory=dict)
    batch_id: str | None = None
    repeated: bool = False
    _session: SparkSession | None = field(default=None, repr=False, compare=False)
    _attempt: str | None = field(default=None, repr=False, compare=False)
    _rows: int | None = field(default=None, repr=False, compare=False)
    _came: int | None = field(default=None, repr=False, compare=False)
    _landed: Commit | None = field(default=None, repr=False, compare=False)
    _checked: tuple[BatchResult, ...] = field(default=(), repr=False, compare=False)

    @cached_property
    def _commit(self) -> Commit | None:
        if self._landed is not None:
            return self._landed
        if self._session is None or self._attempt is None:
            return None
        return find_commit(self._session, TableName.parse(self.table), self._attempt)

    @cached_property
    def written(self) -> int | None:
        """Rows that the table gained; None for a guarded write, which only its owner knows.

        Looked up in the table's history when first asked for, unless it is known.
        """
        if self._rows is not None or self._attempt is None:
            return self._rows
        if self._commit is None:
            return 0
        metrics = self._commit.metrics
        # An overwrite of some rows of a file counts those too that it copies into a new one.
        return int(metrics.get("numOutputRows", 0)) - int(metrics.get("numCopiedRows", 0))

    @cached_property
    def version(self) -> int | None:
        """The table's version that holds the batch, or its last one where none does.

        None where there is no table, since nothing of the batch was to be in it.
        Looked up in the table's history when first asked for.
        """
        if self._commit is not None:
            return self._commit.version
        if self._session is None:
            return None
        table = TableName.parse(self.table)
        return latest_version(self._session, table) if exists(self._session, table) else None
