"""Every error that deltacheck raises, in one tree.

A caller catches the class that it can react to and reads attributes, never text::

    try:
        deltacheck.upgrade("head")
    except deltacheck.GateError as stop:
        page(stop.table, stop.violators, stop.rows)
    except deltacheck.LockHeldError:
        retry_later()

::

    DeltacheckError                 exit 1
    ├── UsageError                  exit 2   no configuration, unknown environment or target
    │   ├── ConfigError
    │   └── UnknownTargetError
    ├── DeclarationError            exit 1   a file in constraints/, a rule, a name
    │   ├── RuleFileError
    │   ├── ExpressionError
    │   └── IdentifierError
    ├── HistoryError                exit 6   two heads, an edited, missing or unreadable revision
    ├── TableError                  exit 1   about one table
    │   ├── TableNotFoundError
    │   ├── NotDeltaError
    │   ├── ConstraintError
    │   ├── AppendOnlyError
    │   ├── QuarantineError
    │   │   ├── ReleaseRefusedError
    │   │   └── ReleaseForgottenError
    │   ├── BusyTableError
    │   └── BatchError
    ├── ViolationError              exit 4   bad rows and something says stop
    │   ├── GateError
    │   ├── FailRuleError
    │   ├── CheckError
    │   └── BatchQuarantined
    ├── LockError                   exit 5   another run holds the lock, or this one lost it
    │   ├── LockHeldError
    │   └── LockLostError
    ├── PlanChangedError            exit 1   what was reviewed is not what would be done
    ├── EngineError                 exit 1   Java, Spark or Delta's jars
    └── LedgerError                 exit 1   deltacheck's own tables

Messages name tables, rules, columns and counts. They never hold the value of a row: an
error of Spark or Delta that does is not chained (``raise ... from None``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar


class DeltacheckError(Exception):
    """The root of the tree.

    Args:
        message: What happened, to what, and what was left untouched.
        hint: What to do next, in one or two sentences.
        table: The table concerned, as declared.
        rule: The rule concerned, as declared.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        table: str | None = None,
        rule: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.table = table
        self.rule = rule

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class UsageError(DeltacheckError):
    """The command cannot be understood, or there is nothing to run it on."""

    code = "usage"
    exit_code = 2


class ConfigError(UsageError):
    """``deltacheck.toml`` is missing, malformed, or lacks the environment asked for."""

    code = "config"


class UnknownTargetError(UsageError):
    """The target is neither ``head``, ``base``, ``+1``, ``-1`` nor a revision."""

    code = "unknown_target"


class DeclarationError(DeltacheckError):
    """Something that a person wrote about a table cannot be used.

    Args:
        path: The file, where there is one.
        line: The line in it, counted from 1.
        column: The column in that line, counted from 1.
    """

    code = "declaration"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        table: str | None = None,
        rule: str | None = None,
        path: Path | str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message, hint=hint, table=table, rule=rule)
        self.path = None if path is None else Path(path)
        self.line = line
        self.column = column

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.path, self.line, self.column) if part)
        return f"{where}: {super().__str__()}" if where else super().__str__()


class RuleFileError(DeclarationError):
    """A file in ``constraints/`` is malformed."""

    code = "rule_file"


class ExpressionError(DeclarationError):
    """A rule is not a boolean expression that Delta can carry and enforce."""

    code = "expression"


class IdentifierError(DeclarationError):
    """A name of a table, a column or a rule cannot be used."""

    code = "identifier"


