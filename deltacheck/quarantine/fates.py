"""What became of the rows in a quarantine: are they out of the table, and will they stay here?

A RESTORE of the table to a version before the DELETE brings back what a run moved; until a run
that died is settled, nobody can tell where its rows are; and a batch with an id that is not
decided yet will be written again, its rows in quarantine removed. Only reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.failures import EngineFailure
from deltacheck.delta.table import Commit, at_version, exists, history
from deltacheck.delta.violators import any_violator
from deltacheck.ledger.journal import read_journal
from deltacheck.names import TableName, literal, quote
from deltacheck.quarantine import layout as own

BEGIN = "begin"
"""What the table's commit says of itself by which an attempt to write a batch with an id begins.
Until another commit of that attempt, which says nothing, its rows may be removed again."""


@dataclass(frozen=True)
class Fates:
    """Which quarantined rows must not be written back.

    Attributes:
        restored: Attempts that a RESTORE has undone: their rows are in the table again.
        unsettled: Runs that are under way, or died and have not been settled.
        unknown: Runs that the environment's journal does not know.
        seen: All runs that had held rows at that time; None: nobody looked. Rows of another run
            have come since, from one that may be under way.
        begun: Attempts to write a batch that are under way, died, or lost to another.
        attempts: All attempts to write a batch with an id that had held rows at that time; as
            for ``seen``.
    """

    restored: frozenset[str] = frozenset()
    unsettled: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    seen: frozenset[str] | None = None
    begun: frozenset[str] = frozenset()
    attempts: frozenset[str] | None = None

    @property
    def is_restored(self) -> str:
        """SQL that is true for a row whose move was undone."""
        return _moved_by(own.ATTEMPT, self.restored)

    @property
    def is_unsettled(self) -> str:
        """SQL that is true for a row of an unsettled run."""
        known = _moved_by(own.RUN, self.unsettled)
        if self.seen is None:
            return known
        moved = f"{quote(own.SOURCE)} = '{own.UPGRADE}'"
        return f"({known} OR ({moved} AND NOT {_moved_by(own.RUN, self.seen)}))"

    @property
    def is_begun(self) -> str:
        """SQL that is true for a row of a batch that is not decided."""
        if self.attempts is None:
            return "false"
        decided = _listed(self.attempts - self.begun)
        attempt = f"coalesce({quote(own.ATTEMPT)}, '')"
        return f"({_OF_A_BATCH}{f' AND {attempt} NOT IN ({decided})' if decided else ''})"

    @property
    def is_unknown(self) -> str:
        """SQL that is true for a row of an unknown run."""
        return _moved_by(own.RUN, self.unknown)


_OF_A_BATCH = (
    f"{quote(own.BATCH)} IS NOT NULL AND {quote(own.SOURCE)} NOT IN ('{own.UPGRADE}', "
    f"'{own.GUARD}')"
)
"""SQL that is true for a row of a batch that is written exactly once: an action's own may not."""


def _listed(names: frozenset[str]) -> str:
    return ", ".join(literal(name) for name in sorted(names))


def _moved_by(column: str, names: frozenset[str]) -> str:
    if not names:
        return "false"
    # A row that names no run is one of a run that no journal knows.
    return (
        f"({quote(own.SOURCE)} = '{own.UPGRADE}' AND coalesce({quote(column)}, '') IN "
        f"({_listed(names)}))"
    )


def read_fates(
    session: SparkSession, source: TableName, quarantine: TableName, environment: Environment
) -> Fates:
    """Look up what became of the held rows of a quarantine.

    Args:
        environment: Where the journal of the runs is.

    Raises:
        LedgerError: The journal cannot be used.
        PySparkException, Py4JJavaError: The table's history cannot be read.
    """
    rows = session.sql(
        f"SELECT {quote(own.SOURCE)} = '{own.UPGRADE}' AS moved, "
        f"coalesce({quote(own.RUN)}, '') AS run, {quote(own.ATTEMPT)} AS attempt, "
        f"min({quote(own.VERSION)}) AS version FROM {quarantine.sql} "
        f"WHERE ({quote(own.SOURCE)} = '{own.UPGRADE}' OR {_OF_A_BATCH}) "
        f"AND {quote(own.STATE)} = '{own.HELD}' GROUP BY ALL"
    ).collect()
    # A table that is gone was neither restored nor will it be written to.
    there = bool(rows) and exists(session, source)
    moved = {row["attempt"]: row["version"] for row in rows if row["moved"]}
    batches = {row["attempt"]: row["version"] for row in rows if not row["moved"]}
    fates = Fates(
        seen=frozenset(),
        begun=_undecided(session, source, batches) if there and batches else frozenset(),
        attempts=frozenset(batches),
    )
    if not moved:
        return fates
    journal = read_journal(session, environment)
    runs = {row["run"] for row in rows if row["moved"]}
    return replace(
        fates,
        restored=restored_attempts(session, source, moved) if there else frozenset(),
        unsettled=frozenset(runs & {run.run for run in journal.unsettled}),
        unknown=frozenset(runs - {run.run for run in journal.runs}),
        seen=frozenset(runs),
    )


