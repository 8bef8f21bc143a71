"""The chain of revisions: order, heads, and the way from one point to another."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltacheck.errors import HistoryError, UnknownTargetError
from deltacheck.revisions.graph import History, Revision, history_of, next_number
from tests.revisions.chains import history, ids, revisions_of


def test_a_chain_is_in_order_from_base_to_head() -> None:
    """Whatever order the files were read in."""
    shuffled = history_of(reversed(revisions_of("a -> b -> c")))
    assert ids(shuffled.revisions) == ["a", "b", "c"]
    assert shuffled.heads == ("c",)


def test_ids_need_not_be_in_order() -> None:
    """Parents decide, not the alphabet."""
    assert ids(history("z -> m -> a").revisions) == ["z", "m", "a"]


def test_an_empty_history_has_no_head() -> None:
    """A new project is not an error."""
    empty = history_of([])
    assert empty.head() is None
    assert empty.to_apply([], "head") == ()
    assert empty.to_revert([], "base") == ()


def test_the_head_is_the_newest_revision() -> None:
    """One head, and it can be asked for by that word."""
    chain = history("a -> b")
    assert chain.head() == chain.get("head") == chain.get("b")


def test_two_heads_can_be_listed_but_not_applied() -> None:
    """A fork is shown by `heads`, joined by `merge`, and refused by everything that runs."""
    fork = history("a -> b", "a -> c")
    assert fork.heads == ("b", "c")
    with pytest.raises(HistoryError) as caught:
        fork.head()
    assert "b (b.py) and c (c.py)" in caught.value.message
    assert "deltacheck merge" in caught.value.hint
    assert [path.name for path in caught.value.paths] == ["b.py", "c.py"]
    for target in ("head", "+1", "a"):
        with pytest.raises(HistoryError):
            fork.to_apply([], target)


def test_a_merge_joins_two_heads() -> None:
    """Both branches come before the merge."""
    merged = history("a -> b", "a -> c", "b, c -> d")
    assert ids(merged.revisions) == ["a", "b", "c", "d"]
    assert merged.heads == ("d",)


def test_a_missing_parent_is_named_with_the_file_that_wants_it() -> None:
    """And with the id that was probably meant."""
    with pytest.raises(HistoryError, match=r"b.py builds on the revision 'aaac'") as caught:
        history_of([Revision("aaab"), *revisions_of("aaac -> b")[1:]])
    assert caught.value.hint == "Did you mean aaab?"
    assert caught.value.exit_code == 6


def test_a_circle_is_named_without_the_files_that_only_hang_on_it() -> None:
    """The way into the circle, and what follows it, are not to blame."""
    with pytest.raises(HistoryError, match=r"^b.py, c.py and d.py build on each other") as caught:
        history("a -> b -> c -> d -> b", "d -> e")
    assert len(caught.value.paths) == 3


def test_a_revision_that_follows_itself_is_a_circle() -> None:
    """The smallest circle has its own words."""
    with pytest.raises(HistoryError, match=r"a.py names itself as its down_revision"):
        history("a -> a")


def test_a_parent_named_twice_is_refused() -> None:
    """It is a slip in a merge."""
    with pytest.raises(HistoryError, match=r"names a parent twice"):
        history_of([Revision("a"), Revision("b", ("a", "a"))])


def test_two_files_with_one_number_get_the_way_out() -> None:
    """The usual accident: two people made the next migration."""
    first, second = revisions_of("0002")[0], revisions_of("0002")[0]
    with pytest.raises(HistoryError, match=r"both have the id 0002") as caught:
        history_of([first, second])
    assert 'revision = "0003" and down_revision = "0002"' in caught.value.hint
    assert len(caught.value.paths) == 2


def test_two_files_with_one_id_of_another_kind_are_refused() -> None:
    """A copied file."""
    with pytest.raises(HistoryError, match=r"both have the id abc") as caught:
        history_of(revisions_of("abc") + revisions_of("abc"))
    assert "an id of its own" in caught.value.hint


@pytest.mark.parametrize("text", ["ab1", "ab1c", "ab1cd"])
def test_a_prefix_names_a_revision_where_only_one_begins_so(text: str) -> None:
    """As in Alembic and git."""
    assert history("ab1cd -> ab2cd").get(text).revision == "ab1cd"


def test_a_whole_id_beats_those_that_it_begins() -> None:
    """Else it could not be named at all."""
    assert history("a -> ab -> abc").get("ab").revision == "ab"


def test_an_ambiguous_prefix_lists_what_it_could_be() -> None:
    """Exit code 2."""
    with pytest.raises(UnknownTargetError, match=r"'ab' could be any of ab1 and ab2") as caught:
        history("ab1 -> ab2").get("ab")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("chain", "text", "hint"),
    [
        ("0001 -> 0002", "2", "Did you mean 0002?"),
        ("ab12 -> cd34", "cd43", "Did you mean cd34?"),
        ("0001 -> 0002", "zzz", "There are 0001 to 0002: `deltacheck history` lists them."),
        ("0001 -> 0002", "", "There are 0001 to 0002: `deltacheck history` lists them."),
    ],
)
def test_an_unknown_revision_gets_advice(chain: str, text: str, hint: str) -> None:
    """What is close, else where to look."""
    with pytest.raises(UnknownTargetError, match=r"There is no revision") as caught:
        history(chain).get(text)
    assert caught.value.hint == hint


def test_in_an_empty_history_no_target_is_known() -> None:
    """The advice is to make a revision."""
    with pytest.raises(UnknownTargetError, match=r"There is no revision 'x'") as caught:
        History().get("x")
    assert "deltacheck revision" in caught.value.hint


@pytest.mark.parametrize(
    ("applied", "target", "expected"),
    [
        ("", "head", "abcd"),
        ("ab", "head", "cd"),
        ("abcd", "head", ""),
        ("", "+1", "a"),
        ("a", "+2", "bc"),
        ("", "c", "abc"),
        ("a", "c", "bc"),
        ("abc", "a", ""),
        ("acd", "head", "b"),
    ],
)
def test_an_upgrade_runs_what_leads_to_the_target_and_is_not_applied(
    applied: str, target: str, expected: str
) -> None:
    """The last case: one that came late, by a merged branch."""
    assert ids(history("a -> b -> c -> d").to_apply(applied, target)) == list(expected)


@pytest.mark.parametrize(
    ("applied", "target", "expected"),
    [
        ("abcd", "base", "dcba"),
        ("", "base", ""),
        ("abcd", "-1", "d"),
        ("abc", "-2", "cb"),
        ("abcd", "b", "dc"),
        ("abcd", "d", ""),
    ],
)
def test_a_downgrade_takes_back_the_newest_first(applied: str, target: str, expected: str) -> None:
    """Down to the target, which stays."""
    assert ids(history("a -> b -> c -> d").to_revert(applied, target)) == list(expected)


def test_a_downgrade_into_a_branch_leaves_only_that_branch() -> None:
    """What the target does not build on goes, the other branch included."""
    merged = history("a -> b", "a -> c", "b, c -> d")
    assert ids(merged.to_revert("abcd", "b")) == ["d", "c"]


@pytest.mark.parametrize(
    ("applied", "target", "message"),
    [
        ("", "-1", "-1 goes back; nothing was done. Use `deltacheck downgrade -1`."),
        ("", "base", "base goes back"),
        ("ab", "+2", r"\+2 asks for 2 revisions, and 1 is pending"),
        ("abc", "+1", r"\+1 asks for 1 revision, and none is pending"),
        ("a", "+0", r"\+0 asks for 0 revisions, and 2 are pending"),
        ("a", "x", "There is no revision 'x'"),
        ("a", "+x", "There is no revision"),
    ],
)
def test_an_upgrade_target_that_makes_no_sense_is_a_usage_error(
    applied: str, target: str, message: str
) -> None:
    """Rather than a surprising default."""
    with pytest.raises(UnknownTargetError, match=message):
        history("a -> b -> c").to_apply(applied, target)


@pytest.mark.parametrize(
    ("applied", "target", "message"),
    [
        ("a", "+1", r"\+1 goes forward"),
        ("a", "head", "head goes forward"),
        ("ab", "-3", "-3 asks for 3 revisions, and 2 are applied"),
        ("a", "c", "Revision c is not applied, so there is nothing to go back to"),
    ],
)
def test_a_downgrade_target_that_makes_no_sense_is_a_usage_error(
    applied: str, target: str, message: str
) -> None:
    """And says which command was meant."""
    with pytest.raises(UnknownTargetError, match=message):
        history("a -> b -> c").to_revert(applied, target)


def test_an_applied_revision_without_a_file_stops_both_ways() -> None:
    """A deploy from the wrong branch must not go on."""
    chain = history("a -> b")
    with pytest.raises(HistoryError, match=r"Revision x is applied to this environment, but no"):
        chain.to_apply(["a", "x"], "head")
    with pytest.raises(HistoryError, match=r"Revisions x and y are applied") as caught:
        chain.to_revert(["a", "y", "x"], "base")
    assert "version control" in caught.value.hint


@pytest.mark.parametrize(
    ("ids_", "expected"),
    [
        ([], "0001"),
        (["0009"], "0010"),
        (["9999"], "10000"),
        (["1"], "0002"),
        (["000001"], "000002"),
    ],
)
def test_the_next_number_keeps_the_width(ids_: list[str], expected: str) -> None:
    """So that a listing of the folder is in order."""
    assert next_number(ids_) == expected


@st.composite
def graphs(draw: st.DrawFn) -> list[Revision]:
    """Any graph without circles, its ids in an order that says nothing."""
    names = draw(st.permutations([f"r{number}" for number in range(draw(st.integers(1, 12)))]))
    return [
        Revision(
            name,
            tuple(draw(st.lists(st.sampled_from(names[:place]), max_size=3, unique=True)))
            if place
            else (),
        )
        for place, name in enumerate(names)
    ]


@given(graphs(), st.randoms(use_true_random=False))
def test_parents_come_before_children_in_an_order_that_is_stable(
    revisions: list[Revision], shuffler: random.Random
) -> None:
    """For any graph, read in any order."""
    ordered = history_of(revisions)
    seen: set[str] = set()
    for one in ordered.revisions:
        assert seen.issuperset(one.down_revision)
        seen.add(one.revision)
    shuffler.shuffle(revisions)
    assert history_of(revisions) == ordered


@given(graphs())
def test_heads_are_what_nothing_follows(revisions: list[Revision]) -> None:
    """For any graph."""
    parents = {parent for one in revisions for parent in one.down_revision}
    expected = {one.revision for one in revisions} - parents
    assert set(history_of(revisions).heads) == expected


@given(graphs(), st.data())
def test_upgrades_and_downgrades_agree(revisions: list[Revision], data: st.DataObject) -> None:
    """Upgrading to a target applies its ancestry; going back to a point and forward again
    restores what was there."""
    top = Revision("top", history_of(revisions).heads)
    graph = history_of([*revisions, top])
    target = data.draw(st.sampled_from(ids(graph.revisions)))
    applied = set(ids(graph.to_apply((), target)))
    assert applied == graph.ancestry(target)
    assert graph.to_apply(applied, target) == ()

    back = data.draw(st.sampled_from(sorted(applied)))
    reverted = ids(graph.to_revert(applied, back))
    left = applied - set(reverted)
    assert left == graph.ancestry(back)
    assert ids(graph.to_apply(left, target)) == reverted[::-1]
    assert graph.to_revert(applied, "base")[::-1] == graph.to_apply((), target)


@given(graphs(), st.data())
def test_steps_add_up(revisions: list[Revision], data: st.DataObject) -> None:
    """+1 again and again is head, and -1 undoes the last +1 of a chain."""
    graph = history_of([*revisions, Revision("top", history_of(revisions).heads)])
    applied: list[str] = []
    while len(applied) < len(graph.revisions):
        applied += ids(graph.to_apply(applied, "+1"))
        assert ids(graph.to_revert(applied, "-1")) == applied[-1:]
    assert applied == ids(graph.to_apply((), "head"))
