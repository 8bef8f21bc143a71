"""The JSON Schema of the files in ``constraints/``, for editors; generated from the models.

It ships as ``constraints.schema.json`` beside this module. To write it anew::

    python -m deltacheck.rules.schema > deltacheck/rules/constraints.schema.json
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from deltacheck.rules.file_models import RuleSetDeclaration, TableDeclaration

SCHEMA_FILE = Path(__file__).with_name("constraints.schema.json")
"""The schema that ships with the package."""


def json_schema() -> dict[str, Any]:
    """The schema of one document: a table's rules, or a rule set."""
    _, schema = models_json_schema(
        [(TableDeclaration, "validation"), (RuleSetDeclaration, "validation")]
    )
    everything = _bare(schema["$defs"])
    used = json.dumps(everything)
    definitions = {
        name: definition
        for name, definition in everything.items()
        if name.endswith("Declaration") or f'"#/$defs/{name}"' in used
    }
    table = {"$ref": "#/$defs/TableDeclaration"}
    rule_set = {"$ref": "#/$defs/RuleSetDeclaration"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Rules of a Delta table, for deltacheck",
        "if": {"required": ["table"]},
        "then": table,
        "else": rule_set,
        "$defs": definitions,
    }


def schema_text() -> str:
    """The schema as it stands in ``constraints.schema.json``."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _bare(schema: Any) -> Any:
    """The schema without what only repeats a key's name or says that there is no default."""
    if isinstance(schema, list):
        return [_bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _bare(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
        and not (key == "default" and value in (None, "", []))
    }


if __name__ == "__main__":
    print(schema_text(), end="")
