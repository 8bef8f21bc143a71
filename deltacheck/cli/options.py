"""The options that every command takes, and what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

Env = Annotated[
    Optional[str],  # noqa: UP045  (typer reads annotations at run time on Python 3.10)
    typer.Option("--env", metavar="NAME", help="The environment; default: the project's default."),
]
ProjectFolder = Annotated[
    Path, typer.Option("--project", metavar="FOLDER", help="The folder with deltacheck.toml.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more, and where Spark logs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but results and errors.")]
LockTimeout = Annotated[
    float,
    typer.Option("--lock-timeout", metavar="SECONDS", help="Wait so long for another run to end."),
]
Tags = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--tag", metavar="TAG", help="Only rules with this tag; may be repeated."),
]
Owners = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--owner", metavar="NAME", help="Only rules of this owner; may be repeated."),
]

GLOBAL_FLAGS = ("--json", "--verbose", "-v", "--quiet", "-q")
GLOBAL_VALUES = ("--env", "--project")


def hoisted(arguments: list[str]) -> list[str]:
    """Let the global options stand before the command as well as after it.

    >>> hoisted(["--env", "prod", "--json", "status", "--check"])
    ['status', '--env=prod', '--json', '--check']

    Those that mean nothing to a command about files alone are left out there:

    >>> hoisted(["--env", "prod", "--json", "-q", "history"])
    ['history', '--json']
    """
    moved: list[str] = []
    rest = list(arguments)
    while rest:
        head = rest[0]
        if head in GLOBAL_FLAGS or head.startswith(tuple(f"{name}=" for name in GLOBAL_VALUES)):
            moved.append(rest.pop(0))
        elif head in GLOBAL_VALUES and len(rest) > 1:
            moved.append(f"{rest.pop(0)}={rest.pop(0)}")
        else:
            break
    if not rest or rest[0].startswith("-"):
        return [*moved, *rest]
    command = [rest.pop(0)]
    if command[0] in ABOUT_FILES:
        moved = [one for one in moved if one.startswith(("--json", "--project"))]
    if command[0] in GROUPS and rest and not rest[0].startswith("-"):
        command.append(rest.pop(0))
    return [*command, *moved, *rest]


ABOUT_FILES = ("init", "revision", "merge", "lint", "history", "heads", "show")
"""Commands that know no environment."""

GROUPS = ("quarantine",)
"""Commands that have commands of their own."""


def relative_last(arguments: list[str]) -> list[str]:
    """Keep a relative target such as ``-1`` from being taken for an option.

    >>> relative_last(["downgrade", "-1", "--json"])
    ['downgrade', '--json', '--', '-1']
    """
    targets = [one for one in arguments if one[:1] == "-" and one[1:].isdecimal()]
    # The one command that goes back; elsewhere a negative number is an option's value.
    if not targets or arguments[0] != "downgrade" or "--" in arguments:
        return arguments
    return [*(one for one in arguments if one not in targets), "--", *targets]
