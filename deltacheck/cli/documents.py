"""What ``--json`` prints, as types: one for each command that has it.

The functions that build the documents are held to these types by mypy, and the published
JSON Schemas (``deltacheck/cli/schemas``) are generated from them. To publish the document of
a new command: write its type here, name it in ``DOCUMENTS``, run
``python -m deltacheck.cli.schemas``, and add a line to ``tests/cli/test_schemas.py``.

Every document has ``schema_version`` besides. A new field may come without a new version; one
that goes, or changes its meaning, is a new version. Times are ISO 8601, in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Optional

from typing_extensions import TypedDict

Text = Optional[str]  # noqa: UP045  (evaluated on Python 3.10 as well)
Number = Optional[int]  # noqa: UP045


class ErrorBody(TypedDict):
    """What went wrong, and what to do next."""

    code: str
    message: str
    hint: str
    exit_code: int


class ErrorDocument(TypedDict):
    """Printed by any command in place of its own document when it fails."""

    error: ErrorBody


class ViolatorsDocument(TypedDict):
    """Rows that break a rule: those for which it is false, and those for which it is NULL."""

    false: int
    null: int


class StepDocument(TypedDict):
    """One operation of a revision and what became of it."""

    revision: str
    operation: str
    table: Text
    rule: Text
    expression: Text
    violators: ViolatorsDocument | None
    state: Literal["planned", "enforced", "dropped", "ran", "stopped", "failed", "skipped"]
    seconds: float
    statements: list[str]
    note: str


class TableRowsDocument(TypedDict):
    """The rows of a table before and after a run."""

    table: str
    quarantine: str
    before: int
    moved: int
    after: int


class WriterDocument(TypedDict):
    """Who wrote to a table lately."""

    operation: str
    engine: str
    commits: int
    per_day: float


class OutlookDocument(TypedDict):
    """Of a plan: what to know of a table before choosing the hour of an upgrade."""

    table: str
    files: int
    files_read: int
    bytes: int
    count_seconds: float
    protocol: str
    writers: list[WriterDocument]


class RestoredDocument(TypedDict):
    """Quarantined rows that a downgrade brought back to their table."""

    table: str
    quarantine: str
    rows: int
    kept: int


class RunDocument(TypedDict):
    """``plan``, ``upgrade`` and ``downgrade``."""

    environment: str
    command: str
    run: Text
    dry_run: bool
    current: Text
    revisions: list[str]
    steps: list[StepDocument]
    tables: list[TableRowsDocument]
    recorded: list[str]
    settled: list[str]
    outlook: list[OutlookDocument]
    restored: list[RestoredDocument]
    notes: list[str]


class SqlDocument(TypedDict):
    """``upgrade --sql``: the statements of pending revisions as a script."""

    sql: str


class EnvironmentResult(TypedDict):
    """What a command did on one of several environments.

    ``result`` is the command's own document; empty where it printed none.
    """

    environment: str
    exit_code: int
    result: dict[str, object]


class EnvironmentsDocument(TypedDict):
    """Printed by a command that was given several environments."""

    environments: list[EnvironmentResult]


class DriftDocument(TypedDict):
    """Why the table differs from what the applied migrations say; found in its history."""

    cause: Literal[
        "dropped",
        "unset",
        "replaced",
        "schema_overwritten",
        "restored",
        "changed",
        "added",
        "never_added",
        "table_gone",
        "unknown",
    ]
    version: Number
    at: Text
    operation: Text
    engine: Text
    run: Text


class RuleDocument(TypedDict):
    """One rule of one table and how things stand."""

    table: str
    rule: str
    kind: Literal["not_null", "check"]
    expression: str
    state: Literal["enforced", "pending", "drifted", "unmanaged", "warn"]
    enforced_by: Literal["check", "not_null"] | None
    revision: Text
    quarantined: int
    note: str
    drift: DriftDocument | None
    tags: list[str]
    owner: str


class StatusDocument(TypedDict):
    """``status``: every rule of an environment."""

    environment: str
    current: Text
    head: Text
    in_sync: bool
    missing: list[str]
    restored: dict[str, int]
    rules: list[RuleDocument]


class CurrentDocument(TypedDict):
    """``current``: the revision that an environment is at; null: nothing is applied."""

    environment: str
    current: Text


class UnlockDocument(TypedDict):
    """``unlock``: the run whose lock was broken; null: none held it."""

    broken: Text


class RevisionLine(TypedDict):
    """One migration."""

    revision: str
    down_revision: list[str]
    message: str
    file: Text
    head: bool


class HistoryDocument(TypedDict):
    """``history`` and ``heads``: migrations, newest first."""

    heads: list[str]
    revisions: list[RevisionLine]


class OperationDocument(TypedDict):
    """One operation of a migration."""

    operation: str
    table: Text
    rule: Text
    column: Text
    expression: Text
    violators: Literal["quarantine", "fail"] | None
    gate: Text
    statement: Text


class ShowDocument(RevisionLine):
    """``show``: one migration with all that it does."""

    checksum: str
    upgrade: list[OperationDocument]
    downgrade: list[OperationDocument]


class InitDocument(TypedDict):
    """``init``: the files that were made."""

    folder: str
    template: Literal["local", "connect", "databricks"]
    files: list[str]


class NewRevisionDocument(TypedDict):
    """``revision`` and ``merge``: the file that was written; null: there was nothing to do."""

    file: Text
    revision: Text
    down_revision: list[str]
    operations: list[OperationDocument]


class FindingDocument(TypedDict):
    """One finding of ``lint``."""

    code: str
    name: str
    severity: Literal["error", "warning", "info"]
    path: Text
    line: Number
    column: Number
    table: Text
    rule: Text
    revision: Text
    message: str
    remedy: str


class CountsDocument(TypedDict):
    """Findings of each severity."""

    error: int
    warning: int
    info: int


class LintDocument(TypedDict):
    """``lint``: what is wrong or doubtful in rules and migrations."""

    findings: list[FindingDocument]
    counts: CountsDocument


class HeldDocument(TypedDict):
    """Quarantined rows that have table, rules, origin, run and state in common."""

    table: str
    quarantine: str
    rules: list[str]
    source: str
    run: str
    state: Literal["held", "released", "discarded"]
    rows: int
    oldest: str
    newest: str
    claimed: int
    note: Literal["", "restored", "unsettled"]


class QuarantineListDocument(TypedDict):
    """``quarantine list``: what is held."""

    held: list[HeldDocument]


class QuarantineShowDocument(TypedDict):
    """``quarantine show``: quarantined rows, column to value; ``total`` counts them all."""

    table: str
    quarantine: str
    columns: list[str]
    rows: list[dict[str, Any]]
    total: int


class ExportDocument(TypedDict):
    """``quarantine export``: the folder that was written."""

    table: str
    quarantine: str
    path: str
    format: Literal["csv", "json", "parquet"]
    rows: int


class ReleaseDocument(TypedDict):
    """``quarantine release``: rows written back, and why the others stay."""

    table: str
    quarantine: str
    dry_run: bool
    release: Text
    rows: int
    version: Number
    kept: int
    broken: dict[str, int]
    unfit: int
    restored: int
    unsettled: int
    undecided: int
    left_out: dict[str, int]
    finished: int
    unfinished: list[str]


class DiscardDocument(TypedDict):
    """``quarantine discard``: held rows that were given up."""

    table: str
    quarantine: str
    dry_run: bool
    reason: str
    rows: int


class PurgeDocument(TypedDict):
    """``quarantine purge``: rows that were deleted, and what can still be read of them."""

    table: str
    quarantine: str
    dry_run: bool
    rows: int
    held: int
    before: Text
    left_behind: str


CheckState = Literal["passed", "failed", "unjudged"]


class GroupDocument(TypedDict):
    """What a check says of one group of rows.

    ``group`` is a digest; ``name`` is its values, where the declaration lets it be named.
    """

    group: str
    name: Text
    state: CheckState
    message: str
    rows: int
    failed: int
    figure: float | None


class CheckResultDocument(TypedDict):
    """What one check says of its table; ``unjudged``: a trend without enough history."""

    table: str
    check: str
    kind: str
    expression: str
    on_failure: Literal["fail", "warn"]
    state: CheckState
    message: str
    rows: int
    failed: int
    figure: float | None
    groups: list[GroupDocument]
    tags: list[str]
    owner: str


class CountedRuleDocument(TypedDict):
    """How many rows break a rule that Delta does not enforce on the table."""

    table: str
    rule: str
    expression: str
    state: Literal["warn", "pending"]
    on_violation: str
    rows: int
    failed: int
    gate: Text
    gated: bool
    note: str
    owner: str


class TableGateDocument(TypedDict):
    """Rows of a table that break any rule which is still to be added, and what is allowed.

    ``note``: why they could not be counted; then the gate does not hold.
    """

    table: str
    rows: int
    failed: int
    gate: str
    gated: bool
    note: str


class CheckDocument(TypedDict):
    """``check``: what passed and what failed; ``missing``: tables that are not there.

    ``problems``: table to why it could not be looked at.
    ``gaps``: what the log lacks, since tables' histories had been cleaned up before.
    ``gates``: of tables that have one, held against the rows that break any pending rule.
    ``keys``: the table that has the keys of failed checks, where asked for and where there are;
    ``unwritten``: why they, or the log, could not be written.
    """

    environment: str
    run: str
    at: str
    failed: bool
    missing: list[str]
    problems: dict[str, str]
    gaps: list[str]
    keys: str | None
    unwritten: list[ErrorBody]
    checks: list[CheckResultDocument]
    rules: list[CountedRuleDocument]
    gates: list[TableGateDocument]


class DayDocument(TypedDict):
    """What happened to a table on one day, by UTC.

    ``failed``: rule to rows, null where nobody could count them; ``wrong`` and ``warned``: check
    to why it failed; ``stops``: why batches and upgrades were stopped.
    """

    day: str
    verdict: Literal["fine", "warned", "wrong"]
    batches: int
    rows: int
    bad: int
    failed: dict[str, Number]
    wrong: dict[str, str]
    warned: dict[str, str]
    stops: list[str]


class LastCheckDocument(TypedDict):
    """What a check said at its last run."""

    check: str
    state: str
    message: str
    at: str


class TableReportDocument(TypedDict):
    """What the report says of one table.

    ``violators``: rule that Delta does not enforce to the rows that break it, when they were
    last counted; ``held``: null where the quarantine could not be looked at; ``ages`` and
    ``broken`` count quarantined rows, ``broken`` by an empty name those that broke no rule;
    ``problem``: why something of the table could not be looked at; ``gaps``: what the log lacks of
    it, since its history had been cleaned up before.
    """

    table: str
    owners: list[str]
    days: list[DayDocument]
    checks: list[LastCheckDocument]
    rules: dict[str, Literal["enforced", "pending", "drifted", "unmanaged", "warn"]]
    violators: dict[str, Number]
    held: Number
    oldest: Text
    ages: dict[str, int]
    broken: dict[str, int]
    problem: str
    gaps: list[str]


class LastRunDocument(TypedDict):
    """One run of upgrade or downgrade."""

    run: str
    command: str
    state: Text
    began: str
    revisions: list[str]
    tables: list[str]


class CheckRunDocument(TypedDict):
    """One run of ``check``; ``states``: state to the number of checks in it."""

    run: str
    at: str
    tables: list[str]
    states: dict[str, int]


class ReportDocument(TypedDict):
    """``report``: what came in, what was rejected, and what is wrong; of the last ``days``."""

    environment: str
    at: str
    days: int
    tables: list[TableReportDocument]
    runs: list[LastRunDocument]
    check_runs: list[CheckRunDocument]


class StampDocument(TypedDict):
    """``stamp``: what was recorded without being run."""

    environment: str
    run: Text
    before: Text
    current: Text
    stamped: list[str]
    reverted: list[str]


class BaselineRuleDocument(TypedDict):
    """A live constraint that is a rule from now on."""

    table: str
    rule: str
    kind: Literal["not_null", "check"]
    expression: str
    enforced_by: Literal["check", "not_null"]


class LeftDocument(TypedDict):
    """A live constraint or a table that was left alone, and why."""

    table: str
    rule: Text
    reason: str


class BaselineDocument(TypedDict):
    """``baseline``: what was taken over from existing tables."""

    environment: str
    run: Text
    revision: Text
    files: list[str]
    rules: list[BaselineRuleDocument]
    left: list[LeftDocument]


class CheckUpDocument(TypedDict):
    """One thing that ``doctor`` looked at."""

    name: str
    state: Literal["ok", "note", "broken", "skipped"]
    found: str
    remedy: str


class DoctorDocument(TypedDict):
    """``doctor``: what works and what does not."""

    environment: Text
    healthy: bool
    checks: list[CheckUpDocument]


SQL = "upgrade --sql"
ENVIRONMENTS = "environments"
ERROR = "error"

DOCUMENTS: Mapping[str, type] = {
    "baseline": BaselineDocument,
    "check": CheckDocument,
    "current": CurrentDocument,
    "doctor": DoctorDocument,
    "downgrade": RunDocument,
    "heads": HistoryDocument,
    "history": HistoryDocument,
    "init": InitDocument,
    "lint": LintDocument,
    "merge": NewRevisionDocument,
    "plan": RunDocument,
    "quarantine discard": DiscardDocument,
    "quarantine export": ExportDocument,
    "quarantine list": QuarantineListDocument,
    "quarantine purge": PurgeDocument,
    "quarantine release": ReleaseDocument,
    "quarantine show": QuarantineShowDocument,
    "report": ReportDocument,
    "revision": NewRevisionDocument,
    "show": ShowDocument,
    "stamp": StampDocument,
    "status": StatusDocument,
    "unlock": UnlockDocument,
    "upgrade": RunDocument,
    SQL: SqlDocument,
    ENVIRONMENTS: EnvironmentsDocument,
    ERROR: ErrorDocument,
}
"""The document of each command, by the command's words; and those that any command may print
in place of its own: when it fails, and when it was given several environments."""
