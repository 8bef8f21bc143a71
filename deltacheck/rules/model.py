"""Rules as values: what a table's rows must satisfy, and what becomes of those that do not.

Knows nothing of files and nothing of Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from deltacheck.errors import DeclarationError
from deltacheck.names import TableName

if TYPE_CHECKING:
    from deltacheck.rules.checks import BatchCheck, TableCheck

DEFAULT_GATE_TEXT = "10%"
"""The gate of an upgrade where none is declared: a typo must not empty a table."""


class Action(str, Enum):
    """What happens to a row of a batch that breaks a rule (``on_violation``)."""

    QUARANTINE = "quarantine"
    FAIL = "fail"
    DROP = "drop"
    WARN = "warn"


class Kind(str, Enum):
    """The two kinds of rule."""

    NOT_NULL = "not_null"
    CHECK = "check"


@dataclass(frozen=True)
class Gate:
    """A limit on bad rows: a number of rows, or a share of the rows looked at.

    >>> Gate.parse("5%").allows(bad=5, rows=100), Gate.parse("1/3").allows(bad=4, rows=11)
    (True, False)
    """

    limit: int | Fraction
    text: str = field(compare=False)

    @classmethod
    def parse(cls, value: str | int) -> Gate:
        """Read ``5``, ``"5%"``, ``"0.5%"`` or ``"1/3"``.

        Raises:
            DeclarationError: It is neither, is negative, or is a share above one.
        """
        text = str(value).strip()
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise _bad_gate(text)
        if match := re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text):
            share = Fraction(match[1]) / 100
        elif (match := re.fullmatch(r"(\d+)\s*/\s*(\d+)", text)) and int(match[2]) > 0:
            share = Fraction(int(match[1]), int(match[2]))
        elif re.fullmatch(r"\d+", text):
            return cls(int(text), f"{int(text)} rows" if int(text) != 1 else "1 row")
        else:
            raise _bad_gate(text)
        if share > 1:
            raise _bad_gate(text)
        return cls(share, text)

    def allows(self, bad: int, rows: int) -> bool:
        """Whether ``bad`` of ``rows`` rows is not more than the limit."""
        if isinstance(self.limit, int):
            return bad <= self.limit
        return bad <= self.limit * rows

    @property
    def declared(self) -> str:
        """A text that ``parse`` reads as this gate."""
        return str(self.limit) if isinstance(self.limit, int) else self.text

    def __str__(self) -> str:
        return self.text


def _bad_gate(text: str) -> DeclarationError:
    return DeclarationError(
        f"{text!r} is not a gate.",
        hint="Write a number of rows (100), a percentage of them (5%) or a fraction (1/3), "
        "at most all of them.",
    )


DEFAULT_GATE = Gate.parse(DEFAULT_GATE_TEXT)


@dataclass(frozen=True)
class Origin:
    """Where a rule was declared: file, line and column, counted from 1."""

    path: Path
    line: int
    column: int = 1


@dataclass(frozen=True)
class Rule:
    """A name and a SQL boolean expression that must be true for each row of a table.

    Attributes:
        name: As declared; compares without regard to case.
        kind: Whether it was declared as ``not_null`` or as ``check``.
        expression: SQL that ``ALTER TABLE`` carries unchanged; ``<column> IS NOT NULL``
            for ``not_null``.
        column: The column of a ``not_null`` rule, else None.
        on_violation: What happens to rows of later batches that break it.
        gate: The rule's own gate, if it has one.
        declared: The expression as a person wrote it.
    """

    name: str
    kind: Kind
    expression: str
    column: str | None = None
    on_violation: Action = Action.QUARANTINE
    description: str = ""
    tags: tuple[str, ...] = ()
    owner: str = ""
    gate: Gate | None = None
    renamed_from: str | None = None
    declared: str = field(default="", compare=False)
    origin: Origin | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """The name by which Delta stores it."""
        return self.name.lower()

    @property
    def enforced(self) -> bool:
        """Whether Delta is to enforce it (everything but ``warn``)."""
        return self.on_violation is not Action.WARN


@dataclass(frozen=True)
class TableRules:
    """All that ``constraints/`` says about one table.

    Attributes:
        batch: What must hold for a batch as a whole before it is written.
        checks: What must hold for the table as a whole.
    """

    table: TableName
    rules: tuple[Rule, ...]
    description: str = ""
    gate: Gate | None = None
    tags: tuple[str, ...] = ()
    owner: str = ""
    renamed_from: TableName | None = None
    batch: tuple[BatchCheck, ...] = ()
    checks: tuple[TableCheck, ...] = ()
    origin: Origin | None = field(default=None, compare=False)

    def rule(self, name: str) -> Rule | None:
        """The rule of that name, in any case, or None."""
        return next((rule for rule in self.rules if rule.key == name.lower()), None)


RuleSet = Mapping[TableName, TableRules]
"""The rules of all tables of a project."""
