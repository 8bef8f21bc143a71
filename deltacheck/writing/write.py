"""Write a batch; when Delta refuses it for a rule, keep it in quarantine instead of dying.

The first attempt is the plain write: a clean batch costs one Delta commit and nothing else.
Only Delta's own invariant violation is routed; any other error passes through as it came.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from deltacheck.delta.commit import Frame, Tag, commit
from deltacheck.delta.failures import EngineFailure, Violation, failure_of, violation_of
from deltacheck.delta.session import quiet_query_loggers
from deltacheck.delta.table import Table, latest_version, read_table
from deltacheck.delta.warehouse import register
from deltacheck.errors import DeltacheckError, QuarantineError
from deltacheck.ledger.recorded import read_recorded, recorded_quarantine
from deltacheck.names import TableName, quote
from deltacheck.quarantine import layout as own
from deltacheck.quarantine.layout import ddl, quarantine_name
from deltacheck.quarantine.move import violators_of
from deltacheck.quarantine.place import Labels, labelled, prepare
from deltacheck.writing.result import WriteResult

log = logging.getLogger("deltacheck")


def write(
    df: DataFrame,
    table: str,
    *,
    options: Mapping[str, str] | None = None,
    quarantine: str | None = None,
    job: str | None = None,
) -> WriteResult:
    """Append a batch to a table; if it breaks a rule, quarantine the whole batch.

    Each quarantined row carries the names of all the rules that it broke (none for a good
    row), and the batch the rule that Delta named. A quarantined batch is logged as a warning.

    Args:
        df: The batch.
        table: The table, which must be there.
        options: Options of the DataFrame writer; a ``userMetadata`` of yours is kept.
        quarantine: Where bad batches go; default: where the table's recorded rules say, else
            ``<table>_quarantine``.
        job: A name for the job, kept with quarantined rows and in the table's history.

    Returns:
        What became of the batch.

    Raises:
        QuarantineError: The batch was refused and the quarantine could not be written: the
            batch is in neither place. Delta's refusal is attached as its cause.
        Exception: Whatever else Spark or Delta raises passes through as it came.
    """
    session = df.sparkSession
    name = TableName.parse(table)
    attempt = secrets.token_hex(8)
    tag = Tag(attempt=attempt, job=job)
    given = dict(options or {})
    user = given.pop("userMetadata", None)
    register(session, None, name)
    try:
        with quiet_query_loggers():
            commit(session, name, Frame(df, options=given), tag=tag, user_metadata=user)
    except EngineFailure as error:
        violation = violation_of(error)
        if violation is None:
            raise
        return _quarantined(df, session, name, tag, attempt, violation, quarantine, error)
    return WriteResult(ok=True, table=str(name), route="clean", _session=session, _write=attempt)


def _quarantined(
    df: DataFrame,
    session: SparkSession,
    name: TableName,
    tag: Tag,
    attempt: str,
    violation: Violation,
    quarantine: str | None,
    error: BaseException,
) -> WriteResult:
    try:
        with quiet_query_loggers():
            result = _route(df, session, name, tag, attempt, violation, quarantine)
    except EngineFailure as problem:
        raise QuarantineError(
            f"{name} refused the batch for {_named(violation)}, and its quarantine could not be "
            f"written: Spark says {failure_of(problem).condition or failure_of(problem).kind}. "
            "The batch is in neither place.",
            hint="Check the quarantine's place and your rights there, then write the batch again.",
            table=str(name),
            rule=violation.constraint,
        ) from error
    except DeltacheckError as problem:
        raise problem from error
    log.warning(
        "%s refused a batch: %d rows are in %s; %s",
        result.table,
        result.quarantined,
        result.quarantine,
        ", ".join(f"{rule}: {rows} rows" for rule, rows in result.broken.items()),
    )
    return result


def _named(violation: Violation) -> str:
    if violation.constraint is not None:
        return f"the rule {violation.constraint}"
    return f"a NULL in {violation.column}"


def _route(
    df: DataFrame,
    session: SparkSession,
    name: TableName,
    tag: Tag,
    attempt: str,
    violation: Violation,
    quarantine: str | None,
) -> WriteResult:
    table = read_table(session, name)
    rules = live_rules(table)
    rule = _rule_name(violation, rules)
    if quarantine is None:
        bad = recorded_quarantine(table.properties) or quarantine_name(name)
    else:
        bad = TableName.parse(quarantine)
    place = prepare(session, name, table.schema, bad, tag)
    labels = Labels(
        source="write",
        attempt=attempt,
        version=latest_version(session, name),
        job=tag.job,
        rule=rule,
    )
    rows = labelled(as_table(df, table), place, labels, violators_of(rules))
    commit(session, bad, Frame(rows), tag=tag, tries=5)
    mine = f"{quote(own.ATTEMPT)} = '{attempt}'"
    counts = session.sql(
        f"SELECT rule, count(*) AS rows FROM (SELECT explode_outer({quote(own.RULES)}) AS rule "
        f"FROM {bad.sql} WHERE {mine}) GROUP BY rule"
    ).collect()
    broken = {row["rule"]: row["rows"] for row in counts if row["rule"] is not None}
    return WriteResult(
        ok=False,
        table=str(name),
        route="batch",
        quarantine=str(bad),
        quarantined=session.table(bad.sql).where(mine).count(),
        rule=rule,
        broken={key: broken[key] for key in rules if key in broken},
        _session=session,
        _write=attempt,
    )


def live_rules(table: Table) -> dict[str, str]:
    """The rules that a table enforces now, by name as declared where that is recorded."""
    recorded = read_recorded(table.name, table.properties)
    shown = {} if recorded is None else {rule.key: rule.name for rule in recorded.rules}
    rules = {
        shown.get(name.lower(), name): expression for name, expression in table.constraints.items()
    }
    for column in sorted(table.not_null):
        path = ".".join(quote(part) for part in column)
        rules["_".join(column) + "_not_null"] = f"{path} IS NOT NULL"
    return rules


def _rule_name(violation: Violation, rules: Mapping[str, str]) -> str | None:
    if violation.constraint is not None:
        wanted = violation.constraint.lower()
        return next((name for name in rules if name.lower() == wanted), violation.constraint)
    return None if violation.column is None else violation.column.replace(".", "_") + "_not_null"


def as_table(df: DataFrame, table: Table) -> DataFrame:
    """A batch as rows of the table: its columns, in its types, NULL where the batch has none."""
    given = {name.lower(): name for name in df.columns}
    types = {field.name.lower(): field.dataType for field in df.schema.fields}
    columns = []
    for field in table.schema.fields:
        key = field.name.lower()
        source = quote(given[key]) if key in given else "NULL"
        if types.get(key) != field.dataType:
            source = f"CAST({source} AS {ddl(field.dataType)})"
        columns.append(f"{source} AS {quote(field.name)}")
    return df.selectExpr(*columns)
