"""A table and its quarantine as they are now, opened to be looked at or worked on.

Knows where a quarantine is, and how each column of the source is spelled in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from deltacheck.config import Environment, Project, load_project
from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.delta.session import session_for, verdict_session
from deltacheck.delta.table import Definition, read_definition
from deltacheck.errors import ExpressionError, TableNotFoundError
from deltacheck.ledger.recorded import recorded_environment, recorded_quarantine
from deltacheck.names import TableName, literal, quote
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.layout import (
    Layout,
    ddl,
    environment_quarantine,
    layout,
    quarantine_name,
    value_of,
)
from deltacheck.quarantine.place import read_place
from deltacheck.quarantine.terms import condition

Progress = Callable[[str], None]
"""Told in a few words what is done now."""


@dataclass(frozen=True)
class Desk:
    """What the commands on quarantines work with.

    Attributes:
        session: A session of our own, under the settings in which every verdict is made.
        caller: The session that it comes from, under the settings of its owner.
        environment: None where only a session was given.
    """

    session: SparkSession
    caller: SparkSession
    environment: Environment | None = None
    project: Project | None = None
    progress: Progress = lambda _: None


@contextmanager
def desk(
    session: SparkSession | None = None,
    env: str | None = None,
    project: Path | str | None = None,
    progress: Progress = lambda _: None,
) -> Iterator[Desk]:
    """Open what the commands work with.

    Args:
        session: A session to use instead of the environment's own. With it, neither an
            environment nor a project is needed.

    Raises:
        ConfigError: There is no configuration, or no such environment.
        EngineError: Java, Spark or Delta cannot be started.
    """
    found, environment = None, None
    if session is None or env is not None or project is not None:
        found = load_project("." if project is None else project)
        environment = found.environment(env)
    with ExitStack() as stack:
        if session is None:
            assert environment is not None, "without a session there is an environment"
            progress("Starting Spark")
            session = stack.enter_context(session_for(environment))
        ours = stack.enter_context(verdict_session(session))
        yield Desk(ours, session, environment, found, progress)


@dataclass(frozen=True)
class Holding:
    """A table and its quarantine.

    Attributes:
        table: The source; None where it is gone.
        held: The quarantine table; None where nothing was ever quarantined.
    """

    session: SparkSession
    source: TableName
    name: TableName
    table: Definition | None
    held: Definition | None
    environment: Environment | None = None

    @property
    def fit(self) -> Layout:
        """Which column of the quarantine holds which of the source."""
        held = StructType([]) if self.held is None else self.held.schema
        return layout(StructType(list(self.columns)), held, self.source)

    @property
    def columns(self) -> tuple[StructField, ...]:
        """The source's columns; where it is gone, those that its quarantine has."""
        if self.table is not None:
            return tuple(self.table.schema.fields)
        assert self.held is not None, "one of the two is there"
        return tuple(one for one in self.held.schema.fields if not own.is_own(one.name))

    @property
    def values(self) -> Mapping[str, str]:
        """Each of the source's columns, in lower case, to the SQL of a row's value for it.

        Empty where the source is gone: then the quarantine's columns stand for themselves.
        """
        if self.table is None:
            return {}
        fit = self.fit
        missing = {one.name for one in fit.missing}
        return {
            one.name.lower(): f"CAST(NULL AS {ddl(one.dataType)})"
            if fit.columns[one.name] in missing
            else value_of(fit, one)
            for one in self.columns
        }

    @property
    def ledger(self) -> Environment:
        """Where the journal of the runs that moved rows is."""
        if self.environment is not None:
            return self.environment
        found = None if self.table is None else recorded_environment(self.table.properties)
        return found or Environment("recorded")

    def check(self, what: str, sql: str, *, boolean: bool = False) -> None:
        """Have Spark analyse an expression over the quarantine's columns; reads no row.

        Args:
            what: What it is, for the message.

        Raises:
            ExpressionError: It names a column or function that is not there, or does not fit.
        """
        rows = self.session.table(self.name.sql)
        try:
            if boolean:
                rows.where(sql).schema  # noqa: B018
            else:
                rows.selectExpr(sql).schema  # noqa: B018
        except EngineFailure as error:
            failure = failure_of(error)
            named = failure.parameters.get("objectName") or failure.parameters.get("routineName")
            raise ExpressionError(
                f"{what} cannot be understood on the quarantine of {self.source}: Spark says "
                f"{failure.condition or failure.kind}{f' ({named})' if named else ''}. Nothing "
                "was done.",
                hint=f"The table has the columns {_few([one.name for one in self.columns])}.",
                table=str(self.source),
            ) from None


