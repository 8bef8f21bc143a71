"""One command on many environments: each in a process of its own, one after the other.

Two local environments in one process would share one catalog, and one that fails must not
stop the others.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from deltacheck.cli.output import err, grid, out, print_json
from deltacheck.config import load_project

COMMANDS = ("upgrade", "downgrade", "plan", "status", "check", "current")
"""The commands that can be given several environments."""


def chosen(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Take the environments out of a command line.

    Returns:
        The environments named, in order, and the rest.

    >>> chosen(["upgrade", "--env", "dev", "head", "--env=prod"])
    (['dev', 'prod'], ['upgrade', 'head'])
    """
    names: list[str] = []
    rest: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        if argument == "--env":
            names.append(next(waiting, ""))
        elif argument.startswith("--env="):
            names.append(argument.removeprefix("--env="))
        else:
            rest.append(argument)
    return names, rest


def run_each(arguments: list[str]) -> int | None:
    """Run a command on each of several environments.

    Returns:
        The exit code: 0 where all succeeded, the common code of those that failed, else 1.
        None where the command line names fewer than two environments: it is to be run as it
        is.

    Raises:
        ConfigError: There is no configuration, or one of the environments is not in it.
    """
    names, rest = chosen(arguments)
    if not rest or rest[0] not in COMMANDS or not (len(names) > 1 or "all" in names):
        return None
    project = load_project(_folder(rest))
    if "all" in names:
        names = list(project.environments)
    environments = [project.environment(name).name for name in dict.fromkeys(names)]
    as_json = "--json" in rest
    results: list[dict[str, Any]] = []
    for name in environments:
        if not as_json:
            err().rule(name, align="left")
        ran = subprocess.run(
            [sys.executable, "-m", "deltacheck.cli.app", rest[0], "--env", name, *rest[1:]],
            stdout=subprocess.PIPE if as_json else None,
            check=False,
            text=True,
        )
        document = json.loads(ran.stdout) if as_json and ran.stdout else {}
        document.pop("schema_version", None)
        results.append({"environment": name, "exit_code": ran.returncode, "result": document})
    failed = {entry["exit_code"] for entry in results} - {0}
    if as_json:
        print_json({"environments": results})
    else:
        table = grid("environment", "exit code", right=("exit code",))
        for entry in results:
            table.add_row(entry["environment"], str(entry["exit_code"]))
        out().print(table)
    if not failed:
        return 0
    return failed.pop() if len(failed) == 1 else 1


def _folder(arguments: list[str]) -> Path:
    for place, argument in enumerate(arguments):
        if argument == "--project" and place + 1 < len(arguments):
            return Path(arguments[place + 1])
        if argument.startswith("--project="):
            return Path(argument.removeprefix("--project="))
    return Path()
