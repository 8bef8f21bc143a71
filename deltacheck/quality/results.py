"""What came of looking: outcomes as values, with figures and without values of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from typing import Literal

from deltacheck.errors import LedgerError
from deltacheck.ledger.quality_log import Line
from deltacheck.quality.words import rows
from deltacheck.rules.checks import OnFailure, TableCheck
from deltacheck.rules.selection import EVERYTHING, Selection

State = Literal["passed", "failed", "unjudged"]
"""``unjudged``: a trend that has not enough earlier figures to be held against, or no row to
measure."""


@dataclass(frozen=True)
class Outcome:
    """What a test says of some rows.

    Attributes:
        message: The figures in words, to follow the name of the check.
        rows: How many rows were looked at.
        failed: Of them, those at fault, where rows can be.
        figure: What was measured, where something was.
    """

    state: State
    message: str
    rows: int
    failed: int = 0
    figure: Fraction | None = None

    def told_in(self, line: Line) -> Line:
        """A line of the log with what the test says."""
        return replace(
            line,
            state=self.state,
            rows=self.rows,
            passed=self.rows - self.failed,
            failed=self.failed,
            figure=None if self.figure is None else float(self.figure),
            message=self.message,
        )


@dataclass(frozen=True)
class Group:
    """What a check says of one group of rows.

    Attributes:
        key: A digest of it.
        name: The group by its values, where the declaration lets it be named.
    """

    key: str
    name: str | None
    outcome: Outcome


@dataclass(frozen=True)
class CheckResult:
    """What a check says of its table.

    Attributes:
        table: The table, as declared.
        expression: What was tested, in one line; its history is that of the same line.
        groups: What it says of each group of rows; none for a check without groups.
        owner: Who answers for it: its own, else its table's.
    """

    table: str
    check: TableCheck
    expression: str
    outcome: Outcome
    groups: tuple[Group, ...] = ()
    tags: tuple[str, ...] = ()
    owner: str = ""

    @property
    def state(self) -> State:
        """What it says of the table as a whole."""
        return self.outcome.state

    @property
    def stops(self) -> bool:
        """Whether its failure is more than a warning."""
        return self.check.on_failure is not OnFailure.WARN


@dataclass(frozen=True)
class RuleCount:
    """How many rows of a table break a rule that Delta does not enforce there.

    Attributes:
        state: ``warn``: it never will be; ``pending``: it is declared to be.
        gated: Whether more rows break it than its gate allows.
        note: Why it could not be evaluated; then nothing was counted.
    """

    table: str
    rule: str
    expression: str
    state: Literal["warn", "pending"]
    action: str
    rows: int
    failed: int
    gate: str | None = None
    gated: bool = False
    note: str = ""
    owner: str = ""

    @property
    def told(self) -> str:
        """How many rows break it, or why nobody knows, and whether a gate does not hold."""
        return _broken(self, "it")


@dataclass(frozen=True)
class TableGate:
    """A table's gate, held against the rows that break any rule which is still to be added.

    Attributes:
        gated: Whether they are more than it allows: an upgrade would stop.
        note: Why they could not be counted; then it does not hold.
    """

    table: str
    rows: int
    failed: int
    gate: str
    gated: bool
    note: str = ""
    owner: str = ""

    @property
    def told(self) -> str:
        """How many rows break a rule, or why nobody knows, and whether the gate does not hold."""
        return _broken(self, "a rule")


def _broken(counted: RuleCount | TableGate, what: str) -> str:
    if counted.note:
        unknown = f"; so the gate {counted.gate} does not hold" if counted.gated else ""
        return f"{counted.note.rstrip('.')}{unknown}"
    more = f", more than the gate {counted.gate}" if counted.gated else ""
    return f"{counted.failed:,} of {rows(counted.rows)} break {what}{more}"


@dataclass(frozen=True)
class Checked:
    """A run of checks.

    Attributes:
        run: Its id, as in the log.
        at: When it began (UTC).
        missing: Tables that have checks and are not there.
        problems: Table to why it could not be looked at.
        gaps: What the log lacks, since tables' histories had been cleaned up before anybody read
            them; a sentence for each.
        keys: Where the keys are for which checks failed; None: nobody asked, or there are none.
        unwritten: Why the log, or the keys, could not be written, where they could not.
    """

    environment: str
    run: str
    at: datetime
    checks: tuple[CheckResult, ...]
    rules: tuple[RuleCount, ...]
    missing: tuple[str, ...] = ()
    selection: Selection = field(default=EVERYTHING)
    gates: tuple[TableGate, ...] = ()
    keys: str | None = None
    problems: Mapping[str, str] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()
    unwritten: tuple[LedgerError, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a check failed that is not only to warn, more rows break rules than a gate
        allows, or something could not be looked at."""
        return bool(self.missing or self.problems) or any(
            [
                one.state == "failed" and one.check.on_failure is OnFailure.FAIL
                for one in self.checks
            ]
            + [one.gated for one in self.rules]
            + [one.gated for one in self.gates]
        )
