"""Write quarantined rows back to their table, each exactly once.

No transaction spans two tables. So the rows that pass are first claimed, repaired, under the id
of this release; then what is claimed is appended under a transaction id of Delta's, by which it
lands once however often it is tried; then it is marked. Who finds a claim that was not finished
finishes it first. Appending before marking, without a claim, loses and doubles rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from deltacheck.delta.commit import Fence, Frame, Statement, Tag, commit
from deltacheck.delta.failures import EngineFailure, Violation, failure_of, violation_of
from deltacheck.delta.table import Commit, history, latest_version, read_definition
from deltacheck.errors import (
    BusyTableError,
    ExpressionError,
    QuarantineError,
    ReleaseForgottenError,
    ReleaseRefusedError,
    TableNotFoundError,
    UsageError,
)
from deltacheck.ledger.lock import new_run
from deltacheck.names import literal, quote
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.fates import Fates, read_fates
from deltacheck.quarantine.holding import UNCLAIMED, Holding, Selection, is_state
from deltacheck.quarantine.layout import ddl, is_whole
from deltacheck.quarantine.move import fence_off
from deltacheck.quarantine.place import broken_rules, prepare
from deltacheck.quarantine.terms import Repair, repair
from deltacheck.quarantine.today import Today, rules_today

Action = Callable[[DataFrame], object]
"""A write of the user's own, such as the MERGE that the rows were meant for."""

_TRIES = 20
_APPEND, _ACTION = "release", "action"
"""What a claim's id begins with: how its rows are to be written."""


@dataclass(frozen=True)
class Released:
    """What became of the rows that a release was asked for.

    Attributes:
        release: The id of the release; None where no row was claimed.
        rows: Rows written back; with ``dry_run``, that would be.
        version: The table's version that holds them; None after an action of the user's.
        kept: Rows that break a rule of today and stay, with a fresh reason.
        broken: Rule to the rows kept that break it, after the repair.
        unfit: Rows that stay because a column's value of another type does not fit today's.
        restored: Rows that stay because a RESTORE of the table has brought them back there.
        unsettled: Rows that stay because the run that moved them has not ended, or is unknown; or
            because their batch is not decided, and its retry will write it.
        undecided: Rows of a guarded write or an overwrite, which nobody said what to do with.
        left_out: Column to released rows with a value in it, which the table does not have.
        finished: Rows of earlier releases that did not end and that this one has finished.
        unfinished: Releases by an action that did not end; only ``resume`` goes on with one.
    """

    table: str
    quarantine: str
    release: str | None = None
    rows: int = 0
    version: int | None = None
    kept: int = 0
    broken: Mapping[str, int] = field(default_factory=dict)
    unfit: int = 0
    restored: int = 0
    unsettled: int = 0
    undecided: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    finished: int = 0
    unfinished: tuple[str, ...] = ()
    dry_run: bool = False


def release_rows(
    place: Holding,
    caller: SparkSession,
    selection: Selection,
    *,
    repairs: Sequence[str] = (),
    append: bool = False,
    action: Action | None = None,
    check: bool = True,
    resume: str | None = None,
    dry_run: bool = False,
) -> Released:
    """Write the rows back that satisfy the rules of today; see ``deltacheck.quarantine.release``.

    Args:
        caller: The session that an action's rows belong to.
    """
    done = Released(str(place.source), str(place.name), dry_run=dry_run)
    if place.table is None:
        raise TableNotFoundError(
            f"There is no table {place.source} to release rows to; they stay in {place.name}.",
            hint="Create it first, or correct its name.",
            table=str(place.source),
        )
    if place.held is None:
        return done
    fixes = [repair(text, place.source) for text in repairs]
    if not dry_run:
        schema = place.table.schema
        prepare(place.session, place.source, schema, place.name, Tag(step="release"))
        place = replace(place, held=read_definition(place.session, place.name))
    claims = open_claims(place)
    if resume is not None:
        return _resume(place, caller, done, claims, resume, append=append, action=action)
    fates = read_fates(place.session, place.source, place.name, place.ledger)
    if append:
        fates = replace(fates, unknown=frozenset(), attempts=None)
    decided = append or action is not None
    judged = _judge(place, fates, selection, fixes, decided=decided, check=check)
    if not dry_run:
        mine = [claim for claim in claims if claim.startswith(_APPEND)]
        done = replace(done, finished=sum(_finish(place, claim) for claim in mine))
    unfinished = tuple(claim for claim in claims if claim.startswith(_ACTION))
    done = replace(judged.count(done), unfinished=unfinished)
    if dry_run:
        return done
    _refuse(place, done)
    kind = _APPEND if action is None else _ACTION
    claim = f"{kind}-{new_run()}"
    before = latest_version(place.session, place.source)
    rows = _claim(place, claim, judged)
    if not rows:
        return replace(done, rows=0, left_out={})
    if action is None:
        landed = _append(place, claim, before)
        if landed is None:
            raise QuarantineError(
                f"The release {claim} of {place.source} was undone by another one; its rows are "
                f"in {place.name}.",
                hint="Release them again.",
                table=str(place.source),
            )
        return replace(done, release=claim, rows=rows, version=landed.version)
    _act(place, caller, claim, action)
    return replace(done, release=claim, rows=rows)


