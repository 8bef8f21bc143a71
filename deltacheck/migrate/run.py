"""Run migrations: look, lock, settle what died, then revision by revision, table by table."""

from __future__ import annotations

import json
import logging
import platform
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.commit import Statement, Tag, commit
from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.delta.session import verdict_session
from deltacheck.delta.table import exists, read_definition, read_table
from deltacheck.errors import (
    AppendOnlyError,
    BusyTableError,
    DeltacheckError,
    HistoryError,
    LockLostError,
    QuarantineError,
    TableNotFoundError,
    ViolationError,
)
from deltacheck.ledger.journal import (
    APPLIED,
    DONE,
    FAILED,
    REVERTED,
    REVISION,
    SETTLED,
    STEP,
    STOPPED,
    Entry,
    Journal,
    Run,
    Touched,
    now,
    read_journal,
)
from deltacheck.ledger.lock import Lock, announced, locked
from deltacheck.ledger.recorded import PROPERTY, recorded_text, set_statement
from deltacheck.migrate.drift import repairs
from deltacheck.migrate.enforce import Work, announcement, enforce, planned, rows_now
from deltacheck.migrate.outlook import outlook
from deltacheck.migrate.preflight import Look, look_at
from deltacheck.migrate.results import RunResult, Step, TableOutcome
from deltacheck.migrate.tasks import Direction, Task, tasks_of
from deltacheck.migrate.trial import can_try, kept, take_back, tried, untaken
from deltacheck.names import TableName
from deltacheck.quarantine.layout import environment_quarantine
from deltacheck.quarantine.move import Attempt, attempts_of, deletes_of, fence_off, settle
from deltacheck.quarantine.place import prepare
from deltacheck.revisions.graph import History, Revision
from deltacheck.revisions.operations import Execute
from deltacheck.rules.model import RuleSet

log = logging.getLogger("deltacheck")

Progress = Callable[[str], None]
"""Told in a few words what the run does now."""

Wanted = Callable[[Task], bool]
"""Tells whether a task is among those that a run was asked for."""

Review = Callable[[RunResult], None]
"""Shown a plan; raises to stop the run before it writes."""

CutShort = Callable[[RunResult], object]
"""Given what a run had done when an error ended it."""

_CLEAN_STOPS = (ViolationError, BusyTableError, AppendOnlyError)
"""Raised where nothing of the run is in flight and nothing is half done."""


@dataclass(frozen=True)
class Scene:
    """What a run works with.

    Attributes:
        rules: What ``constraints/`` declares; recorded on the tables when the target is head.
        wanted: Tells which tasks are wanted; a revision is recorded as applied only when all
            of its tasks are.
        repair: Whether constraints that were applied and are gone are to be added again.
    """

    session: SparkSession
    environment: Environment
    history: History
    rules: RuleSet = field(default_factory=dict)
    progress: Progress = lambda _: None
    wanted: Wanted = lambda _: True
    repair: bool = False


@contextmanager
def scene(
    session: SparkSession,
    environment: Environment,
    history: History,
    rules: RuleSet,
    progress: Progress = lambda _: None,
    wanted: Wanted = lambda _: True,
) -> Iterator[Scene]:
    """A session of our own under the settings in which every verdict is made."""
    with verdict_session(session) as own:
        yield Scene(own, environment, history, rules, progress, wanted)


@dataclass(frozen=True)
class Pending:
    """What is to be done, as it was before the lock was taken.

    Attributes:
        recorded: Table to the recorded rules that it is to have.
        partly: Revisions of which only some tasks are wanted.
    """

    journal: Journal
    direction: Direction
    revisions: tuple[Revision, ...]
    tasks: tuple[Task, ...]
    recorded: dict[TableName, str]
    partly: frozenset[str] = frozenset()

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.revisions or self.tasks or self.recorded or self.journal.unsettled)


def pending(scene: Scene, target: str, direction: Direction) -> Pending:
    """What lies between the journal and the target; writes nothing.

    Raises:
        HistoryError: An applied revision was edited, or its file is missing.
        UnknownTargetError: There is no such target.
        LedgerError: The journal cannot be used.
    """
    journal = read_journal(scene.session, scene.environment)
    check_unedited(scene.history, journal)
    choose = scene.history.to_apply if direction == "upgrade" else scene.history.to_revert
    revisions = choose(list(journal.applied), target)
    applied = {*journal.applied, *(revision.revision for revision in revisions)}
    at_head = direction == "upgrade" and applied >= {r.revision for r in scene.history.revisions}
    tasks = tasks_of(revisions, direction)
    partly = {task.revision for task in tasks if not scene.wanted(task)}
    if scene.repair:
        decided = {(task.table, task.key) for task in tasks}
        drifted = repairs(scene.session, scene.history, journal)
        tasks = (*(task for task in drifted if (task.table, task.key) not in decided), *tasks)
    return Pending(
        journal,
        direction,
        revisions,
        tuple(task for task in tasks if scene.wanted(task)),
        _unrecorded(scene) if at_head and not partly else {},
        frozenset(partly),
    )


