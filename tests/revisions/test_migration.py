"""One migration file: what it may do, and how what is wrong with it is reported."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deltacheck.errors import DeclarationError, HistoryError
from deltacheck.revisions.migration import is_id, load_revision
from deltacheck.revisions.operations import DropConstraint
from deltacheck.revisions.source import checksum
from deltacheck.rules.model import Kind
from tests.revisions.chains import ORDERS, migration, write


def refused(folder: Path, source: str | bytes, name: str = "0001_x.py") -> HistoryError:
    """The error that a migration of this source gives."""
    path = write(folder, name, source)
    with pytest.raises(HistoryError) as caught:
        load_revision(path, {"0001_x", "0002_y", "_shared"})
    assert caught.value.paths == (path,)
    assert caught.value.exit_code == 6
    assert "nothing was done" in caught.value.message
    assert caught.value.hint
    return caught.value


def test_a_migration_becomes_a_value(tmp_path: Path) -> None:
    """With all that its file says."""
    source = migration(
        "0002", "0001", upgrade='op.drop_check("shop.orders", "a")', above='"""why"""'
    )
    path = write(tmp_path, "0002_x.py", source)
    revision = load_revision(path)
    assert revision.revision == "0002"
    assert revision.down_revision == ("0001",)
    assert revision.message == "why"
    assert revision.path == path
    assert revision.checksum == checksum(source)
    assert revision.upgrade == (DropConstraint(ORDERS, "a", Kind.CHECK),)
    assert revision.downgrade == ()


@pytest.mark.parametrize(
    ("written", "parents"),
    [("None", ()), ("'a'", ("a",)), ("('a', 'b')", ("a", "b")), ("['a', 'b']", ("a", "b"))],
)
def test_parents_are_none_one_or_several(
    tmp_path: Path, written: str, parents: tuple[str, ...]
) -> None:
    """As in Alembic."""
    source = migration("c").replace("down_revision = None", f"down_revision = {written}")
    assert load_revision(write(tmp_path, "c.py", source)).down_revision == parents


def _in_latin_1(source: bytes) -> bytes:
    return b"# coding: latin-1\n" + source.decode("utf-8").encode("latin-1")


@pytest.mark.parametrize(
    ("edited", "same"),
    [
        (lambda source: source.replace(b"\n", b"\r\n"), True),
        (lambda source: b"\xef\xbb\xbf" + source, True),
        (lambda source: b"# why\n" + source, True),
        (lambda source: b'"""a message"""\n' + source, True),
        (_in_latin_1, True),
        (lambda source: source.replace(b"> 0", b">= 0"), False),
    ],
    ids=["CRLF", "BOM", "comment", "docstring", "other encoding", "code"],
)
def test_the_checksum_is_of_the_code(
    tmp_path: Path, edited: Callable[[bytes], bytes], same: bool
) -> None:
    """However an editor or version control stores it."""
    source = migration(upgrade="op.execute(\"SELECT 'é' > 0\")").encode()
    before = load_revision(write(tmp_path, "a.py", source)).checksum
    after = load_revision(write(tmp_path, "b.py", edited(source))).checksum
    assert (before == after) is same


def test_syntax_errors_name_the_line(tmp_path: Path) -> None:
    """And what Python says."""
    error = refused(tmp_path, "revision = '1'\ndef upgrade(op:\n")
    assert f"{tmp_path}/0001_x.py:2: it is not Python" in error.message


@pytest.mark.parametrize(
    "source",
    [
        b"revision = '\xff'\n",
        b"a = 1\x00\n",
        b"# coding: no-such-code\n",
        b"x = " + b"(" * 3000 + b")" * 3000,
        b"x = " + b"-" * 100_000 + b"1",
        b"\x1f\x8b\x08\x00compressed",
    ],
    ids=["not UTF-8", "null", "unknown encoding", "too deep", "much too deep", "not text"],
)
def test_what_is_not_python_is_refused(tmp_path: Path, source: bytes) -> None:
    """Whatever is in the file."""
    assert "it is not Python" in refused(tmp_path, source).message


@pytest.mark.parametrize(
    ("removed", "added", "message", "hint"),
    [
        ("revision = '0001'", "", "it has no revision", "down_revision"),
        ("down_revision = None", "", "it has no down_revision", "upgrade(op)"),
        ("def upgrade", "def up", "it has no upgrade", "downgrade(op)"),
        ("def downgrade", "def down", "it has no downgrade", "upgrade(op)"),
        ("'0001'", "1", ":2: revision is int", 'a text, such as "0002"'),
        ("None", "1", ":3: down_revision is int", "the id before it"),
        ("None", "('a', 2)", ":3: down_revision is tuple", "the id before it"),
        ("'0001'", "'a b'", ":2: 'a b' is not an id", "letters, digits"),
        ("'0001'", "'head'", ":2: 'head' is not an id", "none of head"),
        ("def upgrade(op):", "upgrade = 3\nif 1:", ":4: upgrade is int", "a function that takes"),
        ("def upgrade", "async def upgrade", ":4: upgrade is not a plain", "def upgrade(op):"),
        ("    pass", "    yield", ":4: upgrade is not a plain function", "def upgrade(op):"),
    ],
)
def test_what_is_missing_or_of_the_wrong_kind_is_named(
    tmp_path: Path, removed: str, added: str, message: str, hint: str
) -> None:
    """With its line and what it should be."""
    error = refused(tmp_path, migration().replace(removed, added, 1))
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("raise RuntimeError('boom')", "RuntimeError: boom"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("import sys; sys.exit('bye')", "SystemExit: bye"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("1 / 0", "ZeroDivisionError"),
        ("undefined", "NameError"),
        ("import no_such_module_anywhere", "ModuleNotFoundError"),
        ("op = 1; op.x", "AttributeError"),
        ("(lambda f: f(f))(lambda f: f(f))", "RecursionError"),
        ("exec('raise ValueError(1)')", "ValueError: 1"),
    ],
)
def test_an_exception_is_reported_with_its_line(
    tmp_path: Path, statement: str, message: str
) -> None:
    """At the top of the file and in a function alike; nothing ends the process."""
    at_top = refused(tmp_path, migration(above=statement))
    assert f"0001_x.py:1: it raised {message}" in at_top.message
    inside = refused(tmp_path, migration(downgrade=statement))
    assert f"0001_x.py:7: downgrade(op) raised {message}" in inside.message


def test_the_line_is_the_migrations_own(tmp_path: Path) -> None:
    """Not one in a library that it calls; the innermost where one function calls another."""
    source = migration(
        upgrade="helper()", above="def helper():\n    import json\n    json.loads('{')"
    )
    assert "0001_x.py:3: upgrade(op) raised json" in refused(tmp_path, source).message


def test_a_wrong_argument_of_op_is_reported_with_its_line(tmp_path: Path) -> None:
    """As an error about the rule, with its file."""
    path = write(tmp_path, "a.py", migration(upgrade='op.add_check("t", "x", "a > 0", gate="x")'))
    with pytest.raises(DeclarationError) as caught:
        load_revision(path)
    assert (caught.value.path, caught.value.line) == (path, 5)
    assert str(caught.value).startswith(f"{path}:5: 'x' is not a gate.")


def test_a_missing_argument_of_op_is_reported_with_its_line(tmp_path: Path) -> None:
    """In Python's words."""
    error = refused(tmp_path, migration(upgrade='op.add_check("t", "x")'))
    assert "0001_x.py:5: upgrade(op) raised TypeError" in error.message
    assert "'expression'" in error.message


