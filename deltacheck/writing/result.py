"""What became of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from pyspark.sql import SparkSession

from deltacheck.delta.table import Commit, history, latest_version
from deltacheck.names import TableName


@dataclass(frozen=True)
class WriteResult:
    """What became of a batch.

    Attributes:
        ok: Whether the batch is in the table.
        table: The table, as named.
        route: ``clean``: written as it is; ``batch``: quarantined whole.
        quarantine: Where the batch is, where it is not in the table.
        quarantined: Rows that went to quarantine.
        rule: The rule that Delta named, or None where it named none.
        broken: Rule to the rows of the batch that broke it.
    """

    ok: bool
    table: str
    route: Literal["clean", "batch"]
    quarantine: str | None = None
    quarantined: int = 0
    rule: str | None = None
    broken: Mapping[str, int] = field(default_factory=dict)
    _session: SparkSession | None = field(default=None, repr=False, compare=False)
    _write: str = field(default="", repr=False, compare=False)

    @cached_property
    def _commit(self) -> Commit | None:
        if not self.ok or self._session is None:
            return None
        for entry in history(self._session, TableName.parse(self.table), limit=1000):
            if entry.tag.get("attempt") == self._write:
                return entry
        return None

    @cached_property
    def written(self) -> int:
        """Rows that the table gained; looked up in its history when first asked for."""
        return 0 if self._commit is None else int(self._commit.metrics.get("numOutputRows", 0))

    @cached_property
    def version(self) -> int | None:
        """The table's version that holds the batch, or its last one where none does.

        Looked up in the table's history when first asked for.
        """
        if self._commit is not None:
            return self._commit.version
        if self._session is None:
            return None
        return latest_version(self._session, TableName.parse(self.table))
