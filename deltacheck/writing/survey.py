"""What is known of a table before a batch is written to it, without a Spark job.

Its properties hold its constraints and the rules that an upgrade recorded. A project, where
one is configured, says more: the folder that ``DELTACHECK_PROJECT`` names, else the current
one if it has a ``deltacheck.toml``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from pyspark.sql import SparkSession

from deltacheck.config import Environment, load_project
from deltacheck.delta.failures import EngineFailure
from deltacheck.delta.table import CONSTRAINT_PREFIX, table_problem
from deltacheck.delta.warehouse import register
from deltacheck.errors import TableNotFoundError
from deltacheck.events import Notify
from deltacheck.ledger.recorded import read_recorded, recorded_environment, recorded_quarantine
from deltacheck.names import TableName
from deltacheck.quarantine.layout import quarantine_name
from deltacheck.rules.checks import BatchCheck
from deltacheck.rules.expression import same_rule
from deltacheck.rules.files import read_rules
from deltacheck.rules.model import Action, Gate, Rule, TableRules
from deltacheck.writing.request import Request

PROJECT_VARIABLE = "DELTACHECK_PROJECT"
ENVIRONMENT_VARIABLE = "DELTACHECK_ENV"


@dataclass(frozen=True)
class Survey:
    """What is known before a write.

    Attributes:
        table: The table, as a project declares it; without one, in lower case.
        exists: Whether there is such a table.
        declared: The rules that are declared for it, those given with the batch among them,
            by key.
        given: The keys of those.
        constraints: The table's CHECKs: name as stored to expression as stored.
        gate: The table's own gate for this write.
        checks: The checks of a batch as a whole, those given with it among them.
        owner: Who answers for the table.
        ledger: The environment whose tables tell of this one, where a project is configured or
            an upgrade recorded it; None: what becomes of batches is not logged.
        notify: Where that project wants events told.
    """

    table: TableName
    exists: bool
    properties: Mapping[str, str]
    declared: Mapping[str, Rule]
    quarantine: TableName
    gate: Gate | None = None
    given: frozenset[str] = frozenset()
    constraints: Mapping[str, str] = field(default_factory=dict)
    checks: tuple[BatchCheck, ...] = ()
    owner: str = ""
    ledger: Environment | None = None
    notify: Notify | None = None

    @property
    def environment(self) -> str | None:
        """The name of the environment, where one is known."""
        return None if self.ledger is None else self.ledger.name

    def enforces(self, rule: Rule) -> bool:
        """Whether a CHECK of the table is this rule."""
        return any(
            name.lower() == rule.key or same_rule(text, rule.expression)
            for name, text in self.constraints.items()
        )


def survey(session: SparkSession, asked: Request) -> Survey:
    """Look at a table before writing to it.

    Raises:
        TableNotFoundError: There is none, and it is not to be made.
        RuleFileError, ConfigError: The project's files cannot be read.
    """
    properties = read_properties(session, asked.table)
    if properties is None and not asked.create:
        raise TableNotFoundError(
            f"There is no table {asked.table}; nothing was written.",
            hint="Create it first, or leave out create=False.",
            table=str(asked.table),
        )
    told = properties or {}
    project = _project(asked.table)
    declared = project.rules or read_recorded(asked.table, told)
    rules = {} if declared is None else {rule.key: rule for rule in declared.rules}
    place = asked.quarantine
    if place is None and project.quarantine is not None:
        place = quarantine_name(asked.table, project.quarantine)
    return Survey(
        table=_in_one_spelling(asked.table) if project.rules is None else project.rules.table,
        exists=properties is not None,
        properties=told,
        declared={**rules, **asked.rules},
        quarantine=place or recorded_quarantine(told) or quarantine_name(asked.table),
        gate=asked.gate or (None if declared is None else declared.gate),
        given=frozenset(asked.rules),
        constraints={
            key[len(CONSTRAINT_PREFIX) :]: value
            for key, value in told.items()
            if key.startswith(CONSTRAINT_PREFIX)
        },
        checks=_checks(asked, declared),
        owner="" if declared is None else declared.owner,
        ledger=project.environment or recorded_environment(told),
        notify=project.notify,
    )


def _in_one_spelling(table: TableName) -> TableName:
    # A path says another thing in other letters.
    return table if table.path else TableName(tuple(part.lower() for part in table.parts))


def _checks(asked: Request, declared: TableRules | None) -> tuple[BatchCheck, ...]:
    known = {} if declared is None else {check.name.lower(): check for check in declared.batch}
    return tuple({**known, **asked.checks}.values())


def read_properties(session: SparkSession, table: TableName) -> dict[str, str] | None:
    """A table's properties, or None where there is no such table; no Spark job.

    Raises:
        NotDeltaError: The name is a folder of Parquet files without a Delta log.
    """
    try:
        return _properties(session, table)
    except TableNotFoundError:
        pass
    # A local warehouse's table that nobody has asked for in this process.
    register(session, None, table)
    try:
        return _properties(session, table)
    except TableNotFoundError:
        return None


def _properties(session: SparkSession, table: TableName) -> dict[str, str]:
    try:
        rows = session.sql(f"SHOW TBLPROPERTIES {table.sql}").collect()
    except EngineFailure as error:
        problem = table_problem(error, table)
        if isinstance(problem, TableNotFoundError):
            raise problem from None
        raise
    return {row["key"]: row["value"] for row in rows}


def looks_first(asked: Request, known: Survey) -> bool:
    """Whether a batch has to be judged before it is written, since Delta cannot refuse it.

    That is so for checks of the batch as a whole, for a rule given with the batch that the
    table does not enforce, and for a limit on rows that only a warning is for.
    """
    given = any(
        rule.on_violation is not Action.WARN and not known.enforces(rule)
        for rule in asked.rules.values()
    )
    warnings = [rule for rule in known.declared.values() if rule.on_violation is Action.WARN]
    limited = any(rule.gate is not None for rule in warnings)
    # Metrics cannot be observed on a write that makes a table.
    unobserved = bool(warnings) and (not known.exists or asked.mode == "replace")
    return bool(known.checks) or given or limited or unobserved


@dataclass(frozen=True)
class _Project:
    """What a project says of a table; nothing where none is configured.

    Attributes:
        quarantine: The pattern of quarantines' names.
    """

    rules: TableRules | None = None
    quarantine: str | None = None
    environment: Environment | None = None
    notify: Notify | None = None


def _project(table: TableName) -> _Project:
    folder = Path(os.environ.get(PROJECT_VARIABLE) or ".")
    if not _is_project(folder):
        return _Project()
    found = load_project(folder)
    environment = found.environment(os.environ.get(ENVIRONMENT_VARIABLE))
    rules = None
    if found.constraints.is_dir():
        files = sorted((str(f), f.stat().st_mtime_ns) for f in found.constraints.rglob("*.y*ml"))
        known = _rules(found.constraints.resolve(), tuple(files), frozenset(os.environ.items()))
        rules = known.get(table)
    return _Project(rules, environment.quarantine, environment, found.notify)


def _is_project(folder: Path) -> bool:
    if (folder / "deltacheck.toml").is_file():
        return True
    shared = folder / "pyproject.toml"
    return shared.is_file() and "[tool.deltacheck" in shared.read_text(encoding="utf-8")


@lru_cache(maxsize=8)
def _rules(
    folder: Path, files: tuple[tuple[str, int], ...], variables: frozenset[tuple[str, str]]
) -> Mapping[TableName, TableRules]:
    """The rules of a folder, read again when a file or a variable has changed."""
    return read_rules(folder)