def _undecided(
    session: SparkSession, source: TableName, attempts: Mapping[str, int | None]
) -> frozenset[str]:
    """The attempts that began and did not decide, as far as the table's history tells."""
    oldest = min(version or 0 for version in attempts.values())
    commits = [one.tag for one in history(session, source, since=oldest - 1)]
    begun = {tag.get("attempt") for tag in commits if tag.get("step") == BEGIN}
    decided = {tag.get("attempt") for tag in commits if tag.get("step") is None}
    return frozenset(attempts) & (begun - decided)


def restored_rows(session: SparkSession, source: TableName, quarantine: TableName) -> int:
    """How many held rows of a quarantine are in the table again: a RESTORE brought them back."""
    found = session.sql(
        f"SELECT {quote(own.ATTEMPT)} AS attempt, min({quote(own.VERSION)}) AS version, "
        f"count(*) AS rows FROM {quarantine.sql} "
        f"WHERE {quote(own.SOURCE)} = '{own.UPGRADE}' AND {quote(own.STATE)} = '{own.HELD}' "
        f"GROUP BY {quote(own.ATTEMPT)}"
    ).collect()
    if not found:
        return 0
    versions = {row["attempt"]: row["version"] for row in found}
    back = restored_attempts(session, source, versions)
    return sum(row["rows"] for row in found if row["attempt"] in back)


def restored_attempts(
    session: SparkSession, source: TableName, attempts: Mapping[str, int]
) -> frozenset[str]:
    """The attempts whose rows a RESTORE of the table has brought back.

    Args:
        attempts: Attempt to the version that its rows were read from.
    """
    commits = history(session, source, since=min(attempts.values()))[::-1]
    if not any(entry.operation == "RESTORE" for entry in commits):
        return frozenset()
    deletes = {
        entry.tag["attempt"]: entry
        for entry in commits
        if entry.operation == "DELETE" and "attempt" in entry.tag
    }
    return frozenset(
        name for name in attempts if not _still_out(session, source, commits, deletes.get(name))
    )


def undone_releases(
    session: SparkSession, source: TableName, quarantine: TableName, where: str
) -> frozenset[str]:
    """The releases, of rows that a condition selects, whose rows a RESTORE may have taken out.

    Args:
        where: SQL over the quarantine's columns.
    """
    found = session.sql(
        f"SELECT DISTINCT {quote(own.RELEASE)} AS release FROM {quarantine.sql} "
        f"WHERE ({where}) AND {quote(own.STATE)} = '{own.RELEASED}'"
    ).collect()
    releases = {row["release"] for row in found} - {None}
    if not releases:
        return frozenset()
    try:
        commits = history(session, source)[::-1]
    except EngineFailure:
        # The table is gone, which is no RESTORE.
        return frozenset()
    if not any(entry.operation == "RESTORE" for entry in commits):
        return frozenset()
    # An upgrade's step is a rule's name, which may be this very word.
    landed = {
        entry.tag["attempt"]: entry
        for entry in commits
        if entry.tag.get("step") == "append" and "attempt" in entry.tag
    }
    return frozenset(
        name
        for name in releases
        # An action of the user's own is not to be found in the history; nor is an old release.
        if name not in landed or not _still_out(session, source, commits, landed[name])
    )


def _still_out(
    session: SparkSession, source: TableName, commits: Sequence[Commit], delete: Commit | None
) -> bool:
    """Whether what a commit did to the rows, such as a DELETE, holds in the table's last version.

    One that the history has forgotten is older than all of it. A RESTORE to a version as
    old may have undone it, and is taken to have.
    """
    since = commits[0].version if delete is None else delete.version
    out = {since: True}
    for entry in commits:
        if entry.version > since or (delete is None and entry.version == since):
            before = out.get(entry.version - 1, True)
            out[entry.version] = (
                _after_restore(session, source, entry, delete, out)
                if entry.operation == "RESTORE"
                else before
            )
    return out[commits[-1].version]


def _after_restore(
    session: SparkSession,
    source: TableName,
    restore: Commit,
    delete: Commit | None,
    out: Mapping[int, bool],
) -> bool:
    version = restore.parameters.get("version")
    if version is not None:
        return out.get(int(version), False)
    # A RESTORE to a timestamp does not say which version that was. If the rows are back, so
    # are violators of the rules that they were moved for.
    if delete is None or "rules" not in delete.tag:
        return False
    where = any_violator(delete.tag["rules"])
    query = f"SELECT 1 FROM {at_version(source, restore.version)} WHERE {where} LIMIT 1"
    try:
        return not session.sql(query).collect()
    except EngineFailure:
        # That version cannot be read any more: as if they were back, which doubles nothing.
        return False
