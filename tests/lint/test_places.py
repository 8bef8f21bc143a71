"""Where findings belong, and where a comment silences them."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltacheck.lint.places import Place, Source

RULES = Source(
    """\
table: t
rules:
  # deltacheck: ignore[DC101]
  first:
    check: a > 0  # deltacheck: ignore[dc102, DC103]

    # deltacheck: ignore[DC104]
    description: >-
      words
  # deltacheck: ignore
  second: {check: b > 0}
  third: {check: c > 0}
  fourth:
    check: a = '#deltacheck: ignore'
gate: 5%  # deltacheck: ignore
"""
)


def test_an_entry_ends_where_the_next_begins() -> None:
    assert RULES.entry(4, 3) == Place(4, 9, 3)
    assert RULES.entry(11, 3) == Place(11, 11, 3)
    assert RULES.entry(13, 3) == Place(13, 14, 3)


@pytest.mark.parametrize(
    ("line", "ignored"),
    [
        (4, frozenset({"DC101", "DC102", "DC103", "DC104"})),
        (11, None),
        (12, frozenset()),
        (13, frozenset()),
    ],
)
def test_a_comment_counts_in_the_entry_and_on_the_line_above(
    line: int, ignored: frozenset[str] | None
) -> None:
    assert RULES.ignored(RULES.entry(line, 3)) == ignored


def test_a_comment_behind_the_entry_above_is_not_this_entrys() -> None:
    source = Source("rules:\n  a: {check: x}  # deltacheck: ignore\n  b: {check: y}\n")

    assert source.ignored(source.entry(2, 3)) is None
    assert source.ignored(source.entry(3, 3)) == frozenset()


def test_a_comment_may_give_its_reason() -> None:
    source = Source("a: 1  # NULL is meant here, deltacheck: ignore[DC101] (see the wiki)\n")

    assert source.ignored(Place(1, 1)) == frozenset({"DC101"})


def test_a_file_that_is_gone_has_no_comments(tmp_path: Path) -> None:
    source = Source.read(tmp_path / "gone.yml")

    assert source.ignored(source.entry(3, 1)) == frozenset()


def test_a_call_is_found_by_the_constraints_name_in_upgrade_only() -> None:
    source = Source(
        "def downgrade(op):\n"
        '    op.add_check("t", "a_ok", "a > 0")\n'
        "def upgrade(op):\n"
        '    op.set_not_null("t", "a.b")\n'
        "    op.add_check(\n"
        '        "t", name="a_ok", expression="a > 0"\n'
        "    )\n"
    )

    assert source.call("a_ok") == Place(5, 7, 5)
    assert source.call("a_b_not_null") == Place(4, 4, 5)
    assert source.call("made_in_a_loop") == Place(3, 3, 1)
    assert source.function("downgrade") == Place(1, 1, 1)


def test_what_is_not_python_has_no_calls() -> None:
    assert Source("def (").call("a_ok") is None