@dataclass(frozen=True)
class _Judgement:
    """Today's verdict on quarantined rows, as SQL over the quarantine's columns.

    Attributes:
        selected: Rows that were asked for.
        candidate: Rows that may be written back if they pass.
        passes: Rows that are as the table wants them, after the repair.
        fresh: The names of the rules that a row breaks as it is.
        broken: Rule to the rows that break it, after the repair.
        assigned: Quarantine column to the value that a claimed row gets.
    """

    place: Holding
    fates: Fates
    selected: str
    undecided: str
    whole: str
    passes: str
    fresh: str
    broken: Mapping[str, str]
    assigned: Mapping[str, str]

    @property
    def candidate(self) -> str:
        """SQL for the rows that may be written back if they pass."""
        others = (
            self.undecided,
            self.fates.is_restored,
            self.fates.is_unsettled,
            self.fates.is_unknown,
            self.fates.is_begun,
        )
        return " AND ".join(f"NOT ({other})" for other in others)

    def count(self, done: Released) -> Released:
        """Count the rows of each fate, in one pass."""
        fates = self.fates
        unsettled = f"({fates.is_unsettled} OR {fates.is_unknown} OR {fates.is_begun})"
        chosen = self.candidate
        foreign = self.place.fit.foreign
        listed = [
            self.fates.is_restored,
            f"{unsettled} AND NOT {self.fates.is_restored}",
            f"{self.undecided} AND NOT {self.fates.is_restored} AND NOT {unsettled}",
            f"{chosen} AND NOT ({self.whole})",
            f"{chosen} AND {self.passes}",
            f"{chosen} AND ({self.whole}) AND NOT {self.passes}",
            *(f"{chosen} AND {test}" for test in self.broken.values()),
            *(f"{chosen} AND {self.passes} AND {quote(name)} IS NOT NULL" for name in foreign),
        ]
        columns = ", ".join(f"count_if({test}) AS c{at}" for at, test in enumerate(listed))
        query = f"SELECT {columns} FROM {self.place.name.sql} WHERE {self.selected}"
        try:
            found = [int(value) for value in self.place.session.sql(query).collect()[0]]
        except EngineFailure as error:
            raise _cannot_judge(self.place, error) from None
        restored, unsettled_rows, undecided, unfit, rows, kept, *others = found
        broken = dict(zip(self.broken, others, strict=False))
        left_out = dict(zip(foreign, others[len(broken) :], strict=True))
        return replace(
            done,
            restored=restored,
            unsettled=unsettled_rows,
            undecided=undecided,
            unfit=unfit,
            rows=rows,
            kept=kept,
            broken={rule: rows for rule, rows in broken.items() if rows},
            left_out={name: rows for name, rows in left_out.items() if rows},
        )


def _judge(
    place: Holding,
    fates: Fates,
    selection: Selection,
    fixes: Sequence[Repair],
    *,
    decided: bool,
    check: bool,
) -> _Judgement:
    assert place.table is not None, "there is no judgement without today's rules"
    before = dict(place.values)
    after = {**before, **_repaired(place, fixes, before)}
    today = rules_today(place.table)
    broken = {name: f"({term.over(after)}) IS NOT TRUE" for name, term in today.rules.items()}
    set_columns = {fix.column.lower() for fix in fixes}
    fit = place.fit
    whole = [
        test
        for one in place.columns
        if one.name.lower() not in set_columns and (test := is_whole(fit, one)) is not None
    ]
    passes = " AND ".join([f"({test})" for test in whole] + [f"NOT {t}" for t in broken.values()])
    listed = ", ".join(map(literal, own.APPENDABLE))
    return _Judgement(
        place=place,
        fates=fates,
        selected=f"{is_state(own.HELD)} AND {UNCLAIMED} AND {selection.predicate(place)}",
        undecided="false" if decided else f"({quote(own.SOURCE)} NOT IN ({listed}))",
        whole=" AND ".join(whole) if whole and check else "true",
        passes=f"({passes})" if passes and check else "true",
        fresh=_fresh(today, before),
        broken=broken if check else {},
        assigned={
            **{
                fit.columns[one.name]: after[one.name.lower()]
                for one in place.columns
                if one.name.lower() in set_columns or one.name in fit.beside
            },
            # Else the value that was repaired away would be read where the new one is NULL.
            **{
                old.name: f"CAST(NULL AS {ddl(old.dataType)})"
                for name, olds in fit.beside.items()
                if name.lower() in set_columns
                for old in olds
            },
        },
    )


