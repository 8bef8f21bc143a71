"""deltacheck: the constraints of Delta Lake tables, managed the way Alembic manages schemas.

What is exported here is the promise; everything else may change. Nothing is imported before
it is used, so ``import deltacheck`` starts neither Spark nor a JVM.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltacheck import quarantine
    from deltacheck.errors import (
        AppendOnlyError,
        BatchError,
        BatchQuarantined,
        BusyTableError,
        CheckError,
        ConfigError,
        ConstraintError,
        DeclarationError,
        DeltacheckError,
        EngineError,
        ExpressionError,
        FailRuleError,
        GateError,
        HistoryError,
        IdentifierError,
        LedgerError,
        LockError,
        LockHeldError,
        LockLostError,
        NotDeltaError,
        PlanChangedError,
        QuarantineError,
        ReleaseForgottenError,
        ReleaseRefusedError,
        RuleFileError,
        TableError,
        TableNotFoundError,
        UnknownTargetError,
        UsageError,
        ViolationError,
    )
    from deltacheck.events import Event, off_event, on_event
    from deltacheck.migrate.api import baseline, downgrade, plan, session, stamp, status, upgrade
    from deltacheck.migrate.results import RunResult
    from deltacheck.migrate.status import Status
    from deltacheck.quality.api import check, quality_log
    from deltacheck.quality.results import Checked
    from deltacheck.report.api import report
    from deltacheck.rules.model import Action, Gate, Kind, Rule, TableRules
    from deltacheck.writing.guard import guard
    from deltacheck.writing.judge import judge
    from deltacheck.writing.result import WriteResult
    from deltacheck.writing.stream import foreach_batch
    from deltacheck.writing.write import write

__version__ = "0.1.0"

_HOMES = {
    "deltacheck.errors": (
        "AppendOnlyError",
        "BatchError",
        "BatchQuarantined",
        "BusyTableError",
        "CheckError",
        "ConfigError",
        "ConstraintError",
        "DeclarationError",
        "DeltacheckError",
        "EngineError",
        "ExpressionError",
        "FailRuleError",
        "GateError",
        "HistoryError",
        "IdentifierError",
        "LedgerError",
        "LockError",
        "LockHeldError",
        "LockLostError",
        "NotDeltaError",
        "PlanChangedError",
        "QuarantineError",
        "ReleaseForgottenError",
        "ReleaseRefusedError",
        "RuleFileError",
        "TableError",
        "TableNotFoundError",
        "UnknownTargetError",
        "UsageError",
        "ViolationError",
    ),
    "deltacheck.events": ("Event", "off_event", "on_event"),
    "deltacheck.rules.model": ("Action", "Gate", "Kind", "Rule", "TableRules"),
    "deltacheck.migrate.api": (
        "baseline",
        "downgrade",
        "plan",
        "session",
        "stamp",
        "status",
        "upgrade",
    ),
    "deltacheck.migrate.results": ("RunResult",),
    "deltacheck.migrate.status": ("Status",),
    "deltacheck.quality.api": ("check", "quality_log"),
    "deltacheck.quality.results": ("Checked",),
    "deltacheck.report.api": ("report",),
    "deltacheck.writing.guard": ("guard",),
    "deltacheck.writing.judge": ("judge",),
    "deltacheck.writing.result": ("WriteResult",),
    "deltacheck.writing.stream": ("foreach_batch",),
    "deltacheck.writing.write": ("write",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Action",
    "AppendOnlyError",
    "BatchError",
    "BatchQuarantined",
    "BusyTableError",
    "CheckError",
    "Checked",
    "ConfigError",
    "ConstraintError",
    "DeclarationError",
    "DeltacheckError",
    "EngineError",
    "Event",
    "ExpressionError",
    "FailRuleError",
    "Gate",
    "GateError",
    "HistoryError",
    "IdentifierError",
    "Kind",
    "LedgerError",
    "LockError",
    "LockHeldError",
    "LockLostError",
    "NotDeltaError",
    "PlanChangedError",
    "QuarantineError",
    "ReleaseForgottenError",
    "ReleaseRefusedError",
    "Rule",
    "RuleFileError",
    "RunResult",
    "Status",
    "TableError",
    "TableNotFoundError",
    "TableRules",
    "UnknownTargetError",
    "UsageError",
    "ViolationError",
    "WriteResult",
    "__version__",
    "baseline",
    "check",
    "downgrade",
    "foreach_batch",
    "guard",
    "judge",
    "off_event",
    "on_event",
    "plan",
    "quality_log",
    "quarantine",
    "report",
    "session",
    "stamp",
    "status",
    "upgrade",
    "write",
]


def __getattr__(name: str) -> Any:
    if name == "quarantine":
        return import_module("deltacheck.quarantine")
    if name not in _HOME:
        raise AttributeError(f"module 'deltacheck' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
