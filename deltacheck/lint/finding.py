"""Findings: what lint says about a rule or a migration, as values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Generic, TypeVar


class Severity(str, Enum):
    """How bad a finding is. An error makes ``deltacheck lint`` fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        code: Its stable code, such as ``DC101``.
        name: Its name in words, such as ``null-violates``.
        severity: How bad it is.
        message: The reason, one line.
        remedy: What to do, one line.
        path: The file, where there is one.
        line: The line in it, counted from 1.
        column: The column in that line, counted from 1.
        table: The table concerned, as declared.
        rule: The rule concerned, as declared.
        revision: The migration concerned.
    """

    code: str
    name: str
    severity: Severity
    message: str
    remedy: str
    path: Path | None = None
    line: int | None = None
    column: int | None = None
    table: str | None = None
    rule: str | None = None
    revision: str | None = None


@dataclass(frozen=True)
class Remark:
    """What a lint says about its subject: a reason and a remedy."""

    message: str
    remedy: str


Subject = TypeVar("Subject", contravariant=True)


@dataclass(frozen=True)
class Lint(Generic[Subject]):
    """One lint: a code and the function that looks for it.

    Attributes:
        code: Stable: it is never given to another lint.
        name: What it is called in words.
        severity: How bad what it finds is.
        look: Looks at one subject. Its docstring is its page in the reference.
    """

    code: str
    name: str
    severity: Severity
    look: Callable[[Subject], Iterable[Remark]]