def check_unedited(history: History, journal: Journal) -> None:
    """Hold the files of applied revisions against what was applied.

    Raises:
        HistoryError: One was edited since.
    """
    edited = [
        revision
        for revision in history.revisions
        if (entry := journal.applied.get(revision.revision)) is not None
        and entry.checksum not in (None, revision.checksum)
    ]
    if edited:
        names = ", ".join(f"{revision.revision} ({revision.file})" for revision in edited)
        raise HistoryError(
            f"Edited since it was applied: {names}. Nothing was done.",
            hint="Put the file back as it was, and write a new revision for the change.",
            paths=tuple(revision.path for revision in edited if revision.path is not None),
        )


def _unrecorded(scene: Scene) -> dict[TableName, str]:
    wanted = {}
    for name, declared in scene.rules.items():
        quarantine = environment_quarantine(name, scene.environment)
        text = recorded_text(declared, quarantine, scene.environment)
        try:
            table = read_definition(scene.session, name)
        except TableNotFoundError:
            # Declared ahead of its making: `status` shows it as pending.
            continue
        if table.properties.get(PROPERTY) != text:
            wanted[name] = text
    return wanted


def run(
    scene: Scene,
    target: str,
    direction: Direction,
    *,
    dry_run: bool = False,
    lock_timeout: float = 0.0,
    deadline: float | None = None,
    review: Review | None = None,
    cut_short: CutShort = lambda _: None,
) -> RunResult:
    """Bring the tables of an environment to a target.

    Args:
        target: As in Alembic: head, base, +1, -1, a revision or a prefix of one.
        dry_run: Look, count, and write nothing.
        lock_timeout: Seconds to wait for another run to end.
        deadline: Seconds to go on trying on a table that others write to.
        review: Shown the plan before anything is written; raises to stop. Without one, a
            revision that only adds constraints is tried, and counted where a table refuses.
        cut_short: Given what was done where an error ends the run; then that is raised.

    Raises:
        DeltacheckError: See the tree; what was done until then is recorded.
    """
    there = pending(scene, target, direction)
    if there.nothing:
        return _result(scene, there, None, there.journal)
    count = dry_run or review is not None or not can_try(there.tasks)
    scene.progress("Looking at the tables" + (" and counting violators" if count else ""))
    looks = look_at(scene.session, scene.environment, there.tasks, scene.rules, count=count)
    plan = _planned(scene, there, looks)
    if dry_run:
        return replace(plan, outlook=outlook(scene.session, looks.values()))
    if review is not None:
        review(plan)
    with locked(
        scene.session,
        scene.environment,
        command=direction,
        revisions=[revision.revision for revision in there.revisions],
        tables=[announcement(look) for look in looks.values()],
        engine=engine_versions(scene.session),
        timeout=lock_timeout,
        seen=there.journal,
    ) as lock:
        moved_on = lock.journal.token != there.journal.token or list(lock.journal.applied) != list(
            there.journal.applied
        )
        announced_ = frozenset(map(_announced, looks.values()))
        act = _Act(scene, there, lock, deadline, cut_short, announced_)
        if moved_on or lock.journal.unsettled:
            # The lock came late, or an earlier run left something: look again.
            return act.go(lambda: act.ready(act.look_again(target, plan, review)))
        return act.go(lambda: act.ready(looks) if count else act.tried(looks))


