"""What a run found and did, as values: the same for the command line, JSON and Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

StepState = Literal["planned", "enforced", "dropped", "ran", "stopped", "failed", "skipped"]


@dataclass(frozen=True)
class Found:
    """Rows of a table that break a rule, apart for those where it is false and where NULL."""

    false: int
    null: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.false + self.null


@dataclass(frozen=True)
class Step:
    """One operation of a revision and what became of it.

    Attributes:
        operation: As in the migration: set_not_null, add_check, replace_check, ...
        violators: The rows that broke the rule, where rows were counted.
        state: enforced means: read back from the table.
        seconds: Wall time of its ALTERs.
        statements: The SQL that changes the constraint.
        note: Why it was skipped, stopped or failed.
    """

    revision: str
    operation: str
    table: str | None
    rule: str | None
    expression: str | None
    state: StepState
    violators: Found | None = None
    seconds: float = 0.0
    statements: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class TableOutcome:
    """The rows of a table before and after a run.

    Attributes:
        before: Rows when its violators were first counted.
        moved: Rows moved to the quarantine by this run.
        after: Rows when the run was done with the table; differs from ``before - moved``
            by what other writers did meanwhile.
    """

    table: str
    quarantine: str
    before: int
    moved: int
    after: int


@dataclass(frozen=True)
class Restored:
    """Quarantined rows that a downgrade brought back to their table.

    Attributes:
        rows: Rows brought back.
        kept: Rows that break a rule which still holds; they stay in quarantine.
    """

    table: str
    quarantine: str
    rows: int
    kept: int


@dataclass(frozen=True)
class Writer:
    """Who wrote to a table lately, as its history tells.

    Attributes:
        operation: As Delta names it: WRITE, MERGE, STREAMING UPDATE, ...
        engine: What wrote it, with its version.
        commits: How many of the commits looked at are its.
        per_day: Commits a day over the time looked at.
    """

    operation: str
    engine: str
    commits: int
    per_day: float


@dataclass(frozen=True)
class Outlook:
    """What a person wants to know of a table before choosing the hour of an upgrade.

    Attributes:
        files: Data files of the table.
        files_read: Files that counting had to read; statistics proved the others clean.
        bytes: Their size in all.
        count_seconds: What counting took; each new constraint makes Delta scan once more.
        protocol: What adding a constraint changes for other writers; empty: nothing.
        writers: Who wrote lately, busiest first.
    """

    table: str
    files: int
    files_read: int
    bytes: int
    count_seconds: float
    protocol: str
    writers: tuple[Writer, ...] = ()


@dataclass(frozen=True)
class RunResult:
    """What ``upgrade``, ``downgrade`` or ``plan`` found and did.

    Attributes:
        run: The run's id, or None where nothing was to be done or only looked at.
        revisions: The revisions run, in order.
        recorded: Tables whose recorded rules were, or are to be, brought up to date.
        settled: Earlier runs, dead or failed, whose traces this one settled.
        current: The revision that the environment is at afterwards.
        outlook: Of a plan: what to know of each table that gets a new constraint.
        restored: Quarantined rows that a downgrade brought back.
        notes: What to know beside it, in sentences.
    """

    environment: str
    command: str
    run: str | None
    revisions: tuple[str, ...]
    steps: tuple[Step, ...] = ()
    tables: tuple[TableOutcome, ...] = ()
    recorded: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()
    current: str | None = None
    dry_run: bool = False
    outlook: tuple[Outlook, ...] = ()
    restored: tuple[Restored, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def nothing_to_do(self) -> bool:
        """Whether there was nothing pending."""
        return not (self.revisions or self.steps or self.recorded or self.settled)