def holding(desk: Desk, table: str | TableName, quarantine: str | None = None) -> Holding:
    """Look at a table and its quarantine; writes nothing.

    Args:
        table: The table whose rows they are.
        quarantine: Where they are; default: where the environment says, or without one the
            table's recorded rules, else ``<table>_quarantine``.

    Raises:
        TableNotFoundError: There is neither a table nor a quarantine of that name.
        NotDeltaError: One of them is a view, or not Delta.
        QuarantineError: The quarantine is not this table's.
    """
    source = TableName.parse(table) if isinstance(table, str) else table
    found: Definition | None = None
    missing: TableNotFoundError | None = None
    try:
        found = read_definition(desk.session, source)
    except TableNotFoundError as error:
        missing = error
    if quarantine is not None:
        name = TableName.parse(quarantine)
    elif desk.environment is not None:
        name = environment_quarantine(source, desk.environment)
    else:
        recorded = None if found is None else recorded_quarantine(found.properties)
        name = recorded or quarantine_name(source)
    held = read_place(desk.session, source, name)
    if missing is not None and held is None:
        raise missing
    return Holding(desk.session, source, name, found, held, desk.environment)


@dataclass(frozen=True)
class Selection:
    """Which quarantined rows are meant; an empty one means all.

    Attributes:
        rules: Rows that broke any of these rules.
        run: Rows that came with this run, batch or attempt.
        where: A condition over the source's columns.
        revisions: Rows that an upgrade moved for one of these revisions.
    """

    rules: Sequence[str] = ()
    run: str | None = None
    where: str | None = None
    revisions: Sequence[str] = ()

    @property
    def everything(self) -> bool:
        """Whether all rows are meant."""
        return not (self.rules or self.revisions or self.run is not None or self.where is not None)

    def predicate(self, place: Holding) -> str:
        """SQL over the columns of a quarantine.

        Raises:
            ExpressionError: The condition is not one about one row of this table.
        """
        parts = []
        if self.rules:
            names = ", ".join(literal(name.lower()) for name in self.rules)
            broken = f"transform({quote(own.RULES)}, r -> lower(r))"
            parts.append(f"arrays_overlap({broken}, array({names}))")
        if self.run is not None:
            run = literal(self.run)
            origins = ", ".join(map(quote, (own.RUN, own.BATCH, own.ATTEMPT)))
            parts.append(f"{run} IN ({origins})")
        if self.revisions:
            listed = ", ".join(map(literal, self.revisions))
            parts.append(f"{quote(own.SOURCE)} = 'upgrade' AND {quote(own.REVISION)} IN ({listed})")
        if self.where is not None:
            where = condition(self.where, place.source).over(place.values)
            place.check("The condition", where, boolean=True)
            parts.append(f"({where}) IS TRUE")
        return " AND ".join(f"({part})" for part in parts) or "true"


def is_state(*states: str) -> str:
    """SQL for rows in one of some states."""
    return f"{quote(own.STATE)} IN ({', '.join(map(literal, states))})"


UNCLAIMED = f"{quote(own.RELEASE)} IS NULL"
"""SQL for rows that no release has claimed."""


def _few(names: list[str], most: int = 12) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
