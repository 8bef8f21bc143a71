"""Run a command as a person does, in this process: arguments in, exit code and text out."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jsonschema
import pytest

from deltacheck.cli.app import main
from deltacheck.cli.options import GROUPS
from deltacheck.cli.schemas import ERROR, schema_of


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Standard output as one JSON document."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def words(self) -> str:
        """Standard output and error with all white space made single spaces."""
        return " ".join(f"{self.out} {self.err}".split())


Run = Callable[..., Outcome]


def run_command(capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    """Run ``deltacheck ARGUMENTS``; a JSON document is held against its published schema."""
    capsys.readouterr()
    words = [str(argument) for argument in arguments]
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended:
            main(words)
    finally:
        signal.signal(signal.SIGTERM, before)
    printed = capsys.readouterr()
    code = ended.value.code
    assert isinstance(code, int)
    outcome = Outcome(code, printed.out, printed.err)
    if "--json" in words:
        validate(outcome.document, command_of(words))
    return outcome


def command_of(words: list[str]) -> str:
    """The command among arguments: its word, or its two words."""
    plain = [word for word in words if not word.startswith("-")]
    return " ".join(plain[:2]) if plain[0] in GROUPS else plain[0]


def validate(document: dict[str, Any], command: str) -> None:
    """Hold a document against the schema of its command: nothing missing, nothing besides."""
    name = ERROR if "error" in document and command != ERROR else command
    jsonschema.validate(document, closed(schema_of(name)))


def closed(schema: Any) -> Any:
    """The schema, with every object closed to what it does not name."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        result["additionalProperties"] = False
    return result