@dataclass
class _Act:
    """One run under the lock, and what it has done so far.

    Attributes:
        announced: The tables of which the journal knows that the run may touch them, each
            with its id where that was told.
        trial: What was found at the tables whose new constraints were tried, before that.
    """

    scene: Scene
    there: Pending
    lock: Lock
    deadline: float | None
    cut_short: CutShort
    announced: frozenset[tuple[TableName, str | None]]
    entries: list[Entry] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    works: dict[TableName, Work] = field(default_factory=dict)
    settled: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    trial: dict[TableName, Look] = field(default_factory=dict)

    def go(self, look: Callable[[], dict[TableName, Look]]) -> RunResult:
        try:
            self._revisions(look())
            self._record_rules()
        except (KeyboardInterrupt, SystemExit):
            self.lock.leave(self.entries)
            raise
        except (DeltacheckError, *EngineFailure) as error:
            clean = isinstance(error, _CLEAN_STOPS) or (
                isinstance(error, DeltacheckError) and not self.works
            )
            # Otherwise something of ours may still be in flight: the next run fences it off.
            self._end(STOPPED if self._take_back(error) and clean else FAILED)
            finished = {TableName.parse(step.table) for step in self.steps if step.table}
            # Whatever comes of this, the error on its way says more.
            with suppress(DeltacheckError, *EngineFailure):
                self.cut_short(self._done(finished))
            raise
        self.lock.end(self.entries, DONE)
        return self._done(self.works)

    def _done(self, finished: Container[TableName]) -> RunResult:
        """What the run has done.

        Args:
            finished: The tables that it is done with.
        """
        journal = self.lock.journal
        after = Journal(journal.id, (*journal.entries, *self.entries))
        result = _result(self.scene, self.there, self.lock.run, after)
        tables = tuple(
            _outcome(work)
            for name, work in self.works.items()
            if work.look.new and name in finished
        )
        return replace(
            result,
            steps=tuple(self.steps),
            tables=tables,
            settled=tuple(self.settled),
            notes=(*self.notes, *_notes(tables)),
        )

    def _end(self, state: str) -> None:
        if any(work.unsettled for work in self.works.values()):
            state = FAILED
        # The error on its way says more than a lock that is gone with it.
        with suppress(LockLostError, *EngineFailure):
            self.lock.end(self.entries, state)

    def look_again(
        self, target: str, plan: RunResult, review: Review | None
    ) -> dict[TableName, Look]:
        """Settle what earlier runs left, and look at the tables as they are now."""
        self._settle_dead_runs()
        there = pending(self.scene, target, self.there.direction)
        self.there = replace(there, journal=self.lock.journal)
        scene = self.scene
        looks = look_at(scene.session, scene.environment, self.there.tasks, scene.rules)
        now_planned = _planned(self.scene, self.there, looks)
        if review and (now_planned.steps, now_planned.tables) != (plan.steps, plan.tables):
            review(now_planned)
        return looks

    def tried(self, looks: dict[TableName, Look]) -> dict[TableName, Look]:
        """Try the new constraints; what a table refuses is made ready to be moved."""
        self.scene.progress("Trying the new constraints")
        self.trial = looks
        found = tried(self.scene.session, self.lock, self.there.tasks, looks)
        return self.ready(found)

    def _take_back(self, error: BaseException) -> bool:
        """Drop what was tried, unless rows have moved already; whether nothing is left untold."""
        told: list[str] = []
        whole = True
        works = self.works.values()
        if self.steps or any(work.moved or work.unsettled for work in works):
            told = kept(work.look for work in works)
        else:
            try:
                told = take_back(self.scene.session, self.lock, self.trial.values())
            except (DeltacheckError, *EngineFailure):
                told, whole = [untaken(self.trial.values())], False
        if told and isinstance(error, DeltacheckError):
            error.message = " ".join([error.message, *told])
        elif told:
            log.warning("%s", " ".join(told))
        return whole

    def ready(self, looks: dict[TableName, Look]) -> dict[TableName, Look]:
        """See to all that must be before a row of any table moves."""
        new = [one for one in looks.values() if _announced(one) not in self.announced]
        if new:
            # Whoever settles this run after its death must know all that it may touch.
            self.lock.record(announced([announcement(one) for one in new]))
        for look in looks.values():
            if look.found is not None and look.found.any:
                self._open_quarantine(look)
        return looks

    def _revisions(self, looks: dict[TableName, Look]) -> None:
        until = None if self.deadline is None else time.monotonic() + self.deadline
        for name, look in looks.items():
            self.works[name] = Work(
                self.scene.session, self.scene.environment, self.lock, look, until
            )
        by_revision = {
            revision: list(tasks)
            for revision, tasks in groupby(self.there.tasks, key=lambda task: task.revision)
        }
        todo = {revision.revision for revision in self.there.revisions}
        for revision, tasks in by_revision.items():
            if revision not in todo:
                # Applied before, and drifted since.
                self.steps += self._revision(tasks)
        for revision in self.there.revisions:
            for step in self._revision(by_revision.get(revision.revision, [])):
                self.steps.append(step)
            if revision.revision in self.there.partly:
                continue
            self.entries.append(
                _blank(
                    REVISION,
                    revision=revision.revision,
                    state=APPLIED if self.there.direction == "upgrade" else REVERTED,
                    checksum=revision.checksum,
                )
            )

    def _revision(self, tasks: Sequence[Task]) -> Iterator[Step]:
        # One table after the other, in the order in which the revision names them; a
        # statement of the user's own stays where it stands.
        waiting: dict[TableName, list[Task]] = {}
        for task in tasks:
            if task.table is not None:
                waiting.setdefault(task.table, []).append(task)
            else:
                yield from self._tables(waiting)
                waiting = {}
                yield self._other(task)
        yield from self._tables(waiting)

    def _tables(self, waiting: dict[TableName, list[Task]]) -> Iterator[Step]:
        for name, tasks in waiting.items():
            self.scene.progress(f"{name}: revision {tasks[0].revision}")
            work = self.works[name]
            before = work.look.version if work.version is None else work.version
            moved = work.moved
            steps = enforce(work, tasks)
            for place, step in enumerate(steps):
                self.entries.append(
                    replace(
                        _step_entry(step),
                        version_before=before,
                        version_after=work.version,
                        # Rows are moved for all rules of the revision at once.
                        moved=work.moved - moved if place == 0 else None,
                    )
                )
            yield from steps

    def _other(self, task: Task) -> Step:
        step = planned(None, task)
        if not isinstance(task.operation, Execute):
            step = replace(step, state="skipped", note="bookkeeping; no statement")
            self.entries.append(_step_entry(step))
            return step
        statement = task.operation.statement
        step = replace(step, statements=(statement,))
        if statement in self._ran(task.revision):
            self._ran(task.revision).remove(statement)
            return replace(step, state="skipped", note="it ran in an earlier run")
        self.lock.ensure()
        started = time.monotonic()
        tag = Tag(run=self.lock.run, revision=task.revision, step=task.kind)
        try:
            commit(self.scene.session, task.operation.table, Statement(statement), tag=tag)
        except EngineFailure as error:
            raise DeltacheckError(
                f"The statement of revision {task.revision} failed: Spark says "
                f"{failure_of(error).condition or failure_of(error).kind}. The revision is not "
                "applied.",
                hint="Correct the statement; the next run goes on there.",
            ) from None
        for work in self.works.values():
            work.fresh = False
        seconds = round(time.monotonic() - started, 3)
        step = replace(step, state="ran", seconds=seconds)
        # At once: no table tells whether it ran, and it must not run again.
        self.lock.record([_step_entry(step)])
        return step

    def _ran(self, revision: str) -> list[str]:
        return self.lock.journal.ran.setdefault(revision, [])

    def _record_rules(self) -> None:
        for name, text in self.there.recorded.items():
            self.lock.ensure()
            statement = Statement(set_statement(name, text))
            commit(self.scene.session, name, statement, tag=Tag(run=self.lock.run), tries=5)

    def _settle_dead_runs(self) -> None:
        for dead in self.lock.journal.unsettled:
            self.scene.progress(f"Settling run {dead.run}, which did not end")
            gone = []
            for touched in dict.fromkeys(dead.tables):
                kept = self._settle(dead.run, touched)
                if kept is None:
                    gone.append(str(touched.table))
                elif kept:
                    self.notes.append(
                        f"{kept} rows of run {dead.run} stay in the quarantine of "
                        f"{touched.table}, though they may still be in the table: its history "
                        "no longer tells whether that run deleted them."
                    )
            if gone:
                self.notes.append(
                    f"Run {dead.run} is not settled: {', '.join(gone)} is not there, and its "
                    "quarantine has rows of that run, of which only the table's history tells "
                    "whether it had deleted them. A later run settles it once the table is back "
                    "under that name."
                )
                continue
            self.settled.append(dead.run)
            self.entries.append(_blank(SETTLED, detail=dead.run))

    def _open_quarantine(self, look: Look) -> None:
        """Make sure that the rows of a table can be written to its quarantine."""
        session, source, quarantine = self.scene.session, look.name, look.quarantine
        there = exists(session, quarantine)
        prepare(session, source, look.table.schema, quarantine, Tag(run=self.lock.run))
        if not there:
            return
        try:
            tag = Tag(run=self.lock.run, step="fence")
            fence_off(session, quarantine, tag, self.lock.fence())
        except EngineFailure as error:
            failure = failure_of(error)
            raise QuarantineError(
                f"The quarantine {quarantine} of {source} cannot be written: Spark says "
                f"{failure.condition or failure.kind}. No row of any table was moved.",
                hint="Check your rights there, or name another place with `quarantine` in the "
                "environment; then run the same command again.",
                table=str(source),
            ) from None

    def _settle(self, dead: str, touched: Touched) -> int | None:
        """Settle what a dead run left of one table.

        Returns:
            The rows kept since nobody can tell; None where the table is not there to tell.
        """
        session, name = self.scene.session, touched.table
        tag = Tag(run=self.lock.run, step="fence")
        quarantine = touched.quarantine or environment_quarantine(name, self.scene.environment)
        try:
            table = read_table(session, name)
        except TableNotFoundError:
            left = exists(session, quarantine) and attempts_of(session, quarantine, dead)
            return None if left else 0
        self.lock.ensure()
        fence_off(session, name, tag, self.lock.fence(), alters=True)
        if not exists(session, quarantine):
            return 0
        fence_off(session, quarantine, tag, self.lock.fence())
        deletes = {
            attempt: entry.tag
            for attempt, entry in deletes_of(session, name, touched.version).items()
            if entry.tag.get("run") == dead
        }
        attempts = [
            Attempt(
                id=attempt,
                run=dead,
                revision=deletes.get(attempt, {}).get("revision", ""),
                rules=deletes.get(attempt, {}).get("rules", {}),
                named=deletes.get(attempt, {}).get("named", {}),
            )
            for attempt in sorted({*attempts_of(session, quarantine, dead), *deletes})
        ]
        done = settle(
            session,
            name,
            quarantine,
            attempts,
            since=touched.version,
            fence=self.lock.fence,
            same_table=touched.id in (None, table.id),
        )
        return sum(moved.kept for moved in done.values())


