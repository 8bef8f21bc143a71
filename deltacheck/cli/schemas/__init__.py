"""The published JSON Schemas of what ``--json`` prints, one file for each command.

Generated from the types in ``deltacheck.cli.documents``; they ship with the package. To write
them anew::

    python -m deltacheck.cli.schemas
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deltacheck.cli.documents import DOCUMENTS, ENVIRONMENTS, ERROR, SQL
from deltacheck.cli.output import SCHEMA_VERSION

FOLDER = Path(__file__).parent
"""Where the schemas are."""

_OF_ANY = {
    ERROR: "any command of deltacheck with --json, when it fails",
    ENVIRONMENTS: "a command of deltacheck with --json, given several environments",
}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def file_name(command: str) -> str:
    """The file of a command's schema.

    >>> file_name("quarantine list"), file_name("upgrade --sql")
    ('quarantine-list.json', 'upgrade-sql.json')
    """
    return f"{'-'.join(command.replace('-', ' ').split())}.json"


def schema_of(command: str) -> dict[str, Any]:
    """The schema of one of ``DOCUMENTS``, as it is published."""
    schema: dict[str, Any] = json.loads((FOLDER / file_name(command)).read_text(encoding="utf-8"))
    return schema


def schema_for(command: str, document: Mapping[str, object]) -> str:
    """Which of ``DOCUMENTS`` a command has printed: its own, or one of those for all.

    >>> schema_for("status", {"schema_version": 1, "error": {}})
    'error'
    """
    for name, key in ((ERROR, "error"), (ENVIRONMENTS, "environments")):
        if key in document:
            return name
    return SQL if command == "upgrade" and "sql" in document else command


def generated() -> dict[str, str]:
    """The text of each file, by its name."""
    return {
        file_name(command): json.dumps(_schema(command, document), indent=2) + "\n"
        for command, document in DOCUMENTS.items()
    }


def write() -> None:
    """Write the files anew, and remove those of commands that are gone."""
    texts = generated()
    for path in FOLDER.glob("*.json"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")


def _schema(command: str, document: type) -> dict[str, Any]:
    from pydantic import TypeAdapter

    schema = _bare(TypeAdapter(document).json_schema())
    what = _OF_ANY.get(command, f"deltacheck {command} --json")
    properties = {"schema_version": {"const": SCHEMA_VERSION}, **schema.pop("properties")}
    required = ["schema_version", *schema.pop("required")]
    return {
        "$schema": _DIALECT,
        "title": what,
        **schema,
        "properties": properties,
        "required": required,
    }


def _bare(schema: Any) -> Any:
    """The schema without the titles that only repeat a name."""
    if isinstance(schema, list):
        return [_bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _bare(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }
