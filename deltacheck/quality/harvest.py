"""What a table's own history tells of the batches that were written to it.

A clean wrapped write logs nothing: Delta held every row against every constraint, and the commit
says who made it. So its passes can be read from the history for as long as that lasts. Pure: it
is given commits, and knows no table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from fractions import Fraction
from typing import Any

from deltacheck.delta.table import CONSTRAINT_PREFIX, Commit
from deltacheck.ledger.quality_log import BATCH, CHECK, RULE, WRITE, Line
from deltacheck.quality.results import Outcome
from deltacheck.rules.model import Rule

_MADE_ANEW = {"CREATE", "REPLACE", "RESTORE", "CLONE", "CONVERT"}
"""First words of operations before which the table may have had other constraints."""

_COLUMNS = {"COLUMN", "COLUMNS", "SCHEMA"}
"""Last words of operations before which the schema may have held rows to something else."""


@dataclass(frozen=True)
class Said:
    """What a check of a batch as a whole said of it.

    Attributes:
        action: What its failure means.
        owner: Who answers for it.
    """

    check: str
    action: str
    owner: str
    outcome: Outcome

    def told(self) -> dict[str, object]:
        """It as the commit that decides a batch tells it; ``of`` reads that."""
        said = self.outcome
        told: dict[str, object] = {
            "state": said.state,
            "message": said.message,
            "rows": said.rows,
            "failed": said.failed,
            "action": self.action,
        }
        if said.figure is not None:
            told["figure"] = float(said.figure)
        if self.owner:
            told["owner"] = self.owner
        return told

    @classmethod
    def of(cls, check: str, told: Mapping[str, Any]) -> Said:
        """What a commit tells of a check."""
        figure = told.get("figure")
        return cls(
            check,
            told["action"],
            told.get("owner", ""),
            Outcome(
                told["state"],
                told["message"],
                told["rows"],
                told["failed"],
                None if figure is None else Fraction(figure),
            ),
        )


@dataclass(frozen=True)
class Written:
    """A wrapped batch, as the commit that decided it tells, or the writer itself.

    Attributes:
        attempt: The attempt that decided it.
        at: When; in UTC.
        rows: The rows of the batch, so far as the table or its quarantine got them or they were
            dropped.
        broken: Rule to the rows that broke it.
        bad: Rows that broke one that is more than a warning.
        refused: Whether none of its rows is in the table, since it was stopped or quarantined.
        named: The rule for which Delta refused it, or that stopped it; it failed also where no
            row could be told to break it.
        constraints: The names, in lower case, of the CHECKs that the rows were held against, and
            of what the schema holds them to; None: the history does not tell.
        checked: What each check of the batch as a whole said.
        version: The table's version that it made; None: none, or nobody has looked.
    """

    attempt: str
    at: datetime
    rows: int
    broken: Mapping[str, int]
    bad: int
    refused: bool
    constraints: frozenset[str] | None
    checked: tuple[Said, ...] = ()
    named: str | None = None
    version: int | None = None
    batch: str | None = None
    job: str | None = None
    source: str = WRITE


def written_batches(
    commits: Sequence[Commit], constraints: Iterable[str], by_schema: Iterable[str] = ()
) -> list[Written]:
    """The wrapped batches among a table's commits, oldest first.

    Args:
        commits: The newest commits of the table, newest first, without a gap.
        constraints: The names of the CHECKs that the table has after them.
        by_schema: The names of what its schema holds rows to after them.
    """
    known: frozenset[str] | None = frozenset(name.lower() for name in constraints)
    besides = frozenset(name.lower() for name in by_schema)
    found = []
    for commit in commits:
        if (batch := _batch(commit, None if known is None else known | besides)) is not None:
            found.append(batch)
        known = _before(commit, known)
        if commit.operation.split()[-1] in _COLUMNS:
            besides = frozenset()
    return found[::-1]


def _batch(commit: Commit, constraints: frozenset[str] | None) -> Written | None:
    tag = commit.tag
    # A step decides nothing, and a run is an upgrade's.
    if "attempt" not in tag or "step" in tag or "run" in tag:
        return None
    told = tag.get("detail", {})
    checked = tuple(Said.of(name, said) for name, said in told.get("checks", {}).items())
    failed = {said.check for said in checked if said.outcome.state == "failed"}
    output = int(commit.metrics.get("numOutputRows", 0))
    # An overwrite of some rows of a file counts those too that it copies into a new one.
    output -= int(commit.metrics.get("numCopiedRows", 0))
    quarantined, dropped = int(told.get("quarantined", 0)), int(told.get("dropped", 0))
    return Written(
        attempt=str(tag["attempt"]),
        version=commit.version,
        # PySpark gives times in the machine's zone, without saying so.
        at=commit.at.astimezone(timezone.utc),
        rows=int(told.get("written", output)) + quarantined + dropped,
        broken={str(rule): int(rows) for rule, rows in told.get("broken", {}).items()},
        bad=int(told.get("bad", 0)),
        refused=told.get("route") == "batch",
        # The check for which a batch is quarantined has a line of its own.
        named=None if told.get("rule") in failed else told.get("rule"),
        constraints=constraints,
        checked=checked,
        batch=tag.get("batch"),
        job=tag.get("job"),
    )


def _before(commit: Commit, after: frozenset[str] | None) -> frozenset[str] | None:
    """The names of the CHECKs that a table had before a commit; None: that cannot be told."""
    words = commit.operation.split()
    if after is None or words[0] in _MADE_ANEW:
        return None
    name = commit.parameters.get("name", "").lower()
    if words == ["ADD", "CONSTRAINT"]:
        return after - {name}
    if words == ["DROP", "CONSTRAINT"]:
        existed = commit.parameters.get("existed", "true").lower() == "true"
        return after | {name} if existed else after
    told = commit.parameters.get("properties", "").lower()
    return None if words[-1] == "TBLPROPERTIES" and CONSTRAINT_PREFIX in told else after


def lines(
    batches: Iterable[Written], base: Line, rules: Iterable[Rule], schema: Mapping[str, str]
) -> Iterator[Line]:
    """The lines of the log for some batches: for each rule, each check, and last for the batch.

    Args:
        base: What all lines have in common; its owner is that of rules and checks without one.
        rules: Those that are declared.
        schema: What ``held_by_schema`` says.
    """
    declared = {rule.key: rule for rule in rules}
    names = {**schema, **{key: rule.name for key, rule in declared.items()}}
    for one in batches:
        about = replace(
            base,
            at=one.at,
            source=one.source,
            version=one.version,
            batch=one.batch,
            job=one.job,
            run=one.attempt,
            rows=one.rows,
        )
        broken = {rule.lower(): failed for rule, failed in one.broken.items()}
        shown = {**{rule.lower(): rule for rule in one.broken}, **names}
        counts: dict[str, int | None] = {}
        if one.named is None or one.named.lower() in broken:
            counts |= dict.fromkeys(sorted(one.constraints or ()), 0)
        else:
            # Only Delta could tell, and it goes no further than the first rule that is broken.
            counts[one.named.lower()] = None
            shown.setdefault(one.named.lower(), one.named)
        counts |= broken
        for key, failed in counts.items():
            line = replace(about, kind=RULE, rule=shown.get(key, key))
            if (rule := declared.get(key)) is not None:
                owner = rule.owner or base.owner
                line = replace(line, action=rule.on_violation.value, owner=owner)
            yield _judged(line, failed)
        for said in one.checked:
            line = replace(about, kind=CHECK, rule=said.check, action=said.action)
            yield said.outcome.told_in(replace(line, owner=said.owner or base.owner))
        batch = _judged(replace(about, kind=BATCH), one.bad)
        yield replace(batch, state="failed") if one.refused else batch


def _judged(line: Line, failed: int | None) -> Line:
    if failed is None:
        return replace(line, state="failed")
    state = "failed" if failed else "passed"
    return replace(line, state=state, failed=failed, passed=(line.rows or 0) - failed)
