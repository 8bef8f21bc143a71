"""The commands as Python functions: ``upgrade``, ``downgrade``, ``plan``, ``status``.

Each opens what it needs, unless it is handed a session, and returns a typed result. The
command line is thin over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from deltacheck.config import Environment, Project, load_project
from deltacheck.delta.session import open_session, session_for
from deltacheck.errors import UsageError
from deltacheck.ledger.journal import now, read_journal
from deltacheck.ledger.lock import break_lock
from deltacheck.migrate.baseline import Baseline, Folders
from deltacheck.migrate.baseline import baseline as take_over
from deltacheck.migrate.logged import log_run, stops_logged
from deltacheck.migrate.restore import restore_quarantined_rows
from deltacheck.migrate.results import RunResult
from deltacheck.migrate.review import held_to, read_plan, write_plan
from deltacheck.migrate.run import Progress, Review, Scene, pending, run, scene
from deltacheck.migrate.stamp import Stamped
from deltacheck.migrate.stamp import stamp as record_stamp
from deltacheck.migrate.status import Status, read_status
from deltacheck.migrate.tasks import chosen_by, sql_text
from deltacheck.migrate.telling import announce, stops_told
from deltacheck.names import TableName
from deltacheck.revisions.files import load_history
from deltacheck.revisions.graph import History
from deltacheck.rules.files import project_rules
from deltacheck.rules.model import RuleSet
from deltacheck.rules.selection import EVERYTHING, Selection


@dataclass(frozen=True)
class Given:
    """A project with all its files read: nothing of it needs Spark."""

    project: Project
    environment: Environment
    history: History
    rules: RuleSet


def read_project(project: Path | str = ".", env: str | None = None) -> Given:
    """Read a project's configuration, migrations and rules, in this order.

    Raises:
        ConfigError: There is no configuration, or no such environment.
        HistoryError: The migrations are broken.
        RuleFileError, ExpressionError: A file in ``constraints/`` is broken.
    """
    found = load_project(project)
    environment = found.environment(env)
    history = load_history(found.versions)
    return Given(found, environment, history, project_rules(found))


def session(env: str | None = None, *, project: Path | str = ".") -> SparkSession:
    """The Spark session of an environment.

    Args:
        env: The environment's name; default: the project's default.
        project: The project's folder.

    Raises:
        ConfigError: There is no configuration, or no such environment.
        EngineError: Java, Spark or Delta cannot be started.
    """
    return open_session(load_project(project).environment(env))


def upgrade(
    target: str = "head",
    *,
    env: str | None = None,
    project: Path | str = ".",
    session: SparkSession | None = None,
    dry_run: bool = False,
    repair: bool = False,
    tables: Iterable[str] = (),
    tags: Iterable[str] = (),
    owners: Iterable[str] = (),
    plan: Path | str | None = None,
    lock_timeout: float = 0.0,
    deadline: float | None = None,
    review: Review | None = None,
    progress: Progress = lambda _: None,
) -> RunResult:
    """Bring the tables of an environment to a target: count, quarantine, enforce, read back.

    One revision that only adds constraints, and whose plan nobody reviews, is tried first: a
    table without violators is not counted. If a gate then stops the run, what it has added is
    dropped again.

    Args:
        target: ``head``, ``+1``, a revision or a prefix of one.
        env: The environment's name; default: the project's default.
        project: The project's folder.
        session: A session to use instead of the environment's own.
        dry_run: Look and count, and write nothing.
        repair: Add constraints that were applied and have drifted again, in the same way.
        tables: Only tables that match one of these patterns (``shop.*``). A revision counts
            as applied when all of its operations are.
        tags: Only rules that have one of these tags in ``constraints/``, or whose table has.
        owners: Only rules that one of these answers for.
        plan: A file that ``write_plan`` made; the run is refused unless it still holds.
        lock_timeout: Seconds to wait for another run to end.
        deadline: Seconds to go on trying on a table that others write to.
        review: Shown the plan before anything is written; raises to stop.
        progress: Told in a few words what the run does.

    Raises:
        PlanChangedError: The reviewed plan no longer holds; nothing was changed.
        DeltacheckError: See ``deltacheck.errors``; what was done until then is recorded.
    """
    reviewed = None if plan is None else read_plan(Path(plan))
    asked = Selection(tuple(tables), tuple(tags), tuple(owners))
    notify = load_project(project).notify
    with _staged(env, project, session, progress, asked) as stage:
        held = None if reviewed is None else held_to(reviewed, stage.history.revisions)
        reviews = [one for one in (held, review) if one is not None]

        def all_of_them(found: RunResult) -> None:
            for one in reviews:
                one(found)

        at = now()
        telling = ExitStack()
        if not dry_run:
            telling.enter_context(stops_told(stage.environment.name, stage.rules, notify))
            telling.enter_context(stops_logged(stage, at))

        def cut_short(done: RunResult) -> None:
            if done.steps:
                log_run(stage, done, at)
                announce(done, stage.rules, notify)

        with telling:
            result = run(
                replace(stage, repair=repair),
                target,
                "upgrade",
                dry_run=dry_run,
                lock_timeout=lock_timeout,
                deadline=deadline,
                review=all_of_them if reviews else None,
                cut_short=cut_short,
            )
        result = log_run(stage, result, at)
    announce(result, stage.rules, notify)
    return result


def downgrade(
    target: str,
    *,
    env: str | None = None,
    project: Path | str = ".",
    session: SparkSession | None = None,
    dry_run: bool = False,
    restore_quarantined: bool = False,
    lock_timeout: float = 0.0,
    review: Review | None = None,
    progress: Progress = lambda _: None,
) -> RunResult:
    """Take revisions back: drop what they added. Quarantined rows stay where they are.

    Args:
        target: ``base``, ``-1``, a revision or a prefix of one; it stays applied.
        restore_quarantined: Also bring back the rows that the reverted revisions had moved,
            but for those that break a rule which still holds.

    Raises:
        DeltacheckError: See ``deltacheck.errors``; what was done until then is recorded.
    """
    with _staged(env, project, session, progress) as stage:
        result = run(
            stage, target, "downgrade", dry_run=dry_run, lock_timeout=lock_timeout, review=review
        )
        if restore_quarantined and not dry_run:
            return restore_quarantined_rows(stage, result)
        return result


def plan(
    target: str = "head",
    *,
    env: str | None = None,
    project: Path | str = ".",
    session: SparkSession | None = None,
    repair: bool = False,
    tables: Iterable[str] = (),
    tags: Iterable[str] = (),
    owners: Iterable[str] = (),
    out: Path | str | None = None,
    progress: Progress = lambda _: None,
) -> RunResult:
    """What ``upgrade`` would do, found without writing to any table.

    Args:
        repair: Of a run that adds drifted constraints again.
        tables, tags, owners: As for ``upgrade``.
        out: A file to write the plan to, for ``upgrade(plan=...)``.

    Raises:
        DeltacheckError: See ``deltacheck.errors``.
    """
    asked = Selection(tuple(tables), tuple(tags), tuple(owners))
    with _staged(env, project, session, progress, asked) as stage:
        found = run(replace(stage, repair=repair), target, "upgrade", dry_run=True)
        if out is not None:
            wanted = [one for one in stage.history.revisions if one.revision in found.revisions]
            write_plan(Path(out), found, wanted)
        return found


def sql(
    target: str = "head",
    *,
    env: str | None = None,
    project: Path | str = ".",
    session: SparkSession | None = None,
    tables: Iterable[str] = (),
    tags: Iterable[str] = (),
    owners: Iterable[str] = (),
    progress: Progress = lambda _: None,
) -> str:
    """The statements of the pending revisions, for review or for running elsewhere.

    Counts nothing and moves nothing: the text says so.
    """
    asked = Selection(tuple(tables), tuple(tags), tuple(owners))
    with _staged(env, project, session, progress, asked) as stage:
        there = pending(stage, target, "upgrade")
        return sql_text(there.revisions, there.tasks)


def status(
    *,
    env: str | None = None,
    project: Path | str = ".",
    session: SparkSession | None = None,
    tables: Iterable[str] = (),
    tags: Iterable[str] = (),
    owners: Iterable[str] = (),
    column: str | None = None,
    progress: Progress = lambda _: None,
) -> Status:
    """Every rule of an environment and how things stand; writes nothing.

    Args:
        tables: Only tables that match one of these patterns (``shop.*``).
        tags: Only rules that have one of these tags, or whose table has.
        owners: Only rules that one of these answers for.
        column: Only rules that read this column.

    Raises:
        DeltacheckError: See ``deltacheck.errors``.
    """
    chosen = Selection(tuple(tables), tuple(tags), tuple(owners), column)
    with _staged(env, project, session, progress) as stage:
        return read_status(stage.session, stage.environment, stage.history, stage.rules, chosen)


@dataclass(frozen=True)
class Current:
    """The revision that an environment is at; None: nothing is applied."""

    environment: str
    revision: str | None


def current(
    *,
    env: str | None = None,
    project: Path | str = ".",
    session: SparkSession | None = None,
    progress: Progress = lambda _: None,
) -> Current:
    """The revision that an environment is at; writes nothing.

    Raises:
        DeltacheckError: See ``deltacheck.errors``.
    """
    with _staged(env, project, session, progress) as stage:
        journal = read_journal(stage.session, stage.environment)
        return Current(stage.environment.name, next(reversed(journal.applied), None))


def unlock(
    *,
    env: str | None = None,
    project: Path | str = ".",
    session: SparkSession | None = None,
    progress: Progress = lambda _: None,
) -> str | None:
    """Break the lock of an environment; the run that holds it cannot go on.

    Returns:
        The run that held it, or None where none did.
    """
    with _staged(env, project, session, progress) as stage:
        broken = break_lock(stage.session, stage.environment)
        return None if broken is None else broken.run


def stamp(
    revision: str,
    *,
    env: str | None = None,
    project: Path | str = ".",
    session: SparkSession | None = None,
    lock_timeout: float = 0.0,
    progress: Progress = lambda _: None,
) -> Stamped:
    """Record that an environment is at a revision, without running anything.

    Args:
        revision: ``head``, ``base``, a revision or the beginning of one.
        lock_timeout: Seconds to wait for another run to end.

    Raises:
        DeltacheckError: See ``deltacheck.errors``; nothing was recorded.
    """
    with _staged(env, project, session, progress) as stage:
        return record_stamp(
            stage.session, stage.environment, stage.history, revision, lock_timeout=lock_timeout
        )


def baseline(
    tables: Iterable[str] = (),
    *,
    schema: str | None = None,
    message: str = "baseline",
    env: str | None = None,
    project: Path | str = ".",
    session: SparkSession | None = None,
    lock_timeout: float = 0.0,
    progress: Progress = lambda _: None,
) -> Baseline:
    """Take over the constraints that tables have: rules, a revision, and its stamp.

    Args:
        tables: The tables.
        schema: Or all Delta tables of a schema.
        message: What the revision says that it is for.
        lock_timeout: Seconds to wait for another run to end.

    Raises:
        DeltacheckError: See ``deltacheck.errors``; nothing was written.
    """
    names = [TableName.parse(text) for text in tables]
    if bool(names) == (schema is not None):
        raise UsageError(
            "Baseline takes tables or one schema; nothing was done.",
            hint="Name the tables, or give --schema.",
        )
    found = load_project(project)
    with _staged(env, project, session, progress) as stage:
        folders = Folders(found.constraints, found.versions, stage.rules, stage.history)
        return take_over(
            stage.session,
            stage.environment,
            folders,
            names,
            schema=schema,
            message=message,
            lock_timeout=lock_timeout,
        )


@contextmanager
def _staged(
    env: str | None,
    project: Path | str,
    session: SparkSession | None,
    progress: Progress,
    asked: Selection = EVERYTHING,
) -> Iterator[Scene]:
    given = read_project(project, env)
    wanted = chosen_by(asked, given.rules)
    with ExitStack() as stack:
        if session is None:
            progress("Starting Spark")
            session = stack.enter_context(session_for(given.environment))
        yield stack.enter_context(
            scene(session, given.environment, given.history, given.rules, progress, wanted)
        )


__all__ = [
    "Current",
    "Given",
    "baseline",
    "current",
    "downgrade",
    "plan",
    "read_project",
    "session",
    "sql",
    "stamp",
    "status",
    "unlock",
    "upgrade",
]
