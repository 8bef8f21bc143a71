"""What a table's own history tells of the batches that were written to it.

A clean wrapped write logs nothing: Delta held every row against every constraint, and the commit
says who made it. So its passes can be read from the history for as long as that lasts. Pure: it
is given commits, and knows no table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from deltacheck.delta.table import CONSTRAINT_PREFIX, Commit
from deltacheck.ledger.quality_log import BATCH, RULE, WRITE, Line

_MADE_ANEW = {"CREATE", "REPLACE", "RESTORE", "CLONE", "CONVERT"}
"""First words of operations before which the table may have had other constraints."""


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
        constraints: The names, in lower case, of the CHECKs that the rows were held against;
            None: the history does not tell.
        version: The table's version that it made; None: none, or nobody has looked.
    """

    attempt: str
    at: datetime
    rows: int
    broken: Mapping[str, int]
    bad: int
    refused: bool
    constraints: frozenset[str] | None
    named: str | None = None
    version: int | None = None
    batch: str | None = None
    job: str | None = None
    source: str = WRITE


def written_batches(commits: Sequence[Commit], constraints: Iterable[str]) -> list[Written]:
    """The wrapped batches among a table's commits, oldest first.

    Args:
        commits: The newest commits of the table, newest first, without a gap.
        constraints: The names of the CHECKs that the table has after them.
    """
    known: frozenset[str] | None = frozenset(name.lower() for name in constraints)
    found = []
    for commit in commits:
        if (batch := _batch(commit, known)) is not None:
            found.append(batch)
        known = _before(commit, known)
    return found[::-1]


def _batch(commit: Commit, constraints: frozenset[str] | None) -> Written | None:
    tag = commit.tag
    # A step decides nothing, and a run is an upgrade's.
    if "attempt" not in tag or "step" in tag or "run" in tag:
        return None
    told = tag.get("detail", {})
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
        # The check for which a batch is quarantined is none of the rules.
        named=None if told.get("rule") in told.get("checks", {}) else told.get("rule"),
        constraints=constraints,
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
    batches: Iterable[Written], base: Line, names: Mapping[str, str], actions: Mapping[str, str]
) -> Iterator[Line]:
    """The lines of the log for some batches: one for each rule, and one for the batch.

    Args:
        base: What all lines have in common.
        names: The names of constraints, in lower case, to those of the rules as declared.
        actions: Name of a rule, in lower case, to what happens to rows that break it.
    """
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
            line = replace(about, kind=RULE, rule=shown.get(key, key), action=actions.get(key))
            yield _judged(line, failed)
        batch = _judged(replace(about, kind=BATCH), one.bad)
        yield replace(batch, state="failed") if one.refused else batch


def _judged(line: Line, failed: int | None) -> Line:
    if failed is None:
        return replace(line, state="failed")
    state = "failed" if failed else "passed"
    return replace(line, state=state, failed=failed, passed=(line.rows or 0) - failed)
