"""YAML as people write it in ``constraints/``: plain values, each with its line and column.

Every scalar is the text that stands in the file, so none of YAML 1.1's surprises apply
(``on``, ``yes``, ``1e3`` and ``2024-01-01`` stay what they are); an empty value, ``~`` and
``null`` are no value. Keys compare without regard to case. Anchors, aliases and tags are
refused, and with them everything that could grow or construct something.

Knows nothing of rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Union

import yaml

from deltacheck.errors import RuleFileError

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_DEPTH = 10
_NO_VALUE = {"", "~", "null", "Null", "NULL"}

# What YAML forbids, and the marks that make a line read otherwise than it is shown.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"
)

Value = Union[str, None, list["Value"], dict[str, "Value"]]
"""What a document holds: texts, lists and mappings."""

Steps = tuple[Union[str, int], ...]
"""The way to a value in a document, for example ``("rules", "amount_positive", "check")``."""


@dataclass(frozen=True)
class Mark:
    """A place in a file, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Document:
    """One YAML document.

    Attributes:
        value: What it holds.
        start: Where it starts.
        keys: Where the key of each entry of a mapping stands.
        values: Where each value stands.
    """

    value: Value
    start: Mark
    keys: Mapping[Steps, Mark] = field(default_factory=dict)
    values: Mapping[Steps, Mark] = field(default_factory=dict)

    def key_mark(self, steps: Steps) -> Mark:
        """Where the entry stands; for one that is not there, where what should hold it does."""
        while steps and steps not in self.keys and steps not in self.values:
            steps = steps[:-1]
        return self.keys.get(steps) or self.values.get(steps) or self.start

    def value_mark(self, steps: Steps) -> Mark:
        """Where the value stands; for one that is not there, where what should hold it does."""
        return self.values.get(steps) or self.key_mark(steps)


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark.

    Raises:
        RuleFileError: It cannot be read, is not UTF-8, or has characters that are not shown.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RuleFileError(
            f"It cannot be read: {error.strerror or error}.",
            hint="Check that it exists and that you may read it.",
            path=path,
        ) from None
    hint = "Save it as UTF-8."
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise RuleFileError("It is UTF-16, not UTF-8.", hint=hint, path=path, line=1)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        raise RuleFileError(
            f"The byte 0x{data[error.start]:02x} is not UTF-8.",
            hint=hint,
            path=path,
            line=before.count(b"\n") + 1,
            column=len(before) - before.rfind(b"\n"),
        ) from None
    if unseen := _UNSEEN.search(text):
        before_it = text[: unseen.start()]
        raise RuleFileError(
            f"It holds the invisible character U+{ord(unseen[0]):04X}.",
            hint="Delete it.",
            path=path,
            line=before_it.count("\n") + 1,
            column=len(before_it) - before_it.rfind("\n"),
        )
    return text


def read_documents(text: str, path: Path, problems: list[RuleFileError]) -> tuple[Document, ...]:
    """Read all documents of a file; empty ones are left out.

    Args:
        text: The text of the file.
        path: The file, for messages.
        problems: Takes what is wrong but does not end the reading: a repeated key, a key
            without a value.

    Raises:
        RuleFileError: It is not YAML, or uses more of YAML than rules need.
    """
    documents = []
    events = _events(text, path)
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            reader = _Reader(path, events, problems)
            root = next(events)
            start = _mark(root)
            value = reader.value(root, ())
            if value is not None:
                documents.append(Document(value, start, reader.keys, reader.values))
    return tuple(documents)


def _events(text: str, path: Path) -> Iterator[yaml.Event]:
    """The parser's events, with its errors turned into ours."""
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = Mark(mark.line + 1, mark.column + 1) if mark else None
        raise RuleFileError(
            f"It is not readable YAML: {error.problem or error.context}.",
            hint=_advice(text, at),
            path=path,
            line=at.line if at else None,
            column=at.column if at else None,
        ) from None