@pytest.mark.parametrize(
    ("call", "hint"),
    [("op.add_chek", "Did you mean op.add_check?"), ("op.zzz", "op has: add_check, drop_check")],
)
def test_an_unknown_operation_gets_advice(tmp_path: Path, call: str, hint: str) -> None:
    """The close one, else all."""
    assert hint in refused(tmp_path, migration(upgrade=f"{call}()")).hint


@pytest.mark.parametrize(
    "statement",
    ["import _shared", "from _shared import x", "from . import x", "import os, _shared.more"],
)
def test_a_migration_does_not_import_its_siblings(tmp_path: Path, statement: str) -> None:
    """What was applied must not change with another file; it is refused before it runs."""
    write(tmp_path, "_shared.py", "raise AssertionError('was imported')")
    error = refused(tmp_path, migration(upgrade=statement))
    assert ":5: it imports" in error.message
    assert "stands alone" in error.hint


def test_running_a_migration_leaves_the_process_as_it_was(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No byte code, no module, no path, no working directory, nothing on standard output."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write(elsewhere, "library_of_mine.py", "x = 1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = write(
        tmp_path,
        "0001_x.py",
        migration(
            above=f"import os, sys\nsys.path.insert(0, {str(elsewhere)!r})\n"
            f"import library_of_mine\nos.chdir({str(elsewhere)!r})\nprint('at the top')",
            upgrade="print('inside'); os.chdir('/')",
        ),
    )
    modules, search = set(sys.modules), list(sys.path)
    load_revision(path)
    sys.modules.pop("library_of_mine")
    assert set(sys.modules) == modules
    assert sys.path == search
    assert Path.cwd() == tmp_path
    assert sys.dont_write_bytecode is False
    assert sorted(one.name for one in tmp_path.rglob("*")) == [
        "0001_x.py",
        "elsewhere",
        "library_of_mine.py",
    ]
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "at the top\ninside\n"


def test_a_migration_runs_as_a_file_of_its_own(tmp_path: Path) -> None:
    """Not with the future statements of deltacheck's modules, and with its own name."""
    above = (
        "def f(x: 1): pass\nassert f.__annotations__ == {'x': 1}\nassert __file__.endswith('m.py')"
    )
    assert load_revision(write(tmp_path, "m.py", migration(above=above))).revision == "0001"


def test_ctrl_c_is_not_swallowed(tmp_path: Path) -> None:
    """It is the user's, not the migration's."""
    path = write(tmp_path, "a.py", migration(upgrade="raise KeyboardInterrupt"))
    with pytest.raises(KeyboardInterrupt):
        load_revision(path)


def test_a_deleted_working_directory_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The history of a project can be read from anywhere."""
    gone = tmp_path / "gone"
    gone.mkdir()
    path = write(tmp_path, "a.py", migration())
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load_revision(path).revision == "0001"


@pytest.mark.parametrize("kind", ["folder", "pipe", "dangling link"])
def test_what_is_not_a_file_is_refused(tmp_path: Path, kind: str) -> None:
    """Without waiting for a pipe that nobody writes to."""
    path = tmp_path / "0001_x.py"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(HistoryError, match=r"0001_x.py cannot be read: it is not a file"):
        load_revision(path)


@pytest.mark.parametrize(
    "name", ["two\nlines.py", "a b.py", "schön.py", "-rf.py", "%s{}.py", "'\".py", "\udcff.py"]
)
def test_any_file_name_works_and_is_printable_in_errors(tmp_path: Path, name: str) -> None:
    """Even one that no terminal can show."""
    path = tmp_path / name
    try:
        path.write_text(migration(), encoding="utf-8")
    except (OSError, UnicodeEncodeError):
        pytest.skip("this file system cannot have such a name")
    assert load_revision(path).revision == "0001"
    path.write_text(migration(upgrade="1 / 0"), encoding="utf-8")
    with pytest.raises(HistoryError, match=r":5: upgrade\(op\) raised ZeroDivisionError") as caught:
        load_revision(path)
    assert caught.value.message.isprintable()
    assert caught.value.message.encode("utf-8")


@pytest.mark.parametrize("text", ["0001", "a", "ae1027a6acf", "2024-01-02.orders", "x_1"])
def test_ids(text: str) -> None:
    """Numbers, hexadecimal, dates, words."""
    assert is_id(text)


@pytest.mark.parametrize(
    "text", ["", "+1", "-1", "head", "HEAD", "heads", "base", "a b", "a/b", "é", "_a", "a\n", ".."]
)
def test_not_ids(text: str) -> None:
    """What a target, a path or a shell would take for something else."""
    assert not is_id(text)