class HistoryError(DeltacheckError):
    """The migrations in ``versions/`` do not make one readable chain.

    Args:
        paths: The files concerned.
    """

    code = "history"
    exit_code = 6

    def __init__(self, message: str, *, hint: str = "", paths: tuple[Path, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.paths = paths


class TableError(DeltacheckError):
    """One table is not as it must be."""

    code = "table"


class TableNotFoundError(TableError):
    """There is no such table."""

    code = "table_not_found"


class NotDeltaError(TableError):
    """The table is a view, or its format is not Delta."""

    code = "not_delta"


class ConstraintError(TableError):
    """The table cannot take, or does not have, the constraint."""

    code = "constraint"


class AppendOnlyError(TableError):
    """The table is append-only and holds violators, which therefore cannot be moved."""

    code = "append_only"


class QuarantineError(TableError):
    """The quarantine table cannot be made, widened, written or read."""

    code = "quarantine"


class ReleaseRefusedError(QuarantineError):
    """The table refuses rows that were to be released; they are held again."""


class ReleaseForgottenError(QuarantineError):
    """Nobody can tell any more whether the rows of a release landed; they stay claimed."""


class BusyTableError(TableError):
    """Other writers committed again and again, and the tries are used up."""

    code = "busy_table"


class BatchError(TableError):
    """What became of a batch with this id cannot be told, or the id is of another stream."""

    code = "batch"


class Rows(int):
    """How many rows were looked at; for a batch, ``rows(limit)`` gives those that say stop.

    Values of rows are shown only to who asks for them, so no message has them.
    """

    offending: Callable[[int], list[Any]] | None = None

    def __call__(self, limit: int = 20) -> list[Any]:
        """At most ``limit`` of the offending rows of a batch; of a table none are kept."""
        return [] if self.offending is None else self.offending(limit)


class ViolationError(DeltacheckError):
    """Rows break a rule, and a gate or the rule's action says stop.

    Args:
        violators: How many rows break it.
        rows: How many rows were looked at.
        offending: Gives at most so many of the rows of a batch that break it.
        by: What says stop: each rule or check, to the rows that break it; by default ``rule``.
        broken: Of a batch: each rule to the rows that break it, for rules that are broken.
        bad: Of a batch: the rows that break a rule which is more than a warning, each once.
    """

    code = "violation"
    exit_code = 4

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        table: str | None = None,
        rule: str | None = None,
        violators: int = 0,
        rows: int = 0,
        offending: Callable[[int], list[Any]] | None = None,
        by: Mapping[str, int] | None = None,
        broken: Mapping[str, int] | None = None,
        bad: int = 0,
    ) -> None:
        super().__init__(message, hint=hint, table=table, rule=rule)
        self.violators = violators
        self.by = dict(by or ({} if rule is None else {rule: violators}))
        self.broken = dict(broken or {})
        self.bad = bad
        self.rows = Rows(rows)
        self.rows.offending = offending


class GateError(ViolationError):
    """More rows are bad than a gate allows; no row was moved or written."""

    code = "gate"


class FailRuleError(ViolationError):
    """Rows break a rule whose violators must not be quarantined; no row was moved."""

    code = "fail_rule"


class CheckError(ViolationError):
    """A batch fails a check of batches that says stop; nothing was written or quarantined.

    ``rule`` is the check's name.

    Args:
        results: The ``BatchResult`` of each check of the batch, those that passed among them.
    """

    code = "check"

    def __init__(
        self,
        message: str,
        *,
        results: Sequence[Any] = (),
        hint: str = "",
        table: str | None = None,
        rule: str | None = None,
        violators: int = 0,
        rows: int = 0,
        by: Mapping[str, int] | None = None,
        broken: Mapping[str, int] | None = None,
        bad: int = 0,
    ) -> None:
        super().__init__(
            message,
            hint=hint,
            table=table,
            rule=rule,
            violators=violators,
            rows=rows,
            by=by,
            broken=broken,
            bad=bad,
        )
        self.results = tuple(results)


class BatchQuarantined(ViolationError):  # noqa: N818  (it tells what became of the batch)
    """A batch is in quarantine and not in its table, and ``strict`` asked to be told so.

    Args:
        result: The ``WriteResult``.
    """

    code = "batch_quarantined"

    def __init__(
        self,
        message: str,
        *,
        result: Any,
        hint: str = "",
        table: str | None = None,
        rule: str | None = None,
        violators: int = 0,
        rows: int = 0,
    ) -> None:
        super().__init__(message, hint=hint, table=table, rule=rule, violators=violators, rows=rows)
        self.result = result


class LockError(DeltacheckError):
    """The lock of the environment is not ours."""

    code = "lock"
    exit_code = 5


class LockHeldError(LockError):
    """Another upgrade is running on this environment."""

    code = "lock_held"


class LockLostError(LockError):
    """The lock expired or was broken while this run went on; it stops here."""

    code = "lock_lost"


class PlanChangedError(DeltacheckError):
    """A reviewed plan no longer describes what a run would do."""

    code = "plan_changed"


class EngineError(DeltacheckError):
    """Java, Spark or Delta cannot be started or used."""

    code = "engine"


class LedgerError(DeltacheckError):
    """deltacheck's own tables cannot be read, or a newer deltacheck wrote them."""

    code = "ledger"
