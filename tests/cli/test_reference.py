"""docs/cli.md is generated from the commands, and nothing in it is missing or out of date."""

from __future__ import annotations

import re
from pathlib import Path

from deltacheck.cli.reference import commands, reference

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "cli.md"


def test_the_page_is_what_the_commands_say() -> None:
    """If this fails: python -m deltacheck.cli.reference > docs/cli.md."""
    assert PAGE.read_text(encoding="utf-8") == reference()


def test_every_command_and_option_says_what_it_does() -> None:
    """No command without a docstring, no parameter without help; sentences end."""
    for command in commands():
        assert command.help, command.name
        for parameter in command.parameters:
            assert parameter.help.endswith("."), (command.name, parameter)


def test_links_of_the_page_lead_somewhere() -> None:
    """To headings of the page, and to files of the repository."""
    text = reference()
    headings = {line.lstrip("# ").replace(" ", "-") for line in re.findall(r"^#+ .*$", text, re.M)}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in headings
        else:
            assert (PAGE.parent / target).exists(), target
