"""The published schemas: one for each command with --json, up to date, and met by real output.

That each document a command prints meets its schema is checked wherever a test runs a command
with --json (``tests.cli.projects.command``); the last test here does it for all of them.
"""

from __future__ import annotations

import json

import jsonschema
import pytest
from pyspark.sql import SparkSession

from deltacheck.cli.documents import DOCUMENTS, ENVIRONMENTS, ERROR, SQL
from deltacheck.cli.reference import commands
from deltacheck.cli.schemas import FOLDER, file_name, generated, schema_of
from tests.cli.projects import command
from tests.cli.published import closed, validate
from tests.cli.shop import Shop

WITH_JSON = {
    one.name for one in commands() if any("--json" in option.names for option in one.parameters)
}

ELSEWHERE = {
    "merge": "test_files.py",
    "quarantine discard": "test_quarantine.py",
    "quarantine export": "test_quarantine.py",
    "quarantine purge": "test_quarantine.py",
    "quarantine release": "test_quarantine.py",
    "quarantine show": "test_quarantine.py",
    ENVIRONMENTS: "test_deploy.py",
}
"""Documents that are met in other tests."""


def test_each_command_with_json_has_a_schema() -> None:
    """And no schema is without a command, but those that any command may print."""
    assert set(DOCUMENTS) == {*WITH_JSON, SQL, ERROR, ENVIRONMENTS}


def test_the_schemas_are_up_to_date() -> None:
    """If this fails: python -m deltacheck.cli.schemas."""
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    assert there == generated()


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_a_schema_is_a_schema(name: str) -> None:
    """Of the dialect that it names, with the version that every document has."""
    schema = schema_of(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["schema_version"] == {"const": 1}
    assert "schema_version" in schema["required"]
    assert schema["description"]


def test_a_document_with_more_or_less_than_its_schema_says_is_caught() -> None:
    """The tests are stricter than the published schema, which lets new fields come."""
    document = {"schema_version": 1, "environment": "local", "current": None}
    validate(document, "current")
    more = {**document, "news": 1}
    jsonschema.validate(more, schema_of("current"))
    with pytest.raises(jsonschema.ValidationError):
        validate(more, "current")
    with pytest.raises(jsonschema.ValidationError):
        validate({"schema_version": 1, "environment": "local"}, "current")
    assert closed({"type": "object", "properties": {}})["additionalProperties"] is False


def test_every_command_keeps_to_its_schema(session: SparkSession, shop: Shop) -> None:
    """Each command with --json on one project, from its beginning to its end."""
    shop.fill(session, "(1, 5), (2, -7), (3, NULL), (4, 9)")
    old = f"{shop.database}.old"
    session.sql(f"CREATE TABLE {old} (id INT NOT NULL) USING delta")
    shop.declare("id_here: id", "amount_positive: amount > 0", head="gate: 60%")
    lines = (
        "init elsewhere",
        "lint",
        f"baseline {old}",
        "revision --autogenerate -m first",
        "history",
        "heads",
        "show head",
        "plan",
        "upgrade --sql",
        "upgrade",
        "status",
        "check",
        "report --out report.html",
        "current",
        "quarantine list",
        "stamp -- 0001",
        "stamp head",
        "downgrade -- -1",
        "unlock",
        "doctor",
        "merge",
        "nonsense",
    )
    seen = set()
    for line in lines:
        words = line.split()
        if "--" in words:
            words = [words[0], "--json", *words[1:]]
        else:
            words.append("--json")
        ran = command(*words)
        document = json.loads(ran.out)
        seen.add(ERROR if "error" in document else SQL if "sql" in document else _name(words))
        # `merge` and `nonsense` fail here.
        assert ("error" in document) == (ran.code != 0), (line, ran)
    assert seen | set(ELSEWHERE) == set(DOCUMENTS)


def _name(words: list[str]) -> str:
    return " ".join(words[:2]) if words[0] == "quarantine" else words[0]


def test_files_are_named_after_commands() -> None:
    """So that a person finds them."""
    assert file_name("quarantine list") == "quarantine-list.json"
