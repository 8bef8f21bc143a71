"""The commands on quarantined rows as Python functions: ``deltacheck.quarantine.release(...)``.

Each opens what it needs, unless it is handed a session, and returns a typed result. The command
line is thin over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from deltacheck.errors import ConfigError, TableNotFoundError
from deltacheck.names import TableName
from deltacheck.quarantine.erasing import Discarded, Purged, discard_rows, purge_rows
from deltacheck.quarantine.holding import Desk, Progress, Selection, desk, holding
from deltacheck.quarantine.listing import Held, count_held
from deltacheck.quarantine.looking import Exported, Shown, State, export_rows, show_rows
from deltacheck.quarantine.releasing import Action, Released, release_rows
from deltacheck.revisions.files import load_history
from deltacheck.revisions.state import state_after
from deltacheck.rules.files import read_rules
from deltacheck.rules.model import RuleSet, TableRules
from deltacheck.rules.selection import Selection as Declared


def list_held(
    *tables: str,
    rules: Sequence[str] = (),
    run: str | None = None,
    where: str | None = None,
    tags: Sequence[str] = (),
    owners: Sequence[str] = (),
    env: str | None = None,
    project: Path | str | None = None,
    session: SparkSession | None = None,
    quarantine: str | None = None,
    progress: Progress = lambda _: None,
) -> tuple[Held, ...]:
    """Count quarantined rows per table, rules, origin and state; writes nothing.

    Args:
        tables: Only these; default: every table that the project declares or migrates.
        rules: Only rows that broke one of these rules.
        run: Only rows that came with this run, batch or attempt.
        where: Only rows that meet this SQL condition over the table's columns.
        tags: Only rows that broke a rule which has one of these tags in ``constraints/``.
        owners: Only rows that broke a rule which one of these answers for.
        env: The environment's name; default: the project's default.
        project: The project's folder; default: the current one, unless a session is given.
        session: A session to use instead of the environment's own.
        quarantine: The quarantine table; default: where the environment says, or without one
            the table's recorded rules, else ``<table>_quarantine``.
        progress: Told in a few words what is done.

    Raises:
        DeltacheckError: See ``deltacheck.errors``.
    """
    asked = Declared(tags=tuple(tags), owners=tuple(owners))
    if session is not None and project is None and (not tables or asked.by_declaration):
        project = "."
    with desk(session, env, project, progress) as on:
        declared = _declared(on) if asked.by_declaration or not tables else {}
        found: list[Held] = []
        for name in [TableName.parse(text) for text in tables] or _project_tables(on, declared):
            chosen = _narrowed(rules, declared.get(name), asked) if asked.by_declaration else rules
            if asked.by_declaration and not chosen:
                continue
            selection = Selection(chosen, run, where)
            try:
                place = holding(on, name, quarantine)
            except TableNotFoundError:
                if tables:
                    raise
                # Declared ahead of its making: nothing can have been quarantined.
                continue
            found += count_held(place, selection)
        return tuple(found)


def _declared(on: Desk) -> RuleSet:
    if on.project is None or not on.project.constraints.is_dir():
        return {}
    return read_rules(on.project.constraints)


def _narrowed(rules: Sequence[str], declared: TableRules | None, asked: Declared) -> Sequence[str]:
    """The rules of a table that have the tags and owners asked for, of those named."""
    if declared is None:
        return ()
    named = {name.lower() for name in rules} or {rule.key for rule in declared.rules}
    return [r.name for r in declared.rules if r.key in named and asked.has_rule(declared, r)]


def _project_tables(on: Desk, declared: RuleSet) -> list[TableName]:
    if on.project is None:
        raise ConfigError("Without a project the tables must be named; nothing was done.")
    migrated = state_after(load_history(on.project.versions).revisions)
    return sorted({*declared, *migrated}, key=str)


def show(
    table: str,
    *,
    columns: Sequence[str] = (),
    limit: int = 20,
    state: State = "held",
    rules: Sequence[str] = (),
    run: str | None = None,
    where: str | None = None,
    env: str | None = None,
    project: Path | str | None = None,
    session: SparkSession | None = None,
    quarantine: str | None = None,
    progress: Progress = lambda _: None,
) -> Shown:
    """Read quarantined rows, values and all; writes nothing.

    Args:
        table: The table that the rows were meant for.
        columns: Columns of the quarantine; default: the rules broken and the table's columns.
        limit: At most so many rows, the oldest first.
        state: Only rows in this state, or ``all``.
        rules, run, where: Which rows; as in ``list``.
        env, project, session, quarantine, progress: As in ``list``.

    Raises:
        UsageError: There is no such column.
        DeltacheckError: See ``deltacheck.errors``.
    """
    with desk(session, env, project, progress) as on:
        place = holding(on, table, quarantine)
        return show_rows(place, Selection(rules, run, where), columns, limit, state)


def export(
    table: str,
    path: Path | str,
    *,
    format: str | None = None,
    columns: Sequence[str] = (),
    state: State = "held",
    rules: Sequence[str] = (),
    run: str | None = None,
    where: str | None = None,
    env: str | None = None,
    project: Path | str | None = None,
    session: SparkSession | None = None,
    quarantine: str | None = None,
    progress: Progress = lambda _: None,
) -> Exported:
    """Write quarantined rows to a new folder of files, as Spark writes them.

    CSV and JSON are one file in the folder; nested values are JSON in CSV, bytes base64. Times
    are in UTC.

    Args:
        table: The table that the rows were meant for.
        path: The folder, as Spark sees it: over Spark Connect it is the server's.
        format: ``csv``, ``json`` or ``parquet``; default: what the path ends in.
        columns: Columns of the quarantine; default: all of them.
        state: Only rows in this state, or ``all``.
        rules, run, where: Which rows; as in ``list``.
        env, project, session, quarantine, progress: As in ``list``.

    Raises:
        UsageError: The path is there already, or does not say which format.
        DeltacheckError: See ``deltacheck.errors``.
    """
    with desk(session, env, project, progress) as on:
        place = holding(on, table, quarantine)
        selection = Selection(rules, run, where)
        return export_rows(place, str(path), format, selection, columns, state)


def release(
    table: str,
    *,
    repairs: Sequence[str] = (),
    append: bool = False,
    action: Action | None = None,
    check: bool = True,
    resume: str | None = None,
    dry_run: bool = False,
    rules: Sequence[str] = (),
    run: str | None = None,
    where: str | None = None,
    env: str | None = None,
    project: Path | str | None = None,
    session: SparkSession | None = None,
    quarantine: str | None = None,
    progress: Progress = lambda _: None,
) -> Released:
    """Write held rows that satisfy the table's rules of today back to it, each exactly once.

    The others stay, with the rules that they break now. A row stays too where writing it would
    double it: a RESTORE has brought it back, or the run that moved it has not ended. First
    whatever an earlier release left unfinished is finished.

    A released row stays in the quarantine, marked and as it was written, until it is purged.
    Identity columns that are always generated get new values, and generated columns are computed
    anew.

    Args:
        table: The table that the rows were moved from or meant for.
        repairs: New values for columns, such as ``"amount = abs(amount)"``; each sees the row
            as it was. They reach the rows that then pass, and no others.
        append: Append rows of guarded writes and overwrites as well, and rows of runs that the
            journal does not know.
        action: A write of your own that is given the rows as a DataFrame of your session, for
            example a MERGE, instead of the append. If it raises an exception the rows stay
            held, so it must not have written them then. If the process dies in it, nobody can
            tell whether it wrote: the release stays open until ``resume``.
        check: Whether only rows that satisfy the rules are given to the action.
        resume: The id of a release by an action that did not end: only its rows are given to
            the action again, or appended.
        dry_run: Look and count, and write nothing.
        rules, run, where: Which rows; as in ``list``.
        env, project, session, quarantine, progress: As in ``list``.

    Raises:
        ExpressionError: A repair or the condition cannot be used.
        QuarantineError: None of the rows may be written back, or the table refused them; they
            are held as before.
        DeltacheckError: See ``deltacheck.errors``.
        Exception: What the action raises passes through.
    """
    with desk(session, env, project, progress) as on:
        place = holding(on, table, quarantine)
        return release_rows(
            place,
            on.caller,
            Selection(rules, run, where),
            repairs=repairs,
            append=append,
            action=action,
            check=check,
            resume=resume,
            dry_run=dry_run,
        )


def discard(
    table: str,
    reason: str,
    *,
    dry_run: bool = False,
    rules: Sequence[str] = (),
    run: str | None = None,
    where: str | None = None,
    env: str | None = None,
    project: Path | str | None = None,
    session: SparkSession | None = None,
    quarantine: str | None = None,
    progress: Progress = lambda _: None,
) -> Discarded:
    """Give up held rows: they are marked, with the reason, and stay until they are purged.

    Args:
        table: The table that the rows were moved from or meant for.
        reason: Why; kept in the column ``_deltacheck_reason``.
        dry_run: Count, and write nothing.
        rules, run, where: Which rows; as in ``list``.
        env, project, session, quarantine, progress: As in ``list``.

    Raises:
        UsageError: The reason is empty.
        DeltacheckError: See ``deltacheck.errors``.
    """
    with desk(session, env, project, progress) as on:
        place = holding(on, table, quarantine)
        return discard_rows(place, reason, Selection(rules, run, where), dry_run=dry_run)


def purge(
    table: str,
    *,
    older_than: timedelta | str | None = None,
    held: bool = False,
    dry_run: bool = False,
    rules: Sequence[str] = (),
    run: str | None = None,
    where: str | None = None,
    env: str | None = None,
    project: Path | str | None = None,
    session: SparkSession | None = None,
    quarantine: str | None = None,
    progress: Progress = lambda _: None,
) -> Purged:
    """Delete released and discarded rows from the quarantine; the result says what is left.

    Args:
        table: The table that the rows were moved from or meant for.
        older_than: Only rows that came so long ago: a timedelta, or ``"90d"`` (w, d, h, m).
        held: Delete held rows too. Of them there is no other copy.
        dry_run: Count, and delete nothing.
        rules, run, where: Which rows; as in ``list``.
        env, project, session, quarantine, progress: As in ``list``.

    Raises:
        UsageError: Neither an age nor a selection is given, or the age is none.
        DeltacheckError: See ``deltacheck.errors``.
    """
    with desk(session, env, project, progress) as on:
        place = holding(on, table, quarantine)
        selection = Selection(rules, run, where)
        return purge_rows(place, older_than, selection, held=held, dry_run=dry_run)


__all__ = [
    "Discarded",
    "Exported",
    "Held",
    "Purged",
    "Released",
    "Shown",
    "discard",
    "export",
    "list_held",
    "purge",
    "release",
    "show",
]
