"""Projects for tests of the command line, on the tables of the test's own session."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltacheck.cli.app import _run
from deltacheck.cli.options import hoisted
from deltacheck.config import Environment
from tests.cli.published import command_of, validate


@dataclass(frozen=True)
class Ran:
    """What a command did: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The document on standard output."""
        return json.loads(self.out)

    @property
    def words(self) -> str:
        """All that it printed, with all white space made single spaces."""
        return " ".join(f"{self.out} {self.err}".split())


def command(*words: str | Path) -> Ran:
    """Run a command of the real application in this process.

    A JSON document is held against its published schema.
    """
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = _run(hoisted([str(word) for word in words]))
    ran = Ran(code, out.getvalue(), err.getvalue())
    if "--json" in words:
        validate(ran.json, command_of([str(word) for word in words]))
    return ran


def make_project(
    folder: Path,
    environment: Environment,
    versions: Mapping[str, str],
    constraints: Mapping[str, str] | None = None,
) -> Path:
    """Write a project that runs on an environment.

    Args:
        versions: Revision to the lines of its ``upgrade``; each follows the one before. What
            they add is dropped by its ``downgrade``.
        constraints: File name to text.
    """
    lines = [f"[env.{environment.name}]", f'spark = "{environment.spark}"']
    if environment.warehouse is not None:
        lines.append(f'warehouse = "{environment.warehouse}"')
    lines.append(f'schema = "{environment.schema}"')
    lines.append(f"[env.{environment.name}.conf]")
    lines += [f'"{key}" = "{value}"' for key, value in environment.conf.items()]
    (folder / "deltacheck.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "versions").mkdir(exist_ok=True)
    parent = None
    for revision, upgrade in versions.items():
        (folder / "versions" / f"{revision}_test.py").write_text(
            migration(revision, parent, upgrade), encoding="utf-8"
        )
        parent = revision
    if constraints is not None:
        (folder / "constraints").mkdir(exist_ok=True)
        for name, text in constraints.items():
            (folder / "constraints" / name).write_text(text, encoding="utf-8")
    return folder


def migration(revision: str, parent: str | None, upgrade: str) -> str:
    """The text of a migration."""
    added = re.findall(r'add_check\(("[^"]+"), ("[^"]+")', upgrade)
    drops = [f"op.drop_check({table}, {rule})" for table, rule in added]
    undo = "\n    ".join(reversed(drops)) or "pass"
    do = "\n    ".join(line.strip() for line in upgrade.splitlines() if line.strip()) or "pass"
    return (
        f'"""test"""\n\nrevision = "{revision}"\ndown_revision = {parent!r}\n\n\n'
        f"def upgrade(op):\n    {do}\n\n\ndef downgrade(op):\n    {undo}\n"
    )
