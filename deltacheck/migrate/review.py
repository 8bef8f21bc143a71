"""A reviewed plan: written to a file in one step of a deploy, held to in a later one.

Knows no Spark: it compares what was found then with what is found now.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from deltacheck.errors import PlanChangedError, UsageError
from deltacheck.migrate.results import RunResult, Step
from deltacheck.revisions.graph import Revision

FORMAT = 1

MARGIN = 0.1
"""By how much of its number a rule's violators may have grown since the plan was made."""


def write_plan(path: Path, plan: RunResult, revisions: Sequence[Revision]) -> None:
    """Write a plan to a file.

    Args:
        plan: What a dry run found.
        revisions: The revisions that it is about.

    Raises:
        UsageError: The file cannot be written.
    """
    document = {
        "format": FORMAT,
        "environment": plan.environment,
        "command": plan.command,
        "revisions": [{"revision": one.revision, "checksum": one.checksum} for one in revisions],
        "recorded": list(plan.recorded),
        "steps": [_entry(step) for step in plan.steps],
    }
    document["digest"] = _digest(document)
    try:
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"The plan cannot be written to {path}: {error.strerror}.") from None


def read_plan(path: Path) -> dict[str, Any]:
    """Read a plan from a file.

    Raises:
        UsageError: It cannot be read, is not a plan, or was edited.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UsageError(
            f"{path} is not a plan that can be read; nothing was done.",
            hint="Make one with `deltacheck plan --out FILE`.",
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UsageError(
            f"{path} is not a plan of a format that this deltacheck knows; nothing was done.",
            hint="Make one with `deltacheck plan --out FILE`.",
        )
    digest = document.pop("digest", None)
    if digest != _digest(document):
        raise UsageError(
            f"The plan {path} was edited since it was made; nothing was done.",
            hint="Make it again with `deltacheck plan --out FILE`.",
        )
    return document


def held_to(
    reviewed: dict[str, Any], revisions: Sequence[Revision], margin: float = MARGIN
) -> Callable[[RunResult], None]:
    """A review that lets a run pass only if it is what was reviewed.

    Args:
        reviewed: A plan as read from its file.
        revisions: All revisions of the project.
        margin: By how much of its number a rule's violators may have grown.
    """
    checksums = {one.revision: one.checksum for one in revisions}

    def review(found: RunResult) -> None:
        if found.environment != reviewed["environment"] or found.command != reviewed["command"]:
            raise _changed(
                f"it was made for {reviewed['command']} on {reviewed['environment']}, not for "
                f"{found.command} on {found.environment}"
            )
        now = [{"revision": one, "checksum": checksums.get(one)} for one in found.revisions]
        if now != reviewed["revisions"]:
            then = ", ".join(one["revision"] for one in reviewed["revisions"]) or "none"
            raise _changed(
                f"it was made for the revisions {then}; pending are now "
                f"{', '.join(found.revisions) or 'none'}, or one of them was edited"
            )
        if list(found.recorded) != reviewed["recorded"]:
            raise _changed("the declared rules changed")
        for before, step in zip(reviewed["steps"], found.steps, strict=False):
            _compare(before, _entry(step), margin)
        if len(reviewed["steps"]) != len(found.steps):
            raise _changed("it has other steps")

    return review


def _compare(before: dict[str, Any], after: dict[str, Any], margin: float) -> None:
    then, now = before["violators"], after["violators"]
    if {**before, "violators": None} != {**after, "violators": None}:
        raise _changed(f"the rule {after['rule']} of {after['table']} changed")
    if (then is None) != (now is None):
        raise _changed(f"the constraint {after['rule']} of {after['table']} came or went")
    if then is not None and now > then * (1 + margin):
        raise _changed(
            f"{now} rows of {after['table']} break {after['rule']}, and {then} did then: more "
            f"than {margin:.0%} more"
        )


def _entry(step: Step) -> dict[str, Any]:
    return {
        "revision": step.revision,
        "operation": step.operation,
        "table": step.table,
        "rule": step.rule,
        "expression": step.expression,
        "state": step.state,
        "violators": None if step.violators is None else step.violators.total,
    }


def _changed(what: str) -> PlanChangedError:
    return PlanChangedError(
        f"The plan no longer holds: {what}. Nothing was changed.",
        hint="Make it again with `deltacheck plan --out FILE`, and have it reviewed.",
    )


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
