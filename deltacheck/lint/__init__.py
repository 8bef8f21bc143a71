"""Findings about rules and migrations. No Spark."""

from deltacheck.lint.finding import Finding, Severity
from deltacheck.lint.formats import as_github, as_json, as_text, summary
from deltacheck.lint.project import failed, lint_project

__all__ = [
    "Finding",
    "Severity",
    "as_github",
    "as_json",
    "as_text",
    "failed",
    "lint_project",
    "summary",
]
