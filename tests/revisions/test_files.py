"""The folder of migrations: reading it, and adding to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltacheck.errors import HistoryError, UsageError
from deltacheck.names import TableName
from deltacheck.revisions.files import load_history, slug, write_merge, write_revision
from deltacheck.revisions.operations import AddConstraint
from tests.revisions.chains import check, ids, migration, not_null, write


def listing(folder: Path) -> list[str]:
    """The names in a folder."""
    return sorted(path.name for path in folder.iterdir())


def head_of(folder: Path) -> str:
    """What HEAD holds."""
    return (folder / "HEAD").read_text(encoding="utf-8")


def test_migrations_are_read_and_put_in_order(tmp_path: Path) -> None:
    """By their parents; their files' names say nothing."""
    write(tmp_path, "b.py", migration("0001", None))
    write(tmp_path, "a.py", migration("0002", "0001"))
    assert ids(load_history(tmp_path).revisions) == ["0001", "0002"]


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    """Hidden and private ones, an editor's lock, notes, byte code."""
    write(tmp_path, "0001_x.py", migration())
    for name in ("__init__.py", "_shared.py", "._0001_x.py", "README.md", "0002.py~", "x.pyc"):
        write(tmp_path, name, "this is not Python")
    (tmp_path / ".#0001_x.py").symlink_to("somebody@somewhere.1234")
    assert ids(load_history(tmp_path).revisions) == ["0001"]


def test_a_folder_that_is_not_there_holds_no_migration(tmp_path: Path) -> None:
    """Version control does not keep empty folders. It is not made, either."""
    assert load_history(tmp_path / "versions").revisions == ()
    assert listing(tmp_path) == []


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """With the setting that says where the folder is."""
    path = write(tmp_path, "versions", "")
    with pytest.raises(HistoryError, match=r"versions cannot be read: Not a directory") as caught:
        load_history(path)
    assert "deltacheck.toml" in caught.value.hint


def test_reading_writes_nothing(tmp_path: Path) -> None:
    """No byte code, no HEAD."""
    write(tmp_path, "0001_x.py", migration())
    load_history(tmp_path)
    assert listing(tmp_path) == ["0001_x.py"]


def test_a_migration_cannot_import_the_folder_itself(tmp_path: Path) -> None:
    """Which Python may find as a namespace from the project's folder."""
    folder = tmp_path / "versions"
    folder.mkdir()
    write(folder, "0001_x.py", migration(upgrade="from versions import other"))
    with pytest.raises(HistoryError, match="it imports versions, another file"):
        load_history(folder)


def test_two_copies_of_a_file_are_named(tmp_path: Path) -> None:
    """A copy made by a file manager."""
    write(tmp_path, "0001_x.py", migration())
    write(tmp_path, "0001_x (copy).py", migration())
    with pytest.raises(HistoryError, match=r"0001_x \(copy\).py and 0001_x.py both have the id"):
        load_history(tmp_path)


def test_tables_may_depend_on_the_environment(tmp_path: Path) -> None:
    """The same file gives other tables with other variables, and the same checksum."""
    write(tmp_path, "a.py", migration(upgrade='op.add_check("${CAT}.a.b", "x", "a > 0")'))
    seen = [load_history(tmp_path, variables={"CAT": cat}).revisions[0] for cat in ("dev", "prod")]
    tables = [one.upgrade[0].table for one in seen]
    assert tables == [TableName.parse("dev.a.b"), TableName.parse("prod.a.b")]
    assert seen[0].checksum == seen[1].checksum


@pytest.mark.parametrize("text", ["0002_y\n", "0002_y", "0002\n", "0002_y\r\n"])
def test_head_names_the_newest_file_or_id(tmp_path: Path, text: str) -> None:
    """However its line ends."""
    write(tmp_path, "0001_x.py", migration())
    write(tmp_path, "0002_y.py", migration("0002", "0001"))
    write(tmp_path, "HEAD", text)
    assert load_history(tmp_path).heads == ("0002",)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "0001_x\n",
            "says 0001_x, but the newest migration is 0002_y.py",
            "meant to be there, wri",
        ),
        ("0001\n", "says 0001, but the newest", "write 0002_y into it"),
        ("0003_z\n", "says 0003_z, but the newest", "If a file got lost, get it back"),
        ("", "is empty, but the newest", "write 0002_y into it"),
        (
            "<<<<<<< HEAD\n0002_y\n=======\n0002_z\n>>>>>>> other\n",
            "holds a conflict of two branches",
            "write 0002_y into it",
        ),
        ("\x1b[2J", "says \\x1b[2J, but", "write 0002_y into it"),
        (b"\xff", "cannot be read", "the newest migration"),
    ],
)
def test_a_head_that_disagrees_is_refused_with_the_remedy(
    tmp_path: Path, text: str | bytes, message: str, hint: str
) -> None:
    """It is what notices a lost file and a merge that nobody looked at."""
    write(tmp_path, "0001_x.py", migration())
    write(tmp_path, "0002_y.py", migration("0002", "0001"))
    path = write(tmp_path, "HEAD", text)
    with pytest.raises(HistoryError) as caught:
        load_history(tmp_path)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.paths == (path,)


def test_a_head_without_migrations_is_refused(tmp_path: Path) -> None:
    """All of them got lost."""
    write(tmp_path, "HEAD", "0001_x\n")
    with pytest.raises(HistoryError, match="there is no migration") as caught:
        load_history(tmp_path)
    assert "get it back" in caught.value.hint