def _announced(look: Look) -> tuple[TableName, str | None]:
    return look.name, look.id


def _notes(tables: Iterable[TableOutcome], planned: bool = False) -> list[str]:
    """What a person must know of tables whose rows are moved."""
    done = "will be" if planned else "were"
    return [
        f"{outcome.moved} rows {done} deleted from {outcome.table}: a stream that reads it stops "
        "there unless it sets skipChangeCommits."
        for outcome in tables
        if outcome.moved
    ]


def _blank(kind: str, **values: object) -> Entry:
    # Token, run and place are filled in when the run ends.
    return replace(Entry(0, 0, kind, "", now()), **values)  # type: ignore[arg-type]


def _step_entry(step: Step) -> Entry:
    return _blank(
        STEP,
        revision=step.revision,
        table=step.table,
        rule=step.rule,
        state=step.state,
        violators_false=None if step.violators is None else step.violators.false,
        violators_null=None if step.violators is None else step.violators.null,
        statement="; ".join(step.statements),
        seconds=step.seconds,
    )


def _outcome(work: Work) -> TableOutcome:
    before = 0 if work.look.found is None else work.look.found.rows
    return TableOutcome(
        table=str(work.name),
        quarantine=str(work.look.quarantine),
        before=before,
        moved=work.moved,
        after=rows_now(work),
    )