def _repaired(place: Holding, fixes: Iterable[Repair], values: Mapping[str, str]) -> dict[str, str]:
    """Column, in lower case, to the SQL of its repaired value."""
    columns = {one.name.lower(): one for one in place.columns}
    repaired: dict[str, str] = {}
    for fix in fixes:
        key = fix.column.lower()
        if key not in columns or key in repaired:
            what = "is repaired twice" if key in repaired else "is not a column of the table"
            raise ExpressionError(
                f"{fix.column} {what}; nothing was released to {place.source}.",
                hint=f"It has the columns {', '.join(one.name for one in columns.values())}.",
                table=str(place.source),
            )
        sql = fix.value.over(values)
        place.check(f"The repair of {fix.column}", f"CAST(({sql}) AS {ddl(columns[key].dataType)})")
        repaired[key] = f"CAST(({sql}) AS {ddl(columns[key].dataType)})"
    return repaired


def _fresh(today: Today, values: Mapping[str, str]) -> str:
    return broken_rules(
        {name: f"({term.over(values)}) IS NOT TRUE" for name, term in today.rules.items()}
    )


def _refuse(place: Holding, done: Released) -> None:
    """Say why not one of the rows asked for may be written back, if that is so."""
    if done.rows or done.kept or done.unfit:
        return
    if done.restored:
        raise QuarantineError(
            f"{done.restored} quarantined rows of {place.source} are back in the table: a RESTORE "
            "has undone the runs that moved them. Nothing was released, so no row is doubled.",
            hint="Discard them: `deltacheck quarantine discard`, with --run to name the run.",
            table=str(place.source),
        )
    if done.unsettled:
        raise QuarantineError(
            f"{done.unsettled} quarantined rows of {place.source} were moved by a run that has "
            "not ended, or that the journal does not know, so they may still be in the table; or "
            "they are of a batch that is not written yet, and its retry will bring them again. "
            "Nothing was released.",
            hint="Run `deltacheck upgrade`, which settles what a dead run left, and the job again, "
            "with the same batch id. Where the journal is lost, or the batch is never written "
            "again, and you know that the rows are not in the table, say --append.",
            table=str(place.source),
        )
    if done.undecided:
        raise QuarantineError(
            f"{done.undecided} quarantined rows of {place.source} come from a guarded write or "
            "an overwrite: they are rows of its source, and appending them may not be what they "
            "were meant for. Nothing was released.",
            hint="Give the write again as an action (Python: action=), or say --append.",
            table=str(place.source),
        )


def open_claims(place: Holding) -> tuple[str, ...]:
    """The releases that have claimed rows and did not end."""
    rows = place.session.sql(
        f"SELECT DISTINCT {quote(own.RELEASE)} AS claim FROM {place.name.sql} "
        f"WHERE {is_state(own.HELD)} AND NOT {UNCLAIMED}"
    ).collect()
    return tuple(sorted(row["claim"] for row in rows))


def _claim(place: Holding, claim: str, judged: _Judgement) -> int:
    """Claim the rows that pass, repaired, and give the others their fresh reason."""
    rules, passes = quote(own.RULES), judged.passes
    # A row that breaks no rule of today may be held for what only Delta can judge.
    reasons = f"CASE WHEN size({judged.fresh}) > 0 THEN {judged.fresh} ELSE {rules} END"
    assigned = {
        own.RELEASE: f"CASE WHEN {passes} THEN {literal(claim)} END",
        own.RULES: f"CASE WHEN {passes} THEN {rules} ELSE {reasons} END",
        **{
            column: f"CASE WHEN {passes} THEN {value} ELSE {quote(column)} END"
            for column, value in judged.assigned.items()
        },
    }
    settings = ", ".join(f"{quote(column)} = {value}" for column, value in assigned.items())
    statement = Statement(
        f"UPDATE {place.name.sql} SET {settings} WHERE {judged.selected} AND {judged.candidate} "
        f"AND ({passes} OR NOT ({rules} <=> {reasons}))"
    )
    try:
        commit(place.session, place.name, statement, tag=_tag(claim, "claim"), tries=_TRIES)
    except EngineFailure as error:
        raise _cannot_judge(place, error) from None
    return _claimed(place, claim)


