"""Move violators from a table to its quarantine, so that none is lost and none is doubled.

No transaction spans two tables. So the copy is made first, under an attempt of its own, from
a pinned version; then the rows are deleted; then the DELETE's own commit is looked at, and
unless it read the version that was copied, the copy is made anew from the version that it
read. What the table's history says is the truth; the copy follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from deltacheck.delta.commit import Fence, Frame, Statement, Tag, commit
from deltacheck.delta.failures import EngineFailure, failure_of, is_conflict
from deltacheck.delta.table import Commit, count_rows, frame, history, reaches
from deltacheck.delta.violators import any_violator, violators_of
from deltacheck.errors import LockLostError, QuarantineError
from deltacheck.names import TableName, literal, quote
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.difference import rows_gone
from deltacheck.quarantine.place import Labels, labelled, prepare
from deltacheck.rules.expression import parse_rule

NextFence = Callable[[], Fence]
"""Gives each write its place in the order of our writes."""

_TRIES = 20
"""How often a write to a quarantine is tried while batches arrive there."""

_FENCE = "deltacheck.fence"
"""A property that is set for the sake of its commit: an ALTER in flight then fails."""


@dataclass(frozen=True)
class Attempt:
    """One try to move the rows that break any of some rules.

    Attributes:
        id: Unique over all runs.
        rules: Rule name to expression.
        named: Further rules whose names go with a row that breaks them.
    """

    id: str
    run: str
    revision: str
    rules: Mapping[str, str]
    named: Mapping[str, str] = field(default_factory=dict)

    @property
    def tag(self) -> Tag:
        """What the attempt's commits say of themselves."""
        return Tag(
            run=self.run,
            revision=self.revision,
            attempt=self.id,
            rules=self.rules,
            named=self.named or None,
        )

    @property
    def violators(self) -> Mapping[str, str]:
        """Rule name to the predicate of its violators."""
        return violators_of({**self.rules, **self.named})

    @property
    def where(self) -> str:
        """The predicate of the rows to be moved."""
        return any_violator(self.rules)

    @property
    def uses_clock(self) -> bool:
        """Whether a SELECT and a later DELETE may mean different rows of one version."""
        return any(parse_rule(text).uses_clock for text in self.rules.values())


@dataclass(frozen=True)
class Moved:
    """What became of an attempt.

    Attributes:
        rows: How many rows it deleted from the table; its copy has the same.
        version: The version that they were deleted from; None where none was.
        kept: Rows of a copy of which it can no longer be told whether they are in the table.
    """

    rows: int
    version: int | None = None
    kept: int = 0


def move(
    session: SparkSession,
    source: TableName,
    quarantine: TableName,
    attempt: Attempt,
    version: int,
    fence: NextFence,
) -> Moved:
    """Copy the violators of a version, then delete them, then make the copy what was deleted.

    Whatever is raised, ``settle`` the attempt, once nothing of it can be in flight.

    Args:
        version: The version of the source that the copy is read from.
        fence: Gives each write its place.

    Raises:
        LockLostError: A later run has fenced this one off.
        QuarantineError: The quarantine cannot be written, no row was moved; or it could not
            be completed after the DELETE.
        PySparkException, Py4JJavaError: What the DELETE raises; among it, a conflict with
            another writer.
    """
    rows = frame(session, source, version).where(attempt.where)
    try:
        _copy(session, source, quarantine, attempt, rows, version, fence)
    except EngineFailure as error:
        if is_conflict(error):
            raise
        raise QuarantineError(
            f"The quarantine {quarantine} cannot be written: Spark says "
            f"{failure_of(error).condition or failure_of(error).kind}. What was "
            f"to be moved now is still in {source}.",
            hint="Check the quarantine's place and your rights there, then run the same command "
            "again.",
            table=str(source),
        ) from None
    statement = Statement(f"DELETE FROM {source.sql} WHERE {attempt.where}")
    deleted = commit(session, source, statement, tag=attempt.tag, fence=fence())
    moved = settle(session, source, quarantine, [attempt], since=version, fence=fence)[attempt.id]
    if not deleted and moved.version is None:
        # A DELETE that its fence skipped returns nothing; one that is sent twice by a
        # client that lost the answer is skipped too, and is in the history.
        raise LockLostError(
            f"A later run has taken over {source}; run {attempt.run} stops here. No row was "
            "moved by this attempt.",
            hint="Run the same command again once the other run has ended.",
        )
    return moved


