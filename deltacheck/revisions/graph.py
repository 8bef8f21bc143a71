"""The chain of revisions: its order, its heads, and what lies between two points of it.

A pure value: it knows no files and no database, only ids and parents. Promises that every
parent comes before its children, that the order does not depend on the order of reading,
and that what is already applied is never applied again.
"""

from __future__ import annotations

import difflib
import heapq
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from deltacheck.errors import HistoryError, UnknownTargetError
from deltacheck.revisions.revision import Revision, paths_of
from deltacheck.revisions.state import resolved

__all__ = ["History", "Revision", "history_of"]

_RELATIVE = re.compile(r"([+-])(\d+)")


@dataclass(frozen=True)
class History:
    """All revisions of a project. Made by :func:`history_of`.

    Attributes:
        revisions: In order from base to head, parents before children.
        heads: The ids that no other revision follows; more than one after a fork.
    """

    revisions: tuple[Revision, ...] = ()
    heads: tuple[str, ...] = ()

    @cached_property
    def _by_id(self) -> Mapping[str, Revision]:
        return {revision.revision: revision for revision in self.revisions}

    def head(self) -> Revision | None:
        """The newest revision, or None where there is no revision at all.

        Raises:
            HistoryError: There are two heads or more.
        """
        if len(self.heads) > 1:
            heads = [self._by_id[head] for head in self.heads]
            raise HistoryError(
                f"The history has {len(heads)} heads: "
                f"{_listed(f'{one.revision} ({one.file})' for one in heads)}; nothing was done.",
                hint="Run `deltacheck merge` to join them, or, if one is new and applied "
                "nowhere, let its down_revision name the other.",
                paths=paths_of(*heads),
            )
        return self._by_id[self.heads[0]] if self.heads else None

    def get(self, text: str) -> Revision:
        """The revision with this id or with the only id that begins so, or ``head``.

        Raises:
            UnknownTargetError: None has it, or several begin so.
            HistoryError: ``head`` was asked for and there are two.
        """
        if text == "head" and self.revisions:
            head = self.head()
            assert head is not None
            return head
        if text in self._by_id:
            return self._by_id[text]
        matches = [one for one in self._by_id if text and one.startswith(text)]
        if len(matches) == 1:
            return self._by_id[matches[0]]
        if matches:
            raise UnknownTargetError(
                f"{text!r} could be any of {_listed(matches)}; nothing was done.",
                hint="Write one more character of it.",
            )
        raise UnknownTargetError(
            f"There is no revision {text!r}; nothing was done.", hint=self._advice(text)
        )

    def _advice(self, text: str) -> str:
        close = [one for one in self._by_id if one.lstrip("0") == text.lstrip("0") != ""]
        close = close or difflib.get_close_matches(text, self._by_id, n=3)
        if close:
            return f"Did you mean {_listed(close, 'or')}?"
        if not self.revisions:
            return 'The project has no revision yet: `deltacheck revision -m "..."` makes one.'
        return (
            f"There are {self.revisions[0].revision} to {self.revisions[-1].revision}: "
            "`deltacheck history` lists them."
        )

    def ancestry(self, revision: str) -> frozenset[str]:
        """The ids of a revision and of all that it builds on."""
        seen: set[str] = set()
        waiting = [revision]
        while waiting:
            one = waiting.pop()
            if one not in seen:
                seen.add(one)
                waiting.extend(self._by_id[one].down_revision)
        return frozenset(seen)

    def to_apply(self, applied: Collection[str], target: str = "head") -> tuple[Revision, ...]:
        """What an upgrade to ``target`` has to run, in order.

        Args:
            applied: The ids that the environment has, in any order.
            target: ``head``, ``+N`` (the next N), a revision's id or the beginning of it.

        Raises:
            HistoryError: There are two heads, or an applied revision has no file.
            UnknownTargetError: There is no such target, or it points backwards.
        """
        self._known(applied)
        self.head()
        pending = [one for one in self.revisions if one.revision not in applied]
        if target == "head":
            return tuple(pending)
        if match := _RELATIVE.fullmatch(target):
            sign, count = match[1], int(match[2])
            if sign == "-":
                raise _wrong_way(target, "goes back", "downgrade")
            return _several(pending, count, target, "pending", "head")
        if target == "base":
            raise _wrong_way(target, "goes back", "downgrade")
        wanted = self.ancestry(self.get(target).revision)
        return tuple(one for one in pending if one.revision in wanted)

    def to_revert(self, applied: Collection[str], target: str) -> tuple[Revision, ...]:
        """What a downgrade to ``target`` has to take back, the newest first.

        Args:
            applied: The ids that the environment has, in any order.
            target: ``base`` (all), ``-N`` (the last N), or a revision's id or the beginning
                of it: whatever is neither that revision nor one that it builds on.

        Raises:
            HistoryError: An applied revision has no file.
            UnknownTargetError: There is no such target, it is not applied, or it points
                forwards.
        """
        self._known(applied)
        done = [one for one in reversed(self.revisions) if one.revision in applied]
        if target == "base":
            return tuple(done)
        if match := _RELATIVE.fullmatch(target):
            sign, count = match[1], int(match[2])
            if sign == "+":
                raise _wrong_way(target, "goes forward", "upgrade")
            return _several(done, count, target, "applied", "base")
        if target == "head":
            raise _wrong_way(target, "goes forward", "upgrade")
        revision = self.get(target)
        if revision.revision not in applied:
            raise UnknownTargetError(
                f"Revision {revision.revision} is not applied, so there is nothing to go back "
                "to; nothing was done.",
                hint=f"`deltacheck upgrade {revision.revision}` goes forward to it; "
                "`deltacheck current` shows where the environment is.",
            )
        kept = self.ancestry(revision.revision)
        return tuple(one for one in done if one.revision not in kept)

    def _known(self, applied: Collection[str]) -> None:
        lost = sorted(one for one in set(applied) if one not in self._by_id)
        if lost:
            plural = len(lost) > 1
            raise HistoryError(
                f"{'Revisions' if plural else 'Revision'} {_listed(lost)} "
                f"{'are' if plural else 'is'} applied to this environment, but no file has "
                f"{'these ids' if plural else 'this id'}; nothing was done.",
                hint="Get the missing files back (from version control, or from the branch that "
                "was deployed), then run this again.",
            )


