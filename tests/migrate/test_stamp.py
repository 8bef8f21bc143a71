"""What stamp appends to the journal, as values; the command itself is in tests/cli."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deltacheck.errors import HistoryError, UnknownTargetError
from deltacheck.ledger.journal import APPLIED, REVERTED, REVISION, STAMPED, Entry, Journal, now
from deltacheck.migrate.stamp import changes, current_of, wanted_at
from deltacheck.revisions.graph import History, Revision, history_of


def chain(*names: str) -> History:
    """Revisions, each after the one before."""
    parents = [(), *((name,) for name in names)]
    return history_of(
        Revision(name, parent, checksum=name) for name, parent in zip(names, parents, strict=False)
    )


def journal(*entries: tuple[str, str]) -> Journal:
    """A journal of revisions and their states, one run for each."""
    return Journal(
        "j",
        tuple(
            Entry(token, 0, REVISION, f"r{token}", now(), revision=name, state=state, checksum=name)
            for token, (name, state) in enumerate(entries, 1)
        ),
    )


def after(before: Journal, wanted: tuple[Revision, ...]) -> Journal:
    """The journal with what stamp appends."""
    new = [
        replace(entry, token=99, seq=place, run="stamp")
        for place, entry in enumerate(changes(before, wanted))
    ]
    return Journal("j", (*before.entries, *new))


@pytest.mark.parametrize(
    "before",
    [
        journal(),
        journal(("a", APPLIED)),
        journal(("a", APPLIED), ("b", APPLIED), ("c", APPLIED)),
        journal(("a", APPLIED), ("b", APPLIED), ("b", REVERTED)),
        journal(("c", APPLIED), ("a", APPLIED)),
        journal(("x", APPLIED), ("b", STAMPED)),
    ],
)
@pytest.mark.parametrize("target", ["base", "a", "b", "head"])
def test_the_journal_says_what_was_asked_for(before: Journal, target: str) -> None:
    """Whatever it said before; and saying it again appends nothing."""
    wanted = wanted_at(chain("a", "b", "c"), target)
    result = after(before, wanted)
    assert set(result.applied) == {one.revision for one in wanted}
    assert current_of(result) == (wanted[-1].revision if wanted else None)
    assert changes(result, wanted) == []


def test_no_more_is_appended_than_needed() -> None:
    """What is applied already stays as the run that applied it left it."""
    before = journal(("a", APPLIED), ("b", APPLIED), ("c", APPLIED))
    wanted = wanted_at(chain("a", "b", "c", "d"), "head")
    assert [(one.revision, one.state) for one in changes(before, wanted)] == [("d", STAMPED)]


def test_an_edited_file_is_stamped_anew() -> None:
    """With the checksum that it has now."""
    before = journal(("a", APPLIED))
    edited = Revision("a", checksum="other")
    assert [one.checksum for one in changes(before, [edited])] == ["other"]


def test_a_branch_is_stamped_without_the_other() -> None:
    """After a fork, only what the revision builds on counts."""
    forked = history_of(
        [Revision("a"), Revision("b", ("a",)), Revision("c", ("a",)), Revision("m", ("b", "c"))]
    )
    assert [one.revision for one in wanted_at(forked, "c")] == ["a", "c"]
    assert [one.revision for one in wanted_at(forked, "m")] == ["a", "b", "c", "m"]


def test_what_cannot_be_stamped() -> None:
    """An unknown revision, and the head where there are two."""
    with pytest.raises(UnknownTargetError):
        wanted_at(chain("a"), "z")
    with pytest.raises(HistoryError):
        wanted_at(history_of([Revision("a"), Revision("b")]), "head")