def settle(
    session: SparkSession,
    source: TableName,
    quarantine: TableName,
    attempts: Iterable[Attempt],
    *,
    since: int,
    fence: NextFence,
    same_table: bool = True,
) -> dict[str, Moved]:
    """Make each attempt's copy equal to what its DELETE deleted.

    Only for attempts that can no longer commit: their statements have returned, or they have
    been fenced off.

    Args:
        since: A version of the source from before the attempts.
        same_table: Whether the source is the table that it was then. A copy without a DELETE
            goes only if the history can tell that there was none; else it stays, since a row
            that is held twice can be discarded, and one that is lost cannot be found.

    Returns:
        Attempt to what became of it.

    Raises:
        QuarantineError: The versions that tell what was deleted are no longer there.
        PySparkException, Py4JJavaError: Whatever Spark or Delta raises.
    """
    wanted = {attempt.id: attempt for attempt in attempts}
    if not wanted:
        return {}
    commits = history(session, source, since=since)
    deletes, certain = _by_attempt(commits), same_table and reaches(commits, since)
    copies = _copies(session, quarantine, wanted)
    moved: dict[str, Moved] = {}
    for name, attempt in wanted.items():
        delete, copy = deletes.get(name), copies.get(name)
        if delete is None:
            if copy is not None and certain:
                _remove(session, quarantine, attempt, fence)
            moved[name] = Moved(0, kept=0 if copy is None or certain else copy[1])
            continue
        rows, read = _deleted_rows(session, source, delete), _read_version(delete)
        if copy != (read, rows) or attempt.uses_clock:
            _repair(session, source, quarantine, attempt, delete, rows, fence)
        moved[name] = Moved(rows, read)
    return moved


def fence_off(
    session: SparkSession, table: TableName, tag: Tag, fence: Fence, *, alters: bool = False
) -> None:
    """Commit nothing under a later place: whatever of ours is in flight on the table fails.

    Args:
        alters: Also commit to the table's metadata. ALTER takes no part in the order of
            fenced writes, and fails where the metadata changed while it ran.

    Raises:
        PySparkException, Py4JJavaError: Whatever Spark or Delta raises.
    """
    empty = session.table(table.sql).where("false")
    while True:
        try:
            commit(session, table, Frame(empty.coalesce(1)), tag=tag, fence=fence, tries=_TRIES)
            break
        except EngineFailure as error:
            failure = failure_of(error)
            # An identity column may not be given, and no schema tells which column is one.
            if failure.family != "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED":
                raise
            empty = empty.drop(failure.parameters["colName"])
    if alters:
        statement = (
            f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({literal(_FENCE)} = '{fence.version}')"
        )
        commit(session, table, Statement(statement), tag=tag, tries=_TRIES)


def deletes_of(session: SparkSession, source: TableName, since: int) -> dict[str, Commit]:
    """The DELETEs of ours in the history of a table, by attempt."""
    return _by_attempt(history(session, source, since=since))


def _by_attempt(commits: Iterable[Commit]) -> dict[str, Commit]:
    return {
        entry.tag["attempt"]: entry
        for entry in commits
        if entry.operation == "DELETE" and "attempt" in entry.tag
    }


def attempts_of(session: SparkSession, quarantine: TableName, run: str) -> list[str]:
    """The attempts of a run that have a copy in a quarantine."""
    rows = session.sql(
        f"SELECT DISTINCT {quote(own.ATTEMPT)} AS attempt FROM {quarantine.sql} "
        f"WHERE {quote(own.RUN)} = {literal(run)} AND {quote(own.SOURCE)} = 'upgrade'"
    ).collect()
    return sorted(row["attempt"] for row in rows)


def held_of(
    session: SparkSession, quarantine: TableName, run: str, groups: Mapping[str, Iterable[str]]
) -> dict[str, int]:
    """How many of the rows that a run moved to a quarantine break a rule of each group.

    Args:
        groups: Group to rule names as declared.
    """
    counts = ", ".join(
        f"count_if(arrays_overlap({quote(own.RULES)}, array({', '.join(map(literal, names))}))) "
        f"AS c{place}"
        for place, names in enumerate(groups.values())
    )
    rows = session.sql(
        f"SELECT {counts} FROM {quarantine.sql} "
        f"WHERE {quote(own.RUN)} = {literal(run)} AND {quote(own.SOURCE)} = 'upgrade'"
    ).collect()
    return {group: int(found) for group, found in zip(groups, rows[0], strict=True)}


