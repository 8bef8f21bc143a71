"""Move violators from a table to its quarantine, so that none is lost and none is doubled.

No transaction spans two tables. So the copy is made first, under an attempt of its own, from
a pinned version; then the rows are deleted; then the DELETE's own commit is looked at, and
unless it read the version that was copied, the copy is made anew from the version that it
read. What the table's history says is the truth; the copy follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from deltacheck.delta.commit import Fence, Frame, Statement, Tag, commit
from deltacheck.delta.failures import EngineFailure, failure_of, is_conflict
from deltacheck.delta.table import Commit, count_rows, frame, history
from deltacheck.delta.violators import violators_of
from deltacheck.errors import LockLostError, QuarantineError
from deltacheck.names import TableName, literal, quote
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.place import Labels, Place, labelled

NextFence = Callable[[], Fence]
"""Gives each write its place in the order of our writes."""


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
    named: Mapping[str, str]

    @property
    def tag(self) -> Tag:
        """What the attempt's commits say of themselves."""
        return Tag(run=self.run, revision=self.revision, attempt=self.id, rules=self.rules)

    @property
    def violators(self) -> Mapping[str, str]:
        """Rule name to the predicate of its violators."""
        return violators_of({**self.rules, **self.named})

    @property
    def where(self) -> str:
        """The predicate of the rows to be moved."""
        return any_of(violators_of(self.rules))


def any_of(predicates: Mapping[str, str]) -> str:
    """The predicate of the rows for which at least one holds."""
    return " OR ".join(f"({predicate})" for predicate in predicates.values())


def move(
    session: SparkSession, place: Place, attempt: Attempt, version: int, fence: NextFence
) -> int:
    """Copy the violators of a version, then delete them, then make the copy what was deleted.

    Args:
        version: The version of the source that the copy is read from.
        fence: Gives each write its place.

    Returns:
        How many rows were moved.

    Raises:
        LockLostError: A later run has fenced this one off.
        QuarantineError: The quarantine cannot be written; no row was moved.
        PySparkException, Py4JJavaError: What the DELETE raises; among it, a conflict with
            another writer, after which the attempt's copy is still there: ``settle`` it.
    """
    source, tag = place.source, attempt.tag
    rows = frame(session, source, version).where(attempt.where)
    try:
        _copy(session, place, attempt, rows, version, fence)
    except EngineFailure as error:
        if is_conflict(error):
            raise
        raise QuarantineError(
            f"The quarantine {place.name} cannot be written: Spark says "
            f"{failure_of(error).condition or failure_of(error).kind}. No row was moved from "
            f"{source}.",
            hint="Check the quarantine's place and your rights there, then run the same command "
            "again.",
            table=str(source),
        ) from None
    statement = Statement(f"DELETE FROM {source.sql} WHERE {attempt.where}")
    if not commit(session, source, statement, tag=tag, fence=fence()):
        raise LockLostError(
            f"A later run has taken over {source}; run {attempt.run} stops here. No row was "
            "moved by this attempt.",
            hint="Run the same command again once the other run has ended.",
        )
    return settle(session, place, [attempt], since=version, fence=fence)[attempt.id]


def settle(
    session: SparkSession,
    place: Place,
    attempts: Iterable[Attempt],
    *,
    since: int,
    fence: NextFence,
) -> dict[str, int]:
    """Make each attempt's copy equal to what its DELETE deleted.

    Only for attempts that can no longer commit: their statements have returned, or they have
    been fenced off.

    Args:
        since: A version of the source from before the attempts.

    Returns:
        Attempt to the number of rows that it moved.

    Raises:
        QuarantineError: The versions that tell what was deleted are no longer there.
    """
    wanted = {attempt.id: attempt for attempt in attempts}
    deletes = deletes_of(session, place.source, since)
    copies = _copies(session, place, wanted)
    moved: dict[str, int] = {}
    for name, attempt in wanted.items():
        delete, copy = deletes.get(name), copies.get(name)
        if delete is None:
            if copy is not None:
                where = f"{quote(own.ATTEMPT)} = {literal(name)}"
                statement = Statement(f"DELETE FROM {place.name.sql} WHERE {where}")
                commit(session, place.name, statement, tag=attempt.tag, tries=5)
            moved[name] = 0
            continue
        moved[name] = _deleted_rows(session, place.source, delete)
        if copy != (delete.read_version, moved[name]):
            _repair(session, place, attempt, delete, moved[name], fence)
    return moved


def fence_off(session: SparkSession, table: TableName, tag: Tag, fence: Fence) -> None:
    """Commit nothing under a later place: whatever of ours is in flight on the table fails.

    Raises:
        PySparkException, Py4JJavaError: Whatever Spark or Delta raises.
    """
    empty = session.table(table.sql).where("false")
    while True:
        try:
            commit(session, table, Frame(empty.coalesce(1)), tag=tag, fence=fence)
            return
        except EngineFailure as error:
            failure = failure_of(error)
            # An identity column may not be given, and no schema tells which column is one.
            if failure.family != "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED":
                raise
            empty = empty.drop(failure.parameters["colName"])