def _claimed(place: Holding, claim: str) -> int:
    return place.session.table(place.name.sql).where(_mine(claim)).count()


def _finish(place: Holding, claim: str) -> int:
    """Finish a release that did not end: it may have written its rows or not."""
    rows = _claimed(place, claim)
    try:
        return 0 if _append(place, claim, None) is None else rows
    except ReleaseRefusedError:
        # They are held again, and judged anew with the others.
        return 0


def _append(place: Holding, claim: str, since: int | None) -> Commit | None:
    """Append the claimed rows and mark them; if they were appended before, Delta skips that.

    Args:
        since: A version of the table from before the claim, where it is known.

    Returns:
        The commit that holds them; None where another release had undone the claim: the rows
        are held again.

    Raises:
        ReleaseRefusedError: The table refuses them.
        ReleaseForgottenError: The table's history no longer says whether they landed.
    """
    values = place.values
    rows = place.session.table(place.name.sql).where(_mine(claim))
    rows = rows.selectExpr(
        *(f"{values[one.name.lower()]} AS {quote(one.name)}" for one in place.columns)
    )
    try:
        _write(place, claim, rows)
    except EngineFailure as error:
        landed = _undo(place, claim)
        if landed is None:
            raise _refused(place, error) from None
        return landed
    landed, undone = _outcome(place, claim, since)
    if landed is None and not undone:
        raise ReleaseForgottenError(
            f"The release {claim} did not end, and the history of {place.source} no longer says "
            f"whether its rows landed. They stay claimed in {place.name}.",
            hint=f"Look into the table, then resume {claim}: with an action that does nothing "
            "(Python) if the rows are there; with --append, which lets them be held again, if "
            "they are not.",
            table=str(place.source),
        )
    if landed is None:
        _unclaim(place, claim)
    else:
        _mark(place, claim)
    return landed


def _refused(place: Holding, error: BaseException) -> ReleaseRefusedError:
    violation, failure = violation_of(error), failure_of(error)
    reason = _reason(violation, failure.condition or failure.kind)
    return ReleaseRefusedError(
        f"{place.source} refused the rows that were to be released: {reason}. They are held "
        f"in {place.name} as before.",
        hint="Narrow the release with --where or --rule, or repair the rows with --set.",
        table=str(place.source),
        rule=None if violation is None else violation.constraint,
    )


def _write(place: Holding, claim: str, rows: DataFrame) -> None:
    while True:
        try:
            commit(
                place.session,
                place.source,
                Frame(rows),
                tag=_tag(claim, "append"),
                fence=_fence(claim, 1),
                tries=_TRIES,
            )
            return
        except EngineFailure as error:
            computed = _computed_column(error, rows.columns)
            if computed is None:
                raise
            rows = rows.drop(computed)


def _computed_column(error: BaseException, columns: Sequence[str]) -> str | None:
    """The column that Delta computes itself, where that is why it refused the rows.

    No schema tells which columns are generated or an identity.
    """
    failure = failure_of(error)
    if failure.family == "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED":
        return failure.parameters["colName"]
    if failure.parameters.get("constraintName") == "Generated Column":
        # The check is (column <=> generation expression): ColumnWithDefaultExprUtils.scala.
        check = failure.parameters["expression"]
        spellings = {name: (f"({name} <=> ", f"({quote(name)} <=> ") for name in columns}
        return next((n for n, begins in spellings.items() if check.startswith(begins)), None)
    return None


def _undo(place: Holding, claim: str) -> Commit | None:
    """Let the claimed rows be held again, once none of them can land in the table any more.

    Returns:
        The commit by which they had landed before; then they are marked.
    """
    try:
        fence_off(place.session, place.source, _tag(claim, "undo"), _fence(claim, 2))
    except EngineFailure as error:
        failure = failure_of(error)
        raise BusyTableError(
            f"{place.source} cannot be written to: Spark says {failure.condition or failure.kind}. "
            f"The rows to be released are claimed by {claim} in {place.name}; none is lost.",
            hint="Release again; that finishes the claim.",
            table=str(place.source),
        ) from None
    landed, _ = _outcome(place, claim, None)
    if landed is None:
        _unclaim(place, claim)
    else:
        _mark(place, claim)
    return landed


