"""Small projects, and what lint finds in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from deltacheck.lint import Finding, lint_project
from deltacheck.names import TableName
from deltacheck.revisions.files import load_history
from deltacheck.rules.files import survey_rules

TABLE = TableName.parse("shop.orders")


def rule_file(
    check: str, *, name: str = "amount_is_fine", more: str = "", comment: str = ""
) -> str:
    """The file of ``shop.orders`` with one check on line 4 and, indented alike, ``more``."""
    return (
        "table: shop.orders\n"
        "rules:\n"
        f"  {json.dumps(name)}:{comment and '  # ' + comment}\n"
        f"    check: {json.dumps(check)}\n{more}"
    )


def migration(up: str, down: str = "pass", *, revision: str = "0001", after: str = "") -> str:
    """A migration with these statements, separated by newlines."""
    upgrade, downgrade = (body.replace("\n", "\n    ") for body in (up, down))
    parent = json.dumps(after) if after else "None"
    return (
        f'"""{revision}"""\n\nrevision = "{revision}"\ndown_revision = {parent}\n\n\n'
        f"def upgrade(op):\n    {upgrade}\n\n\ndef downgrade(op):\n    {downgrade}\n"
    )


def lint(
    folder: Path,
    files: Mapping[str, str],
    *,
    types: Mapping[str, str] | None = None,
    applied: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """What lint finds in a project with these files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "constraints").mkdir(exist_ok=True)
    rules, problems = survey_rules(folder / "constraints", environ={})
    return lint_project(
        rules,
        load_history(folder / "versions"),
        problems=problems,
        applied=applied,
        columns={TABLE: types} if types else None,
    )


def codes(findings: tuple[Finding, ...]) -> list[str]:
    """Their codes, each once."""
    return list(dict.fromkeys(finding.code for finding in findings))


def lint_check(
    folder: Path, check: str, *, types: Mapping[str, str] | None = None, more: str = ""
) -> list[str]:
    """The codes of what lint finds about one check."""
    return codes(lint(folder, {"constraints/orders.yml": rule_file(check, more=more)}, types=types))
