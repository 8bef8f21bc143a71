"""Run migrations: look, lock, settle what died, then revision by revision, table by table."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.commit import Statement, Tag, commit
from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.delta.session import quiet_query_loggers, settings, sibling, verdict_settings
from deltacheck.delta.table import read_table
from deltacheck.errors import (
    AppendOnlyError,
    BusyTableError,
    DeltacheckError,
    HistoryError,
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
    now,
    read_journal,
)
from deltacheck.ledger.lock import Lock, locked
from deltacheck.ledger.recorded import PROPERTY, recorded_text, set_statement
from deltacheck.migrate.enforce import Work, enforce, planned, rows_now
from deltacheck.migrate.outlook import outlook
from deltacheck.migrate.preflight import Look, look_at
from deltacheck.migrate.results import RunResult, Step, TableOutcome
from deltacheck.migrate.tasks import Direction, Task, tasks_of
from deltacheck.names import TableName
from deltacheck.quarantine.layout import environment_quarantine
from deltacheck.quarantine.move import Attempt, attempts_of, deletes_of, fence_off, settle
from deltacheck.quarantine.place import prepare
from deltacheck.revisions.graph import History, Revision
from deltacheck.revisions.operations import Execute
from deltacheck.rules.model import RuleSet

Progress = Callable[[str], None]
"""Told in a few words what the run does now."""

Wanted = Callable[[Task], bool]
"""Tells whether a task is among those that a run was asked for."""

Review = Callable[[RunResult], None]
"""Shown a plan; raises to stop the run before it writes."""

_CLEAN_STOPS = (ViolationError, BusyTableError, AppendOnlyError)
"""Raised where nothing of the run is in flight and nothing is half done."""


@dataclass(frozen=True)
class Scene:
    """What a run works with.

    Attributes:
        rules: What ``constraints/`` declares; recorded on the tables when the target is head.
        wanted: Tells which tasks are wanted; a revision is recorded as applied only when all
            of its tasks are.
    """

    session: SparkSession
    environment: Environment
    history: History
    rules: RuleSet = field(default_factory=dict)
    progress: Progress = lambda _: None
    wanted: Wanted = lambda _: True


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
    own = sibling(session)
    with quiet_query_loggers(), settings(own, verdict_settings(own)):
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
        return not (self.revisions or self.recorded or self.journal.unsettled)


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
        text = recorded_text(declared, quarantine, scene.environment.schema)
        try:
            table = read_table(scene.session, name)
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
    review: Review = lambda _: None,
) -> RunResult:
    """Bring the tables of an environment to a target.

    Args:
        target: As in Alembic: head, base, +1, -1, a revision or a prefix of one.
        dry_run: Look, count, and write nothing.
        lock_timeout: Seconds to wait for another run to end.
        deadline: Seconds to go on trying on a table that others write to.
        review: Shown the plan before anything is written; raises to stop.

    Raises:
        DeltacheckError: See the tree; what was done until then is recorded.
    """
    there = pending(scene, target, direction)
    if there.nothing:
        return _result(scene, there, None, there.journal)
    scene.progress("Looking at the tables and counting violators")
    looks = look_at(scene.session, scene.environment, there.tasks)
    plan = _planned(scene, there, looks)
    if dry_run:
        return replace(plan, outlook=outlook(scene.session, looks.values()))
    review(plan)
    with locked(
        scene.session,
        scene.environment,
        command=direction,
        revisions=[revision.revision for revision in there.revisions],
        tables=[*((name, look.found.version if look.found else 0) for name, look in looks.items())],
        engine=engine_versions(scene.session),
        timeout=lock_timeout,
    ) as lock:
        moved_on = lock.journal.token != there.journal.token or list(lock.journal.applied) != list(
            there.journal.applied
        )
        act = _Act(scene, there, lock, time.monotonic(), deadline)
        return act.go(target, None if moved_on or lock.journal.unsettled else looks)


@dataclass
class _Act:
    """One run under the lock, and what it has done so far."""

    scene: Scene
    there: Pending
    lock: Lock
    started: float
    deadline: float | None
    entries: list[Entry] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    works: dict[TableName, Work] = field(default_factory=dict)
    settled: list[str] = field(default_factory=list)

    def go(self, target: str, looks: dict[TableName, Look] | None) -> RunResult:
        try:
            if looks is None:
                # The lock came late, or an earlier run left something: look again.
                self._settle_dead_runs()
                self.there = replace(
                    pending(self.scene, target, self.there.direction), journal=self.lock.journal
                )
                looks = look_at(self.scene.session, self.scene.environment, self.there.tasks)
            self._revisions(looks)
            self._record_rules()
        except _CLEAN_STOPS:
            self.lock.end(self.entries, STOPPED)
            raise
        except (DeltacheckError, KeyboardInterrupt, SystemExit, *EngineFailure):
            # Something of ours may still be in flight: the next run fences it off.
            self.lock.end(self.entries, FAILED)
            raise
        self.lock.end(self.entries, DONE)
        after = read_journal(self.scene.session, self.scene.environment)
        result = _result(self.scene, self.there, self.lock.run, after)
        return replace(
            result,
            steps=tuple(self.steps),
            tables=tuple(_outcome(work) for work in self.works.values() if work.look.new),
            settled=tuple(self.settled),
        )

    def _revisions(self, looks: dict[TableName, Look]) -> None:
        for name, look in looks.items():
            until = None if self.deadline is None else self.started + self.deadline
            self.works[name] = Work(
                self.scene.session, self.scene.environment, self.lock, look, until
            )
        by_revision = {
            revision: list(tasks)
            for revision, tasks in groupby(self.there.tasks, key=lambda task: task.revision)
        }
        for revision in self.there.revisions:
            for step in self._revision(by_revision.get(revision.revision, [])):
                self.steps.append(step)
                self.entries.append(_step_entry(step))
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
            yield from enforce(self.works[name], tasks)

    def _other(self, task: Task) -> Step:
        step = planned(None, task)
        if not isinstance(task.operation, Execute):
            return replace(step, state="skipped", note="bookkeeping; no statement")
        self.lock.ensure()
        started = time.monotonic()
        statement = task.operation.statement
        try:
            self.scene.session.sql(statement).collect()
        except EngineFailure as error:
            raise DeltacheckError(
                f"The statement of revision {task.revision} failed: Spark says "
                f"{failure_of(error).condition or failure_of(error).kind}. The revision is not "
                "applied.",
                hint="Correct the statement; the next run starts the revision again.",
            ) from None
        for work in self.works.values():
            work.fresh = False
        seconds = round(time.monotonic() - started, 3)
        return replace(step, state="ran", statements=(statement,), seconds=seconds)

    def _record_rules(self) -> None:
        for name, text in self.there.recorded.items():
            self.lock.ensure()
            statement = Statement(set_statement(name, text))
            commit(self.scene.session, name, statement, tag=Tag(run=self.lock.run), tries=5)

    def _settle_dead_runs(self) -> None:
        for dead in self.lock.journal.unsettled:
            self.scene.progress(f"Settling run {dead.run}, which did not end")
            for name, since in dead.tables:
                self._settle(dead.run, name, since)
            self.settled.append(dead.run)
            self.entries.append(_blank(SETTLED, detail=dead.run))

    def _settle(self, dead: str, name: TableName, since: int) -> None:
        session, tag = self.scene.session, Tag(run=self.lock.run)
        try:
            table = read_table(session, name)
        except TableNotFoundError:
            return
        self.lock.ensure()
        fence_off(session, name, tag, self.lock.fence())
        quarantine = environment_quarantine(name, self.scene.environment)
        try:
            read_table(session, quarantine)
        except TableNotFoundError:
            return
        fence_off(session, quarantine, tag, self.lock.fence())
        place = prepare(session, name, table.schema, quarantine, tag)
        deletes = {
            attempt: entry.tag
            for attempt, entry in deletes_of(session, name, since).items()
            if entry.tag.get("run") == dead
        }
        attempts = [
            Attempt(
                id=attempt,
                run=dead,
                revision=deletes.get(attempt, {}).get("revision", ""),
                rules=deletes.get(attempt, {}).get("rules", {}),
                named={},
            )
            for attempt in sorted({*attempts_of(session, quarantine, dead), *deletes})
        ]
        if attempts:
            settle(session, place, attempts, since=since, fence=self.lock.fence)


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
            table=str(look.table.name),
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
        settled=tuple(run.run for run in there.journal.unsettled),
        dry_run=True,
    )


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
