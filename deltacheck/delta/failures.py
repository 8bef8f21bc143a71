"""What Spark and Delta raised, read as data: condition, parameters, SQLSTATE.

Decides by condition and parameter, never by message text, since a row's value can imitate
text. Classic PySpark raises Delta's invariant violation as a raw ``Py4JJavaError``, Spark
Connect as an ``UnknownException``; both carry the same condition and parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import delta.exceptions  # noqa: F401  (registers Delta's conflict classes with PySpark)
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

EngineFailure = (PySparkException, Py4JJavaError)
"""What a statement of Spark or Delta can raise, in classic Spark and over Connect."""

_CONFLICTS = {
    "DELTA_CONCURRENT_APPEND",
    "DELTA_CONCURRENT_DELETE_DELETE",
    "DELTA_CONCURRENT_DELETE_READ",
    "DELTA_CONCURRENT_TRANSACTION",
    "DELTA_CONCURRENT_WRITE",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
}
_CONFLICT_CLASSES = {
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentModificationException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "DeltaConcurrentModificationException",
    "MetadataChangedException",
    "ProtocolChangedException",
}
_OVERTAKEN = {"DELTA_CONSTRAINT_ALREADY_EXISTS", "DELTA_CONSTRAINT_DOES_NOT_EXIST"}
_CHECK = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
# DELTA_MISSING_NOT_NULL_COLUMN_VALUE is not among them: the batch lacks the column, which is a
# fault of the job, not of its rows.
_NOT_NULL = "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
_LENGTH = "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
# Both say in their text alone which constraint it was: one of the table's, or the predicate
# that the replaced rows must satisfy.
_REPLACE_WHERE = "DELTA_REPLACE_WHERE_MISMATCH"
_REPLACE_USING = "DELTA_REPLACE_ON_OR_USING_TABLE_CONSTRAINT_VIOLATION"
_VIOLATION_CLASSES = {"DeltaInvariantViolationException", "InvariantViolationException"}
"""How versions of Delta whose errors have no condition call it."""
_DATA_EXCEPTION = "22"
"""The class of SQL states of what goes wrong in evaluating a row."""
_UNEVALUATED = {
    "DUPLICATED_MAP_KEY",
    "COLLECTION_SIZE_LIMIT_EXCEEDED",
    "INCONSISTENT_BEHAVIOR_CROSS_VERSION",
}
"""What an expression also fails with on a row, in other states (`error-conditions.json`)."""

_TASK_FAILED = "TASK_WRITE_FAILED"
_DEPTH = 20
"""How many nested causes of a Java exception are looked at."""
_NOT_A_RULE = "Generated Column"
"""The name under which Delta reports a wrong value of a generated column: a fault of the
job, not a rule (``ColumnWithDefaultExprUtils.scala``)."""

LENGTH_RULE = "char_varchar_length"
"""Our name for Delta's built-in check of CHAR(n) and VARCHAR(n), which it does not name."""


@dataclass(frozen=True)
class Failure:
    """An error of Spark or Delta, without its text."""

    condition: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    state: str | None = None
    kind: str = ""

    @property
    def family(self) -> str:
        """The condition without its sub-condition."""
        return (self.condition or "").split(".")[0]


@dataclass(frozen=True)
class Violation:
    """Delta's refusal of a batch.

    Attributes:
        constraint: The stored name of a CHECK, or None.
        column: The column of a NOT NULL, or None.
        certain: Whether a rule of the table was broken for sure. Of a batch that replaces
            rows Delta reports the same when it has a row outside of what it replaces; and
            before Delta 3.3 it named nothing at all.
        replaces: The predicate of the rows that the batch replaces, where Delta tells.
    """

    constraint: str | None = None
    column: str | None = None
    certain: bool = True
    replaces: str | None = None


def failure_of(error: BaseException) -> Failure:
    """Read an error of Spark or Delta.

    Args:
        error: What a statement raised.
    """
    if isinstance(error, Py4JJavaError):
        return _of_java(error.java_exception)
    if isinstance(error, PySparkException):
        return Failure(
            error.getCondition(),
            dict(error.getMessageParameters() or {}),
            error.getSqlState(),
            type(error).__name__,
        )
    return Failure(None, {}, None, type(error).__name__)


def _of_java(java: Any) -> Failure:
    kind = str(java.getClass().getSimpleName())
    try:
        condition = java.getCondition()
        parameters = dict(java.getMessageParameters())
        state = java.getSqlState()
    except Py4JError:
        # Not a SparkThrowable: it has none of the three.
        return Failure(None, {}, None, kind)
    return Failure(condition, {str(k): str(v) for k, v in parameters.items()}, state, kind)


def is_conflict(error: BaseException) -> bool:
    """Whether another writer's commit won, so that trying again is safe."""
    failure = failure_of(error)
    return failure.family in _CONFLICTS or failure.kind in _CONFLICT_CLASSES


def is_overtaken(error: BaseException) -> bool:
    """Whether another writer added or dropped the constraint in the same instant."""
    return failure_of(error).family in _OVERTAKEN


def violation_of(error: BaseException) -> Violation | None:
    """Delta's invariant violation in ``error``, or None for any other error.

    Looks into the causes of a Java exception, since some commands wrap it.
    """
    return next(filter(None, map(violation_in, _causes(error))), None)


def violation_in(failure: Failure) -> Violation | None:
    """The invariant violation that a failure is, or None.

    Args:
        failure: One error, its causes apart.
    """
    if failure.condition == _CHECK:
        name = failure.parameters.get("constraintName")
        return None if name == _NOT_A_RULE else Violation(constraint=name, certain=bool(name))
    if failure.condition == _NOT_NULL:
        column = failure.parameters.get("columnName")
        return Violation(column=column, certain=bool(column))
    if failure.condition == _LENGTH:
        return Violation(constraint=LENGTH_RULE)
    if failure.condition in (_REPLACE_WHERE, _REPLACE_USING):
        return Violation(certain=False, replaces=failure.parameters.get("replaceWhere"))
    if failure.condition is None and failure.kind in _VIOLATION_CLASSES:
        return Violation(certain=False)
    return None


def _causes(error: BaseException) -> Iterator[Failure]:
    yield failure_of(error)
    if isinstance(error, Py4JJavaError):
        java = error.java_exception
        for _ in range(_DEPTH):
            java = java.getCause()
            if java is None:
                return
            yield _of_java(java)


def cannot_evaluate(error: BaseException) -> bool:
    """Whether an expression could not be evaluated on some row, as far as can be told.

    Over Connect nothing is told of the cause for which the task of a write failed.
    """
    for one in _causes(error):
        if (one.state or "").startswith(_DATA_EXCEPTION) or one.family in _UNEVALUATED:
            return True
    return not isinstance(error, Py4JJavaError) and failure_of(error).family == _TASK_FAILED


def is_generated_value(error: BaseException) -> bool:
    """Whether Delta found a wrong value in a generated column of a row that it was to write."""
    return any(one.parameters.get("constraintName") == _NOT_A_RULE for one in _causes(error))


def needs_another_look(error: BaseException) -> bool:
    """Whether an ALTER failed for rows or commits that came meanwhile: look again, and go on."""
    late = new_constraint_violators(error) is not None
    return late or is_conflict(error) or is_overtaken(error)


def new_constraint_violators(error: BaseException) -> int | None:
    """How many rows ``ADD CONSTRAINT`` counted as violators, or None for another error."""
    failure = failure_of(error)
    if failure.family != "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION":
        return None
    return int(failure.parameters["numRows"])
