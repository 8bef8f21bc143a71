"""The commands about files: init, revision, merge, lint, history, heads, show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deltacheck.config import load_project
from deltacheck.rules.files import read_rules
from tests.cli.projects import command
from tests.harness.processes import run_python

ORDERS = """\
table: shop.orders
tags: [money]
owner: sales
rules:
  order_id_present:
    not_null: order_id
    owner: platform
  amount_positive:
    check: amount > 0
    tags: [nightly]
"""


def declare(folder: Path, text: str = ORDERS, name: str = "orders.yml") -> None:
    """Write a file of ``constraints/``."""
    (folder / "constraints").mkdir(exist_ok=True)
    (folder / "constraints" / name).write_text(text, encoding="utf-8")


@pytest.fixture
def project(folder: Path) -> Path:
    """A new local project without rules, which is the current folder."""
    assert command("init").code == 0
    return folder


@pytest.mark.parametrize("template", ["local", "connect", "databricks"])
def test_a_new_project_can_be_used_at_once(folder: Path, template: str) -> None:
    """What init makes is a project: its configuration, its example and its folders read well."""
    made = command("init", "shop", "--template", template)
    assert made.code == 0
    assert "deltacheck.toml" in made.out
    found = load_project(folder / "shop")
    assert found.default_env in found.environments
    assert found.versions.is_dir()
    example = found.constraints / "orders.yml.example"
    example.rename(found.constraints / "orders.yml")
    assert command("lint", "--project", "shop").code == 0
    assert command("revision", "--autogenerate", "-m", "first", "--project", "shop").code == 0
    assert [rules.table.name for rules in read_rules(found.constraints).values()] == ["orders"]


def test_the_databricks_template_has_the_function_that_it_names(folder: Path) -> None:
    """spark_session.py is Python with the function of deltacheck.toml."""
    command("init", "--template", "databricks")
    source = (folder / "spark_session.py").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    exec(compile(source, "spark_session.py", "exec"), names)
    assert callable(names["databricks"])
    assert load_project(folder).environment().spark == "spark_session:databricks"


def test_init_overwrites_nothing(folder: Path) -> None:
    """A project, or one file of it, in the way: exit 2, and everything is as it was."""
    (folder / "constraints").mkdir()
    mine = folder / "constraints" / "orders.yml.example"
    mine.write_text("mine", encoding="utf-8")
    refused = command("init")
    assert refused.code == 2
    assert "orders.yml.example" in refused.words
    assert mine.read_text(encoding="utf-8") == "mine"
    assert not (folder / "deltacheck.toml").exists()
    mine.unlink()
    assert command("init").code == 0
    before = (folder / "deltacheck.toml").read_bytes()
    again = command("init", "--template", "connect")
    assert again.code == 2
    assert "project already" in again.words
    assert (folder / "deltacheck.toml").read_bytes() == before


def test_init_sees_a_project_in_pyproject(folder: Path) -> None:
    """[tool.deltacheck] in pyproject.toml is a project, too."""
    (folder / "pyproject.toml").write_text(
        '[tool.deltacheck.env.local]\nspark = "local"\nwarehouse = "w"\n', encoding="utf-8"
    )
    assert command("init").code == 2


def test_a_revision_is_an_empty_migration(project: Path) -> None:
    """Without --autogenerate the file is there to be filled by hand."""
    made = command("revision", "-m", "Amounts, at last", "--json")
    assert made.code == 0
    assert made.json["file"] == "versions/0001_amounts_at_last.py"
    assert made.json["operations"] == []
    assert (project / "versions/HEAD").read_text(encoding="utf-8") == "0001_amounts_at_last\n"
    second = command("revision", "-m", "and then", "--id", "abc")
    assert second.out.split() == ["made", "versions/abc_and_then.py"]


def test_autogenerate_writes_the_difference(project: Path) -> None:
    """What constraints/ says and no migration has becomes operations, and then nothing is left."""
    declare(project)
    made = command("revision", "--autogenerate", "-m", "orders", "--json").json
    assert [one["operation"] for one in made["operations"]] == ["set_not_null", "add_check"]
    assert made["operations"][1]["expression"] == "amount > 0"
    again = command("revision", "--autogenerate", "-m", "nothing")
    assert again.code == 0
    assert "Nothing to do" in again.out
    assert len(list((project / "versions").glob("*.py"))) == 1


def test_an_empty_difference_is_said_in_json_too(project: Path) -> None:
    """No file: null, and exit 0."""
    made = command("revision", "--autogenerate", "-m", "nothing", "--json")
    assert made.code == 0
    assert made.json["file"] is None


def test_a_revision_needs_a_message(project: Path) -> None:
    """A usage error is exit 2, and with --json a document."""
    assert command("revision").code == 2
    said = command("revision", "--json")
    assert said.code == 2
    assert said.json["error"]["code"] == "usage"


def test_autogenerate_stops_at_a_broken_rule(project: Path) -> None:
    """The file and the line are named, exit 1, and nothing is written."""
    declare(project, "table: shop.orders\nrules:\n  a:\n    check: rand() > 0\n")
    made = command("revision", "--autogenerate", "-m", "x")
    assert made.code == 1
    assert "orders.yml:4" in made.err
    assert not list((project / "versions").glob("*.py"))


def test_two_heads_are_listed_and_merged(project: Path) -> None:
    """After a fork: heads shows both, revision refuses with 6, merge joins them."""
    command("revision", "-m", "first")
    for name in ("a", "b"):
        (project / "versions" / f"{name}.py").write_text(
            f'"""{name}"""\nrevision = "{name}"\ndown_revision = "0001"\n\n\n'
            "def upgrade(op):\n    pass\n\n\ndef downgrade(op):\n    pass\n",
            encoding="utf-8",
        )
    assert command("heads", "--json").json["heads"] == ["a", "b"]
    refused = command("revision", "-m", "next")
    assert refused.code == 6
    assert "deltacheck merge" in refused.err
    merged = command("merge", "--json", "-m", "both").json
    assert merged["down_revision"] == ["a", "b"]
    assert command("heads", "--json").json["heads"] == [merged["revision"]]
    assert command("merge").code == 2


def test_history_is_newest_first(project: Path) -> None:
    """The head is marked, and each says what it follows."""
    assert "no migration yet" in command("history").out
    command("revision", "-m", "first")
    command("revision", "-m", "second")
    lines = command("history").out.splitlines()
    assert lines[1].split() == ["0002", "(head)", "0001", "second"]
    assert lines[2].split() == ["0001", "-", "first"]
    found = command("history", "--json").json["revisions"]
    assert [(one["revision"], one["head"]) for one in found] == [("0002", True), ("0001", False)]


def test_show_tells_what_a_migration_does(project: Path) -> None:
    """By id, by its beginning, or the head; a replaced expression with the one before."""
    declare(project)
    command("revision", "--autogenerate", "-m", "orders")
    declare(project, ORDERS.replace("amount > 0", "amount > 1"))
    command("revision", "--autogenerate", "-m", "more")
    shown = command("show")
    assert "amount > 1" in shown.out
    assert "was amount > 0" in shown.out
    first = command("show", "0001", "--json").json
    assert [one["rule"] for one in first["upgrade"]] == ["order_id_present", "amount_positive"]
    assert [one["operation"] for one in first["downgrade"]] == ["drop_check", "drop_not_null"]
    assert "ADD CONSTRAINT `amount_positive` CHECK (amount > 0)" in first["upgrade"][1]["statement"]
    unknown = command("show", "7")
    assert unknown.code == 2
    assert "no revision '7'" in unknown.err


def test_show_says_what_cannot_be_taken_back(project: Path) -> None:
    """A statement of the user's own has no reverse."""
    (project / "versions" / "0001.py").write_text(
        'revision = "0001"\ndown_revision = None\n\n\n'
        'def upgrade(op):\n    op.execute("OPTIMIZE shop.orders")\n\n\n'
        "def downgrade(op):\n    pass\n",
        encoding="utf-8",
    )
    shown = command("show", "0001")
    assert "OPTIMIZE shop.orders" in shown.out
    assert "taken back" in shown.out