def deletes_of(session: SparkSession, source: TableName, since: int) -> dict[str, Commit]:
    """The DELETEs of ours in the history of a table, by attempt."""
    return {
        entry.tag["attempt"]: entry
        for entry in history(session, source, since=since)
        if entry.operation == "DELETE" and "attempt" in entry.tag
    }


def attempts_of(session: SparkSession, place: TableName, run: str) -> list[str]:
    """The attempts of a run that have a copy in a quarantine."""
    rows = session.sql(
        f"SELECT DISTINCT {quote(own.ATTEMPT)} AS attempt FROM {place.sql} "
        f"WHERE {quote(own.RUN)} = {literal(run)} AND {quote(own.SOURCE)} = 'upgrade'"
    ).collect()
    return sorted(row["attempt"] for row in rows)


def _copy(
    session: SparkSession,
    place: Place,
    attempt: Attempt,
    rows: DataFrame,
    version: int,
    fence: NextFence,
    options: Mapping[str, str] | None = None,
) -> None:
    labels = Labels(
        source="upgrade",
        attempt=attempt.id,
        version=version,
        run=attempt.run,
        revision=attempt.revision,
    )
    write = Frame(
        labelled(rows, place, labels, attempt.violators),
        mode="append" if options is None else "overwrite",
        options=options or {},
    )
    commit(session, place.name, write, tag=attempt.tag, fence=fence())


def _copies(
    session: SparkSession, place: Place, attempts: Iterable[str]
) -> dict[str, tuple[int, int]]:
    """Attempt to the version that was copied and the number of rows."""
    listed = ", ".join(literal(name) for name in attempts)
    rows = session.sql(
        f"SELECT {quote(own.ATTEMPT)} AS attempt, max({quote(own.VERSION)}) AS version, "
        f"count(*) AS rows FROM {place.name.sql} WHERE {quote(own.ATTEMPT)} IN ({listed}) "
        f"GROUP BY {quote(own.ATTEMPT)}"
    ).collect()
    return {row["attempt"]: (row["version"], row["rows"]) for row in rows}


def _deleted_rows(session: SparkSession, source: TableName, delete: Commit) -> int:
    # A DELETE of whole files has no row count where files lack statistics; nothing but the
    # DELETE lies between its version and the one before.
    if "numDeletedRows" in delete.metrics:
        return int(delete.metrics["numDeletedRows"])
    before = count_rows(session, source, delete.version - 1)
    return before - count_rows(session, source, delete.version)


def _repair(
    session: SparkSession,
    place: Place,
    attempt: Attempt,
    delete: Commit,
    deleted: int,
    fence: NextFence,
) -> None:
    read = delete.version - 1 if delete.read_version is None else delete.read_version
    replace = {"replaceWhere": f"{quote(own.ATTEMPT)} = {literal(attempt.id)}"}
    try:
        rows = frame(session, place.source, read).where(attempt.where)
        _copy(session, place, attempt, rows, read, fence, replace)
        copy = _copies(session, place, [attempt.id]).get(attempt.id, (read, 0))
        if copy[1] != deleted:
            # SELECT and DELETE disagree about the predicate: take what the DELETE took.
            gone = _difference(session, place.source, delete.version - 1, delete.version)
            _copy(session, place, attempt, gone, read, fence, replace)
            copy = _copies(session, place, [attempt.id]).get(attempt.id, (read, 0))
    except EngineFailure as error:
        raise QuarantineError(
            f"{deleted} rows were deleted from {place.source} by version {delete.version}, and "
            f"their copy in {place.name} could not be completed: Spark says "
            f"{failure_of(error).condition or failure_of(error).kind}.",
            hint="Nothing is lost: the rows are in the table's earlier versions. Run the same "
            "command again before VACUUM removes them; it completes the copy.",
            table=str(place.source),
        ) from None
    if copy[1] != deleted:
        raise QuarantineError(
            f"Version {delete.version} of {place.source} deleted {deleted} rows, and {copy[1]} "
            f"could be found for its quarantine {place.name}.",
            hint=f"The rows are in version {delete.version - 1} of the table; do not VACUUM it "
            "before they are restored.",
            table=str(place.source),
        )


def _difference(session: SparkSession, source: TableName, before: int, after: int) -> DataFrame:
    """The rows, with multiplicity, that a version has and a later one lacks."""
    # EXCEPT ALL refuses maps and variants, so rows are compared as text.
    key = (
        "to_json(struct(*), map('ignoreNullFields', 'false', "
        "'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX'))"
    )

    def numbered(version: int) -> DataFrame:
        rows = frame(session, source, version).selectExpr(f"{key} AS key", "struct(*) AS row")
        return rows.selectExpr("*", "row_number() OVER (PARTITION BY key ORDER BY key) AS nth")

    left, right = numbered(before), numbered(after).select("key", "nth")
    gone = left.join(right, ["key", "nth"], "left_anti")
    return gone.select("row.*")