def test_a_first_and_a_second_migration_are_written(tmp_path: Path) -> None:
    """Numbered, named after their message, and HEAD with them; the folder is made."""
    folder = tmp_path / "versions"
    first = write_revision(folder, load_history(folder), "Amounts are positive", [check("a")])
    second = write_revision(folder, load_history(folder), "ids are there", [not_null("id")])
    assert [first.name, second.name] == ["0001_amounts_are_positive.py", "0002_ids_are_there.py"]
    assert listing(folder) == [first.name, second.name, "HEAD"]
    assert head_of(folder) == "0002_ids_are_there\n"
    history = load_history(folder)
    assert ids(history.revisions) == ["0001", "0002"]
    assert history.revisions[1].down_revision == ("0001",)
    assert history.revisions[1].message == "ids are there"
    added = history.revisions[1].upgrade[0]
    assert isinstance(added, AddConstraint)
    assert added.column == "id"


def test_two_branches_that_both_add_a_migration_differ_in_head(tmp_path: Path) -> None:
    """Even where both have given it the next number: that is the conflict."""
    lines = []
    for name in ("one", "other"):
        folder = tmp_path / name
        write_revision(folder, load_history(folder), f"the {name}")
        lines.append(head_of(folder))
    assert lines[0] != lines[1]


def test_ids_of_another_kind_go_on_in_their_own_way(tmp_path: Path) -> None:
    """Twelve hexadecimal digits."""
    write(tmp_path, "ae1027a6acf2_x.py", migration("ae1027a6acf2"))
    path = write_revision(tmp_path, load_history(tmp_path), "")
    assert len(path.stem) == 12
    assert int(path.stem, 16) >= 0
    assert load_history(tmp_path).heads == (path.stem,)


def test_an_id_can_be_given(tmp_path: Path) -> None:
    """And is in the file's name."""
    path = write_revision(tmp_path, load_history(tmp_path), "x y", revision="2024-01")
    assert path.name == "2024-01_x_y.py"
    assert load_history(tmp_path).heads == ("2024-01",)


@pytest.mark.parametrize(
    ("revision", "message"), [("0001", "0001_x.py has the id 0001 already"), ("a b", "not an id")]
)
def test_an_id_that_is_taken_or_cannot_be_one_is_refused(
    tmp_path: Path, revision: str, message: str
) -> None:
    """And nothing is written."""
    write(tmp_path, "0001_x.py", migration())
    with pytest.raises(UsageError, match=message):
        write_revision(tmp_path, load_history(tmp_path), "y", revision=revision)
    assert listing(tmp_path) == ["0001_x.py"]


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    """Even one that is no migration of this history."""
    write(tmp_path, "0009_x.py", migration())
    history = load_history(tmp_path)
    taken = write(tmp_path, "0002_y.py", "mine")
    with pytest.raises(UsageError, match=r"0002_y.py cannot be written: File exists"):
        write_revision(tmp_path, history, "y")
    assert taken.read_text(encoding="utf-8") == "mine"
    assert listing(tmp_path) == ["0002_y.py", "0009_x.py"]


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    """As an error of the command, not of Python."""
    history = load_history(tmp_path)
    with pytest.raises(UsageError, match=r"cannot be written: Not a directory"):
        write_revision(write(tmp_path, "file", "") / "versions", history, "x")


def test_a_fork_is_merged(tmp_path: Path) -> None:
    """HEAD may say what it likes until then."""
    write(tmp_path, "a.py", migration("0001"))
    write(tmp_path, "b.py", migration("0002b", "0001"))
    write(tmp_path, "c.py", migration("0002c", "0001"))
    write(tmp_path, "HEAD", "<<<<<<<\nb\n=======\nc\n>>>>>>>\n")
    fork = load_history(tmp_path)
    assert fork.heads == ("0002b", "0002c")
    with pytest.raises(HistoryError, match="The history has 2 heads"):
        write_revision(tmp_path, fork, "x")
    path = write_merge(tmp_path, fork, revision="0003")
    merged = load_history(tmp_path)
    assert merged.heads == ("0003",)
    assert merged.revisions[-1].down_revision == ("0002b", "0002c")
    assert merged.revisions[-1].message == "join 0002b and 0002c"
    assert head_of(tmp_path) == f"{path.stem}\n" == "0003_merge\n"


@pytest.mark.parametrize(("sources", "what"), [([], "no revision"), ([migration()], "one head")])
def test_without_a_fork_there_is_nothing_to_merge(
    tmp_path: Path, sources: list[str], what: str
) -> None:
    """A usage error, exit code 2."""
    for source in sources:
        write(tmp_path, "0001_x.py", source)
    with pytest.raises(UsageError, match=what) as caught:
        write_merge(tmp_path, load_history(tmp_path))
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Amounts > 0!", "amounts_0"),
        ("", ""),
        ("日本", ""),
        ("../../etc/passwd", "etc_passwd"),
        ("a\nb", "a_b"),
        ("one two three four five six seven eight nine", "one_two_three_four_five_six_seven_eight"),
        ("x" * 50, "x" * 40),
    ],
)
def test_the_slug_is_safe_in_any_file_system(message: str, expected: str) -> None:
    """Whatever the message holds."""
    assert slug(message) == expected
