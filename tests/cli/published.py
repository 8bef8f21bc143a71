"""Documents of ``--json`` held against the published schemas."""

from __future__ import annotations

from typing import Any

import jsonschema

from deltacheck.cli.options import GROUPS, hoisted
from deltacheck.cli.schemas import schema_for, schema_of


def command_of(arguments: list[str]) -> str:
    """The command among arguments: its word, or its two words."""
    words = hoisted(arguments)
    return " ".join(words[:2]) if words[0] in GROUPS else words[0]


def validate(document: dict[str, Any], command: str) -> None:
    """Hold a document against its schema: nothing missing, nothing besides."""
    jsonschema.validate(document, closed(schema_of(schema_for(command, document))))


def closed(schema: Any) -> Any:
    """The schema, with every object closed to what it does not name."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        result["additionalProperties"] = False
    return result
