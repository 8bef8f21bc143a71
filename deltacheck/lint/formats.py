"""Findings as text, as a JSON document, and as annotations on GitHub. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from deltacheck.lint.finding import Finding, Severity

SCHEMA_VERSION = 1

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def as_text(findings: Iterable[Finding], *, root: Path | None = None) -> Iterator[str]:
    """Two lines for each finding: the place and the reason, then the remedy.

    Args:
        findings: What was found.
        root: Paths below it are shown relative to it.
    """
    for finding in findings:
        where = ":".join(
            str(part) for part in (_path(finding, root), finding.line, finding.column) if part
        )
        about = _about(finding)
        yield (
            f"{where + ': ' if where else ''}{finding.severity.value} {finding.code} "
            f"{about + ': ' if about else ''}{finding.message}"
        )
        if finding.remedy:
            yield f"    {finding.remedy}"


def summary(findings: Iterable[Finding]) -> str:
    """How many there are of each severity.

    >>> summary([])
    'nothing found'
    """
    counts = Counter(finding.severity for finding in findings)
    parts = [
        f"{counts[severity]} {word}{'' if counts[severity] == 1 else 's'}"
        for severity, word in (
            (Severity.ERROR, "error"),
            (Severity.WARNING, "warning"),
            (Severity.INFO, "note"),
        )
        if counts[severity]
    ]
    return ", ".join(parts) or "nothing found"


def as_json(findings: Iterable[Finding], *, root: Path | None = None) -> dict[str, Any]:
    """A document that ``json.dumps`` takes.

    Args:
        findings: What was found.
        root: Paths below it are shown relative to it, with ``/``.
    """
    found = list(findings)
    counts = Counter(finding.severity for finding in found)
    return {
        "schema_version": SCHEMA_VERSION,
        "findings": [
            {
                "code": finding.code,
                "name": finding.name,
                "severity": finding.severity.value,
                "path": _path(finding, root),
                "line": finding.line,
                "column": finding.column,
                "table": finding.table,
                "rule": finding.rule,
                "revision": finding.revision,
                "message": finding.message,
                "remedy": finding.remedy,
            }
            for finding in found
        ],
        "counts": {severity.value: counts[severity] for severity in Severity},
    }


def as_github(findings: Iterable[Finding], *, root: Path | None = None) -> Iterator[str]:
    """One workflow command for each finding, which GitHub shows beside the line.

    Syntax: "Workflow commands for GitHub Actions", setting a notice, warning or error.

    Args:
        findings: What was found.
        root: The repository's folder: GitHub wants paths relative to it.
    """
    for finding in findings:
        properties = {
            "file": _path(finding, root),
            "line": finding.line,
            "col": finding.column,
            "title": f"{finding.code} {finding.name}",
        }
        shown = ",".join(
            f"{key}={_property(str(value))}" for key, value in properties.items() if value
        )
        about = _about(finding)
        text = f"{about + ': ' if about else ''}{finding.message} {finding.remedy}".strip()
        yield f"::{_COMMANDS[finding.severity]} {shown}::{_data(text)}"


def _path(finding: Finding, root: Path | None) -> str | None:
    if finding.path is None:
        return None
    path = finding.path
    if root is not None:
        full = path.absolute()
        if full.is_relative_to(root.absolute()):
            path = full.relative_to(root.absolute())
    return path.as_posix()


def _about(finding: Finding) -> str:
    """What a finding is about, in a word or two."""
    named = ".".join(part for part in (finding.table, finding.rule) if part)
    return named or (f"revision {finding.revision}" if finding.revision else "")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
