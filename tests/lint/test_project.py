"""Lint as a whole: its codes, its reference page, its hook, and what it leaves alone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

from deltacheck.lint.reference import reference
from deltacheck.lint.registry import BROKEN_HISTORY, LINTS, MALFORMED
from tests.lint.projects import codes, lint, migration, rule_file

ROOT = Path(__file__).parents[2]


def test_no_code_and_no_name_is_given_twice() -> None:
    given = [*((one.code, one.name) for one in LINTS), MALFORMED, BROKEN_HISTORY]

    for part in (0, 1):
        values = [pair[part] for pair in given]
        assert len(values) == len(set(values))
    assert all(re.fullmatch(r"DC\d{3}", code) for code, _ in given)


def test_every_lint_is_explained() -> None:
    for one in LINTS:
        lines = (one.look.__doc__ or "").splitlines()
        assert lines, one.code
        assert lines[0].endswith("."), one.code
        assert len(lines) > 3, one.code


def test_the_reference_page_is_what_the_code_gives() -> None:
    """When this fails, run what the docstring of deltacheck.lint.reference says."""
    assert (ROOT / "docs" / "lint.md").read_text(encoding="utf-8") == reference()


def test_every_code_has_a_section_in_the_reference_page() -> None:
    page = reference()

    for code in [one.code for one in LINTS] + [MALFORMED[0], BROKEN_HISTORY[0]]:
        assert f"\n## {code}\n" in page


def test_every_lint_is_tested() -> None:
    """Each code appears in a test of this folder."""
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py"))

    for one in LINTS:
        assert tests.count(one.code) > 1, one.code


def test_the_pre_commit_hook_runs_lint() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))

    assert (hook["id"], hook["entry"]) == ("deltacheck-lint", "deltacheck lint")
    assert hook["language"] == "python"
    assert hook["pass_filenames"] is False
    assert re.search(hook["files"], "constraints/shop/orders.yml")
    assert not re.search(hook["files"], "src/versions/a.py")


def test_findings_come_in_the_order_of_files_and_lines(tmp_path: Path) -> None:
    files = {
        "constraints/b.yml": "table: b\nrules:\n  x_ok: {check: x < 1}\n  rule: {check: x < 2}\n",
        "constraints/a.yml": "table: a\nrules:\n  x_small: {check: x < 1}\n",
        "versions/0001.py": migration('op.add_check("c", "rule_1", "x < 1")'),
    }

    found = lint(tmp_path, files)

    assert [(one.path.name if one.path else "", one.line, one.code) for one in found] == [
        ("a.yml", 3, "DC101"),
        ("b.yml", 3, "DC101"),
        ("b.yml", 4, "DC101"),
        ("b.yml", 4, "DC201"),
        ("0001.py", 8, "DC101"),
        ("0001.py", 8, "DC201"),
        ("0001.py", 11, "DC301"),
    ]


def test_a_rule_set_is_spoken_of_once(tmp_path: Path) -> None:
    files = {
        "constraints/ids.yml": "rules:\n  id_small: {check: id < 5}\n",
        "constraints/a.yml": "table: a\nuse: [ids]\n",
        "constraints/b.yml": "table: b\nuse: [ids]\n",
    }

    (finding,) = lint(tmp_path, files)

    assert (finding.code, finding.line, finding.table) == ("DC101", 2, "a")


def test_what_cannot_be_read_does_not_keep_lint_from_the_rest(tmp_path: Path) -> None:
    files = {
        "constraints/a.yml": "table: [\n",
        "constraints/b.yml": "table: b\nrules:\n  x: {chek: a}\n",
        "constraints/c.yml": rule_file("a = NULL"),
    }

    assert codes(lint(tmp_path, files)) == ["DC001", "DC103"]


def test_what_cannot_be_read_cannot_be_silenced(tmp_path: Path) -> None:
    text = "table: b\nrules:\n  x_ok: {chek: a}  # deltacheck: ignore\n"

    assert codes(lint(tmp_path, {"constraints/b.yml": text})) == ["DC001"]


def test_lint_starts_no_spark(tmp_path: Path) -> None:
    """Reading and linting a project imports neither pyspark nor py4j nor delta."""
    lint(
        tmp_path, {"constraints/orders.yml": rule_file("a > 0"), "versions/a.py": migration("pass")}
    )
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from deltacheck.lint import as_json, lint_project\n"
        "from deltacheck.revisions.files import load_history\n"
        "from deltacheck.rules.files import read_rules\n"
        "rules = read_rules(Path('constraints'))\n"
        "print(len(as_json(lint_project(rules, load_history(Path('versions'))))['findings']))\n"
        "print(sorted({'pyspark', 'py4j', 'delta', 'pandas'} & set(sys.modules)))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split("\n")[:2] == ["2", "[]"]