def history_of(revisions: Iterable[Revision]) -> History:
    """Put revisions in order and tell each drop and replacement what it takes off.

    Two heads are allowed here, so that they can be listed and merged.

    Raises:
        HistoryError: Two have the same id, a parent is missing, there is a cycle, or the
            operations do not add up (see :func:`deltacheck.revisions.state.resolved`).
    """
    by_id: dict[str, Revision] = {}
    for revision in sorted(revisions, key=lambda one: (one.revision, str(one.path))):
        other = by_id.setdefault(revision.revision, revision)
        if other is not revision:
            raise _twice(other, revision)
    for revision in by_id.values():
        _check_parents(revision, by_id)
    ordered = _in_order(by_id)
    followed = {parent for one in ordered for parent in one.down_revision}
    return History(
        revisions=resolved(ordered),
        heads=tuple(one.revision for one in ordered if one.revision not in followed),
    )


def _twice(first: Revision, second: Revision) -> HistoryError:
    hint = "Give the one that is applied nowhere an id of its own."
    if first.revision.isdigit() and first.down_revision == second.down_revision:
        following = next_number([first.revision])
        hint = (
            f"Two people went on from the same revision. In the file that is applied nowhere, "
            f'write revision = "{following}" and down_revision = "{first.revision}", rename it '
            f"to {following}_..., and write its new name, without .py, into HEAD beside it."
        )
    return HistoryError(
        f"{first.file} and {second.file} both have the id {first.revision}; nothing was done.",
        hint=hint,
        paths=paths_of(first, second),
    )


def _check_parents(revision: Revision, by_id: Mapping[str, Revision]) -> None:
    for parent in revision.down_revision:
        if parent not in by_id:
            close = difflib.get_close_matches(parent, by_id, n=1)
            raise HistoryError(
                f"{revision.file} builds on the revision {parent!r}, which no file has; "
                "nothing was done.",
                hint=f"Did you mean {close[0]}?"
                if close
                else "Get the missing file back, or correct down_revision.",
                paths=paths_of(revision),
            )
    if len(set(revision.down_revision)) != len(revision.down_revision):
        raise HistoryError(
            f"{revision.file} names a parent twice in down_revision; nothing was done.",
            hint="Name each parent once.",
            paths=paths_of(revision),
        )


def _in_order(by_id: Mapping[str, Revision]) -> list[Revision]:
    """Parents first; among those that could come next, the smallest id."""
    missing = {one.revision: len(one.down_revision) for one in by_id.values()}
    children: dict[str, list[str]] = {}
    for one in by_id.values():
        for parent in one.down_revision:
            children.setdefault(parent, []).append(one.revision)
    ready = [one for one, count in missing.items() if count == 0]
    heapq.heapify(ready)
    ordered = []
    while ready:
        following = heapq.heappop(ready)
        ordered.append(by_id[following])
        for child in children.get(following, []):
            missing[child] -= 1
            if missing[child] == 0:
                heapq.heappush(ready, child)
    if len(ordered) < len(by_id):
        done = {one.revision for one in ordered}
        raise _cycle({key: one for key, one in by_id.items() if key not in done})
    return ordered


def _cycle(left: Mapping[str, Revision]) -> HistoryError:
    """Walk from parent to parent among what could not be ordered until one comes again."""
    walk = [min(left)]
    while True:
        parent = next(one for one in left[walk[-1]].down_revision if one in left)
        if parent in walk:
            circle = [left[one] for one in walk[walk.index(parent) :]]
            break
        walk.append(parent)
    names = _listed(sorted(one.file for one in circle))
    if len(circle) == 1:
        message = f"{names} names itself as its down_revision; nothing was done."
    else:
        message = f"{names} build on each other in a circle; nothing was done."
    return HistoryError(
        message,
        hint="Correct the down_revision that does not name the revision before it.",
        paths=paths_of(*circle),
    )


def next_number(ids: Collection[str]) -> str:
    """The number after the greatest of ``ids``, in at least four digits.

    >>> next_number([]), next_number(["0001", "0009"]), next_number(["00041"])
    ('0001', '0010', '00042')
    """
    width = max((len(one) for one in ids), default=4)
    return str(max((int(one) for one in ids), default=0) + 1).zfill(max(width, 4))


def _several(
    found: list[Revision], count: int, target: str, what: str, end: str
) -> tuple[Revision, ...]:
    if count == 0 or count > len(found):
        asked = f"{count} revision{'' if count == 1 else 's'}"
        there = f"{len(found) or 'none'} {'is' if len(found) < 2 else 'are'} {what}"
        raise UnknownTargetError(
            f"{target} asks for {asked}, and {there}; nothing was done.",
            hint=f"{end} stands for all of them.",
        )
    return tuple(found[:count])


def _wrong_way(target: str, goes: str, command: str) -> UnknownTargetError:
    return UnknownTargetError(
        f"{target} {goes}; nothing was done.", hint=f"Use `deltacheck {command} {target}`."
    )


def _listed(items: Iterable[str], last: str = "and") -> str:
    """Join names as in a sentence.

    >>> _listed(["a"]), _listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    names = list(items)
    return f" {last} ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