def _result(scene: Scene, there: Pending, run: str | None, journal: Journal) -> RunResult:
    return RunResult(
        environment=scene.environment.name,
        command=there.direction,
        run=run,
        revisions=tuple(revision.revision for revision in there.revisions),
        recorded=tuple(str(name) for name in there.recorded),
        current=next(reversed(journal.applied), None) if journal.applied else None,
    )


def _planned(scene: Scene, there: Pending, looks: dict[TableName, Look]) -> RunResult:
    steps = [
        planned(None if task.table is None else looks[task.table], task) for task in there.tasks
    ]
    tables = [
        TableOutcome(
            table=str(look.name),
            quarantine=str(look.quarantine),
            before=look.found.rows,
            moved=look.found.any,
            after=look.found.rows - look.found.any,
        )
        for look in looks.values()
        if look.found is not None
    ]
    return replace(
        _result(scene, there, None, there.journal),
        steps=tuple(steps),
        tables=tuple(tables),
        settled=tuple(run.run for run in there.journal.unsettled if _may_be_dead(run)),
        dry_run=True,
        notes=tuple(_notes(tables, planned=True)),
    )


def _may_be_dead(run: Run) -> bool:
    return not run.open or run.expires <= now()


def engine_versions(session: SparkSession) -> str:
    """The versions of what runs, as JSON."""
    found = {"spark": session.version, "python": platform.python_version()}
    for package in ("deltacheck", "delta-spark"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            # Not installed as a package: a source tree, or a cluster that brings its own.
            continue
    return json.dumps(found, sort_keys=True)


__all__ = ["Scene", "check_unedited", "engine_versions", "pending", "run", "scene"]