def _copy(
    session: SparkSession,
    source: TableName,
    quarantine: TableName,
    attempt: Attempt,
    rows: DataFrame,
    version: int,
    fence: NextFence,
    *,
    again: bool = False,
) -> None:
    """Append an attempt's rows, or put them in the place of what is there of the attempt."""
    # Prepared for the columns of these very rows: the table may have gained one meanwhile.
    schema = StructType(rows.schema.fields)
    place = prepare(session, source, schema, quarantine, attempt.tag)
    labels = Labels(
        source="upgrade",
        attempt=attempt.id,
        version=version,
        run=attempt.run,
        revision=attempt.revision,
    )
    write = Frame(
        labelled(rows, place, labels, attempt.violators),
        mode="overwrite" if again else "append",
        options={"replaceWhere": _mine(attempt)} if again else {},
    )
    tries = _TRIES if again else 1
    commit(session, quarantine, write, tag=attempt.tag, fence=fence(), tries=tries)


def _mine(attempt: Attempt) -> str:
    return f"{quote(own.ATTEMPT)} = {literal(attempt.id)}"


def _remove(
    session: SparkSession, quarantine: TableName, attempt: Attempt, fence: NextFence
) -> None:
    statement = Statement(f"DELETE FROM {quarantine.sql} WHERE {_mine(attempt)}")
    commit(session, quarantine, statement, tag=attempt.tag, fence=fence(), tries=_TRIES)


def _copies(
    session: SparkSession, quarantine: TableName, attempts: Iterable[str]
) -> dict[str, tuple[int, int]]:
    """Attempt to the version that was copied and the number of rows."""
    listed = ", ".join(literal(name) for name in attempts)
    rows = session.sql(
        f"SELECT {quote(own.ATTEMPT)} AS attempt, max({quote(own.VERSION)}) AS version, "
        f"count(*) AS rows FROM {quarantine.sql} WHERE {quote(own.ATTEMPT)} IN ({listed}) "
        f"GROUP BY {quote(own.ATTEMPT)}"
    ).collect()
    return {row["attempt"]: (row["version"], row["rows"]) for row in rows}


def _read_version(delete: Commit) -> int:
    return delete.version - 1 if delete.read_version is None else delete.read_version


def _deleted_rows(session: SparkSession, source: TableName, delete: Commit) -> int:
    # A DELETE of whole files has no row count where files lack statistics; nothing but the
    # DELETE lies between its version and the one before.
    told = int(delete.metrics.get("numDeletedRows", -1))
    if told >= 0:
        return told
    before = count_rows(session, source, delete.version - 1)
    return before - count_rows(session, source, delete.version)


def _repair(
    session: SparkSession,
    source: TableName,
    quarantine: TableName,
    attempt: Attempt,
    delete: Commit,
    deleted: int,
    fence: NextFence,
) -> None:
    read, copied = _read_version(delete), -1
    try:
        if not attempt.uses_clock:
            rows = frame(session, source, read).where(attempt.where)
            _copy(session, source, quarantine, attempt, rows, read, fence, again=True)
            copied = _copies(session, quarantine, [attempt.id]).get(attempt.id, (read, 0))[1]
        if copied != deleted:
            # SELECT and DELETE disagree about the predicate: take what the DELETE took.
            gone = rows_gone(session, source, delete.version - 1, delete.version)
            _copy(session, source, quarantine, attempt, gone, read, fence, again=True)
            copied = _copies(session, quarantine, [attempt.id]).get(attempt.id, (read, 0))[1]
    except EngineFailure as error:
        raise QuarantineError(
            f"{deleted} rows were deleted from {source} by version {delete.version}, and "
            f"their copy in {quarantine} could not be completed: Spark says "
            f"{failure_of(error).condition or failure_of(error).kind}.",
            hint="Nothing is lost: the rows are in the table's earlier versions. Run the same "
            "command again before VACUUM removes them; it completes the copy.",
            table=str(source),
        ) from None
    if copied != deleted:
        raise QuarantineError(
            f"Version {delete.version} of {source} deleted {deleted} rows, and {copied} "
            f"could be found for its quarantine {quarantine}.",
            hint=f"The rows are in version {delete.version - 1} of the table; do not VACUUM it "
            "before they are restored.",
            table=str(source),
        )
