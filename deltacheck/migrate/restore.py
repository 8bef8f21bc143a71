"""Bring back the rows that reverted revisions had moved to quarantine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltacheck.delta.table import read_definition
from deltacheck.errors import TableNotFoundError
from deltacheck.ledger.journal import read_journal
from deltacheck.migrate.results import Restored, RunResult
from deltacheck.migrate.run import Scene
from deltacheck.migrate.tasks import tasks_of
from deltacheck.names import TableName
from deltacheck.quarantine.holding import Holding, Selection
from deltacheck.quarantine.layout import environment_quarantine
from deltacheck.quarantine.place import read_place
from deltacheck.quarantine.releasing import release_rows
from deltacheck.revisions.graph import Revision


def restore_quarantined_rows(scene: Scene, result: RunResult) -> RunResult:
    """Release the rows that the revisions no longer applied had moved.

    Rows that break a rule which still holds stay. Goes by what is applied, not by what this
    run reverted: asked again after a crash, it goes on.

    Args:
        result: What the downgrade did.

    Raises:
        QuarantineError: A table refused the rows; they stay in quarantine.
    """
    applied = read_journal(scene.session, scene.environment).applied
    gone = [one for one in scene.history.revisions if one.revision not in applied]
    restored = []
    for name in _tables(gone):
        try:
            table = read_definition(scene.session, name)
        except TableNotFoundError:
            continue
        quarantine = environment_quarantine(name, scene.environment)
        held = read_place(scene.session, name, quarantine)
        if held is None:
            continue
        scene.progress(f"{name}: bringing quarantined rows back")
        place = Holding(scene.session, name, quarantine, table, held, scene.environment)
        selection = Selection(revisions=[one.revision for one in gone])
        done = release_rows(place, scene.session, selection)
        if done.rows or done.kept:
            restored.append(Restored(str(name), str(quarantine), done.rows, done.kept))
    return replace(result, restored=tuple(restored))


def _tables(revisions: Sequence[Revision]) -> list[TableName]:
    # By the names that tables have where none of these revisions is applied; what a downgrade
    # leaves out goes by its name after them.
    tasks = (*tasks_of(revisions[::-1], "downgrade"), *tasks_of(revisions, "upgrade"))
    return list(dict.fromkeys(task.table for task in tasks if task.table is not None))