def test_lint_fails_on_errors_alone(project: Path) -> None:
    """Notes are exit 0, an error is exit 1."""
    declare(project)
    assert command("lint").code == 0
    declare(project, "table: shop.orders\nrules:\n  a:\n    check: b = NULL\n")
    found = command("lint")
    assert found.code == 1
    assert "DC103" in found.out
    assert found.out.splitlines()[0].startswith("constraints/orders.yml:3")


def test_lint_lists_all_that_cannot_be_read(project: Path) -> None:
    """A malformed rule and a broken history are findings beside the others."""
    declare(project, "table: shop.orders\nrules:\n  a:\n    chek: b > 0\n")
    declare(project, "table: shop.items\nrules:\n  a:\n    check: rand() > 0\n", "items.yml")
    (project / "versions" / "0002.py").write_text("revision = 1\n", encoding="utf-8")
    found = command("lint", "--json")
    assert found.code == 1
    assert [one["code"] for one in found.json["findings"]] == ["DC001", "DC001", "DC002"]
    assert found.json["counts"]["error"] == 3


def test_lint_annotates_a_pull_request(project: Path) -> None:
    """--format github gives one workflow command per finding; --format json is --json."""
    declare(project)
    lines = command("lint", "--format", "github").out.splitlines()
    assert all(line.startswith("::notice file=constraints/orders.yml") for line in lines)
    as_json = json.loads(command("lint", "--format", "json").out)
    assert as_json == command("lint", "--json").json
    assert len(as_json["findings"]) == len(lines)


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ([], {"amount_positive", "order_id_here"}),
        (["--tag", "nightly"], {"amount_positive"}),
        (["--tag", "Money"], {"amount_positive", "order_id_here"}),
        (["--owner", "sales"], {"amount_positive"}),
        (["--owner", "platform"], {"order_id_here"}),
        (["--tag", "nightly", "--owner", "platform"], set()),
    ],
)
def test_lint_can_be_narrowed(project: Path, options: list[str], rules: set[str]) -> None:
    """By tags and owners of rules and of their tables."""
    declare(
        project,
        ORDERS.replace(
            "order_id_present:\n    not_null: order_id", "order_id_here:\n    check: id > 0"
        ),
    )
    found = command("lint", "--json", *options).json["findings"]
    assert {one["rule"] for one in found} == rules


