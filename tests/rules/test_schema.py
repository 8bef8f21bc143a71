"""The JSON Schema that ships for editors is fresh, valid, and agrees with the reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from deltacheck.errors import DeclarationError
from deltacheck.rules.files import read_rules
from deltacheck.rules.schema import SCHEMA_FILE, json_schema, schema_text


def accepts(document: Any) -> bool:
    """Whether the schema accepts a document."""
    return bool(Draft202012Validator(json_schema()).is_valid(document))


def test_the_schema_that_ships_is_what_the_models_give() -> None:
    """When this fails, run what the docstring of deltacheck.rules.schema says."""
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text()


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(json_schema())
    assert json_schema()["$schema"].endswith("2020-12/schema")


def test_every_key_is_described() -> None:
    for name, definition in json_schema()["$defs"].items():
        for key, entry in definition.get("properties", {}).items():
            assert entry.get("description"), f"{name}.{key}"


SOUND = [
    "table: t\nrules: {}\n",
    "table: ${C:-dev}.t\nuse: [ids]\nowner: me\ntags: [a]\ngate: 5%\nrules: {}\n",
    "table: t\ngate: 100\nrules: {a_ok: {check: a > 0, gate: 1/3, on_violation: warn}}\n",
    "table: t\nrules: {a_ok: {not_null: a, description: x, owner: y, renamed_from: z}}\n",
    "rules: {a_ok: {check: a > 0}}\ndescription: shared\n",
]

UNSOUND = [
    "tabel: t\nrules: {}\n",
    "table: t\nrules: {a_ok: {}}\n",
    "table: t\nrules: {a_ok: {check: a > 0, not_null: a}}\n",
    "table: t\nrules: {a_ok: {chek: a > 0}}\n",
    "table: t\nrules: {a_ok: {check: a > 0, on_violation: stop}}\n",
    "table: t\nrules: {a_ok: {check: a > 0, tags: core}}\n",
    "table: t\nrules: {a_ok: {check: a > 0, tags: [a b]}}\n",
    "table: t\ngate: many\nrules: {}\n",
    "table: t\ngate: -1\nrules: {}\n",
    "table: t\ngate: 1/0\nrules: {}\n",
    "table: t\nrules: [a_ok]\n",
    "gate: 5%\nrules: {}\n",
    "use: [ids]\nrules: {}\n",
    "description: nothing\n",
]


@pytest.mark.parametrize("text", SOUND)
def test_what_the_reader_takes_the_schema_accepts(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.yml").write_text(text)
    (tmp_path / "ids.yml").write_text("rules: {}\n")

    read_rules(tmp_path)

    assert accepts(yaml.safe_load(text))


@pytest.mark.parametrize("text", UNSOUND)
def test_what_the_schema_refuses_the_reader_refuses(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.yml").write_text(text)

    with pytest.raises(DeclarationError):
        read_rules(tmp_path)

    assert not accepts(yaml.safe_load(text))
