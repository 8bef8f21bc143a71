"""Findings as text, JSON and annotations."""

from __future__ import annotations

import json
from pathlib import Path

from deltacheck.errors import ConfigError, HistoryError, RuleFileError
from deltacheck.lint import (
    Finding,
    Severity,
    as_github,
    as_json,
    as_text,
    failed,
    lint_project,
    summary,
)

FINDING = Finding(
    "DC106",
    "or-beside-and",
    Severity.WARNING,
    "OR stands beside AND.",
    "Put parentheses.",
    path=Path("/p/constraints/orders.yml"),
    line=8,
    column=3,
    table="shop.orders",
    rule="amount_ok",
)
BARE = Finding("DC302", "edited", Severity.ERROR, "Edited.", "", revision="0001")


def test_text_has_the_place_the_reason_and_the_remedy() -> None:
    assert list(as_text([FINDING, BARE], root=Path("/p"))) == [
        "constraints/orders.yml:8:3: warning DC106 shop.orders.amount_ok: OR stands beside AND.",
        "    Put parentheses.",
        "error DC302 revision 0001: Edited.",
    ]


def test_paths_outside_the_root_stay_as_they_are() -> None:
    assert next(as_text([FINDING], root=Path("/q"))).startswith("/p/constraints/orders.yml:8:3: ")
    assert next(as_text([FINDING])).startswith("/p/constraints/orders.yml:8:3: ")


def test_json_is_one_document_with_a_version() -> None:
    document = as_json([FINDING, BARE], root=Path("/p"))

    assert json.loads(json.dumps(document)) == {
        "schema_version": 1,
        "findings": [
            {
                "code": "DC106",
                "name": "or-beside-and",
                "severity": "warning",
                "path": "constraints/orders.yml",
                "line": 8,
                "column": 3,
                "table": "shop.orders",
                "rule": "amount_ok",
                "revision": None,
                "message": "OR stands beside AND.",
                "remedy": "Put parentheses.",
            },
            {
                "code": "DC302",
                "name": "edited",
                "severity": "error",
                "path": None,
                "line": None,
                "column": None,
                "table": None,
                "rule": None,
                "revision": "0001",
                "message": "Edited.",
                "remedy": "",
            },
        ],
        "counts": {"error": 1, "warning": 1, "info": 0},
    }


def test_github_gets_one_workflow_command_for_each_finding() -> None:
    assert list(as_github([FINDING, BARE], root=Path("/p"))) == [
        "::warning file=constraints/orders.yml,line=8,col=3,title=DC106 or-beside-and"
        "::shop.orders.amount_ok: OR stands beside AND. Put parentheses.",
        "::error title=DC302 edited::revision 0001: Edited.",
    ]


def test_what_github_would_take_for_syntax_is_escaped() -> None:
    finding = Finding(
        "DC001", "a:b", Severity.INFO, "50%\n::error::no", "", path=Path("a,b:c%.yml"), line=1
    )

    assert list(as_github([finding])) == [
        "::notice file=a%2Cb%3Ac%25.yml,line=1,title=DC001 a%3Ab::50%25%0A::error::no"
    ]


def test_the_summary_counts_by_severity() -> None:
    assert summary([FINDING, FINDING, BARE]) == "1 error, 2 warnings"
    assert summary([]) == "nothing found"


def test_only_an_error_fails() -> None:
    assert failed([FINDING, BARE])
    assert not failed([FINDING])


def test_what_could_not_be_read_is_a_finding_too() -> None:
    problems = [
        HistoryError("Two heads.", hint="Merge.", paths=(Path("versions/b.py"),)),
        RuleFileError("Bad\n  key.", hint="Drop it.", path="constraints/a.yml", line=3, column=5),
        ConfigError("No project.", hint="Make one."),
    ]

    found = lint_project({}, problems=problems)

    assert [(one.code, one.path, one.line, one.message) for one in found] == [
        ("DC001", None, None, "No project."),
        ("DC001", Path("constraints/a.yml"), 3, "Bad key."),
        ("DC002", Path("versions/b.py"), 1, "Two heads."),
    ]
    assert failed(found)