def _advice(text: str, at: Mark | None) -> str:
    """What to do about a syntax error, by the character and the line it stands at."""
    lines = text.splitlines()
    line = lines[at.line - 1] if at and at.line <= len(lines) else ""
    char = line[at.column - 1 : at.column] if at else ""
    if "\t" in line[: len(line) - len(line.lstrip())] or char == "\t":
        return "Indent with spaces, not with tabs."
    if char in ("`", "@", "%") or re.search(r":\s+['\"`]", line) or line.count(": ") > 1:
        return (
            "YAML reads this text otherwise than SQL does: write `>-` after the colon and the "
            "text on the next line, further in."
        )
    return "Check the indentation, the quotes and the brackets on this line and the one before."


def _mark(event: yaml.Event) -> Mark:
    mark = event.start_mark
    return Mark(1, 1) if mark is None else Mark(mark.line + 1, mark.column + 1)


class _Reader:
    """Builds the values of one document from the parser's events."""

    def __init__(
        self, path: Path, events: Iterator[yaml.Event], problems: list[RuleFileError]
    ) -> None:
        self.path = path
        self.events = events
        self.problems = problems
        self.keys: dict[Steps, Mark] = {}
        self.values: dict[Steps, Mark] = {}

    def value(self, event: yaml.Event, steps: Steps) -> Value:
        """The value that starts with ``event``."""
        mark = _mark(event)
        self.values[steps] = mark
        if isinstance(event, yaml.AliasEvent):
            raise self.problem(
                f"It uses the YAML alias *{event.anchor}.",
                "Write the value out, or put rules that tables share into a rule set and name "
                "it under `use:`.",
                mark,
            )
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            raise self.problem(
                f"It uses the YAML anchor &{event.anchor}.",
                "Put rules that tables share into a rule set and name it under `use:`.",
                mark,
            )
        if isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)) and event.tag:
            raise self.problem(
                f"It uses the YAML tag {event.tag}.",
                "Write the value without it; a text that starts with `!` needs quotes.",
                mark,
            )
        if len(steps) > _MAX_DEPTH:
            raise self.problem(f"It is nested more than {_MAX_DEPTH} deep.", "", mark)
        if isinstance(event, yaml.ScalarEvent):
            plain = event.style is None or event.style == ""
            return None if plain and event.value in _NO_VALUE else str(event.value)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(steps)
        return self.mapping(steps)

    def sequence(self, steps: Steps) -> list[Value]:
        """The items up to the end of a list."""
        items: list[Value] = []
        for event in self.events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            item = self.value(event, (*steps, len(items)))
            if item is None:
                self.problems.append(
                    self.problem("A list has an empty item.", "Delete it.", _mark(event))
                )
            items.append(item)
        return items

    def mapping(self, steps: Steps) -> dict[str, Value]:
        """The entries up to the end of a mapping."""
        entries: dict[str, Value] = {}
        seen: dict[str, Mark] = {}
        for event in self.events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            mark = _mark(event)
            key = self.value(event, (*steps, ""))
            if not isinstance(key, str):
                raise self.problem("A key is not a text.", "Write `key: value`.", mark)
            value_event = next(self.events)
            first = seen.setdefault(key.casefold(), mark)
            if first is not mark:
                self.problems.append(
                    self.problem(
                        f"The key {key!r} stands twice, first on line {first.line}.",
                        "Keys and names compare without regard to case: delete one or rename it.",
                        mark,
                    )
                )
                self.value(value_event, (*steps, key, ""))
                continue
            here = (*steps, key)
            self.keys[here] = mark
            value = self.value(value_event, here)
            if value is None:
                self.problems.append(
                    self.problem(
                        f"The key {key!r} has no value.",
                        "Give it one, or delete the key; quote the word if it is meant as a text.",
                        mark,
                    )
                )
                continue
            entries[key] = value
        return entries

    def problem(self, message: str, hint: str, mark: Mark) -> RuleFileError:
        """An error at a place in the file."""
        return RuleFileError(message, hint=hint, path=self.path, line=mark.line, column=mark.column)