def test_without_a_project_nothing_is_done(folder: Path) -> None:
    """Exit 2 with advice, as text and as JSON."""
    for words in (["history"], ["heads"], ["show"], ["lint"], ["merge"], ["revision", "-m", "x"]):
        refused = command(*words, "--json")
        assert refused.code == 2
        assert refused.json["error"]["code"] == "config"
        assert "deltacheck.toml" in command(*words).err
    assert list(folder.iterdir()) == []


WITHOUT_SPARK = """
import os, sys
os.chdir({folder!r})
from deltacheck.cli.app import main
try:
    main({words!r})
except SystemExit as ended:
    code = ended.code
loaded = sorted(name for name in sys.modules if name.split(".")[0] in ("pyspark", "py4j", "delta"))
assert not loaded, loaded
assert code == 0, code
"""


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["init", "elsewhere"],
        ["history"],
        ["heads"],
        ["show", "0001"],
        ["lint"],
        ["lint", "--json"],
        ["revision", "-m", "by hand"],
        ["revision", "-m", "more", "--autogenerate"],
        ["status", "--help"],
        ["upgrade", "--help"],
    ],
)
def test_commands_about_files_need_no_spark(project: Path, words: list[str]) -> None:
    """They import neither pyspark nor py4j nor delta: a process of their own shows it."""
    declare(project)
    command("revision", "--autogenerate", "-m", "orders")
    declare(project, ORDERS.replace("amount > 0", "amount > 1"))
    code, _, err = run_python(WITHOUT_SPARK.format(folder=str(project), words=words))
    assert code == 0, err