def _unclaim(place: Holding, claim: str) -> None:
    statement = Statement(
        f"UPDATE {place.name.sql} SET {quote(own.RELEASE)} = NULL WHERE {_mine(claim)}"
    )
    commit(place.session, place.name, statement, tag=_tag(claim, "undo"), tries=_TRIES)


def _mark(place: Holding, claim: str) -> None:
    statement = Statement(
        f"UPDATE {place.name.sql} SET {quote(own.STATE)} = '{own.RELEASED}' WHERE {_mine(claim)}"
    )
    commit(place.session, place.name, statement, tag=_tag(claim, "mark"), tries=_TRIES)


def _outcome(place: Holding, claim: str, since: int | None) -> tuple[Commit | None, bool]:
    """The commit by which the claimed rows landed in the table, and whether they no longer can."""
    steps = {
        entry.tag.get("step"): entry
        for entry in history(place.session, place.source, since=since)
        if entry.tag.get("attempt") == claim
    }
    return steps.get("append"), "undo" in steps


def _act(place: Holding, caller: SparkSession, claim: str, action: Action) -> None:
    """Hand the claimed rows to the user's own write."""
    values, fit = place.values, place.fit
    rows = caller.table(place.name.sql).where(_mine(claim))
    rows = rows.selectExpr(
        *(f"{values[one.name.lower()]} AS {quote(one.name)}" for one in place.columns),
        *map(quote, fit.foreign),
    )
    try:
        action(rows)
    except Exception:
        # It says that it has not written them.
        _unclaim(place, claim)
        raise
    _mark(place, claim)


def _resume(
    place: Holding,
    caller: SparkSession,
    done: Released,
    claims: Sequence[str],
    claim: str,
    *,
    append: bool,
    action: Action | None,
) -> Released:
    if claim not in claims:
        raise UsageError(
            f"There is no unfinished release {claim} of {place.source}; nothing was done.",
            hint=f"Unfinished are: {', '.join(claims) or 'none'}.",
            table=str(place.source),
        )
    if action is None and not append and claim.startswith(_ACTION):
        raise UsageError(
            f"The release {claim} of {place.source} was by an action that may have written its "
            "rows or not; nothing was done.",
            hint="Look into the table, then give an action (one that does nothing, if the rows "
            "are there) or say --append.",
            table=str(place.source),
        )
    if action is not None and claim.startswith(_APPEND) and any(_outcome(place, claim, None)):
        raise UsageError(
            f"The release {claim} of {place.source} was by an append, which may have landed; "
            "nothing was done.",
            hint="Resume it without an action.",
            table=str(place.source),
        )
    rows = _claimed(place, claim)
    if claim.startswith(_ACTION) and action is not None:
        _act(place, caller, claim, action)
        return replace(done, release=claim, rows=rows)
    try:
        landed = _append(place, claim, None)
    except ReleaseForgottenError:
        if action is not None:
            _act(place, caller, claim, action)
            return replace(done, release=claim, rows=rows)
        if not append:
            raise
        _unclaim(place, claim)
        landed = None
    if landed is None:
        # Held again: to be judged anew.
        return replace(done, release=claim)
    return replace(done, release=claim, rows=rows, version=landed.version)


def _fence(claim: str, version: int) -> Fence:
    return Fence(f"deltacheck-{claim}", version)


def _tag(claim: str, step: str) -> Tag:
    return Tag(attempt=claim, step=step)


def _mine(claim: str) -> str:
    return f"{quote(own.RELEASE)} = {literal(claim)} AND {is_state(own.HELD)}"


def _reason(violation: Violation | None, condition: str) -> str:
    if violation is None:
        return f"Spark says {condition}"
    if violation.constraint is not None:
        return f"they break the rule {violation.constraint}"
    return f"there is a NULL in {violation.column}"


def _cannot_judge(place: Holding, error: BaseException) -> QuarantineError:
    failure = failure_of(error)
    return QuarantineError(
        f"The quarantined rows of {place.source} cannot be judged by its rules of today: Spark "
        f"says {failure.condition or failure.kind}. Nothing was released.",
        hint="Narrow the release with --where; a repair must have a value for every row, for "
        "example by try_cast.",
        table=str(place.source),
    )
