"""Where in a file a finding belongs, and which comments there silence it.

``# deltacheck: ignore`` silences all codes, ``# deltacheck: ignore[DC101, DC113]`` those. It
counts anywhere in what it stands in (a rule in YAML, a call in Python) and on the line above.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_IGNORE = re.compile(r"(?:^|\s)#.*?\bdeltacheck:\s*ignore(?:\[([^\]]*)\])?", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """Lines of a file, counted from 1.

    Attributes:
        line: The first.
        last: The last.
        column: Where it begins in the first.
    """

    line: int
    last: int
    column: int = 1


@dataclass(frozen=True)
class Source:
    """The text of a file of rules or of a migration."""

    text: str

    @classmethod
    def read(cls, path: Path) -> Source:
        """The text of a file; of one that cannot be read any more, nothing."""
        try:
            return cls(path.read_text(encoding="utf-8-sig", errors="replace"))
        except OSError:
            return cls("")

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Its lines."""
        return tuple(self.text.splitlines())

    @cached_property
    def tree(self) -> ast.Module:
        """A migration's code; of what is not Python, nothing."""
        try:
            return ast.parse(self.text)
        except (SyntaxError, ValueError):
            return ast.Module(body=[], type_ignores=[])

    def entry(self, line: int, column: int) -> Place:
        """The entry of a YAML file that begins there: all that is indented further."""
        last = line
        for number in range(line + 1, len(self.lines) + 1):
            text = self.lines[number - 1]
            if text.strip():
                if len(text) - len(text.lstrip()) < column:
                    break
                last = number
        return Place(line, last, column)

    def call(self, name: str) -> Place | None:
        """The call in ``upgrade`` that adds or replaces the constraint of this name."""
        function = self._function("upgrade")
        for node in ast.walk(function) if function else ():
            if isinstance(node, ast.Call) and name in _names(node):
                return Place(node.lineno, node.end_lineno or node.lineno, node.col_offset + 1)
        return self.function("upgrade")

    def function(self, name: str) -> Place | None:
        """The line that defines a function, or None."""
        found = self._function(name)
        return None if found is None else Place(found.lineno, found.lineno, found.col_offset + 1)

    def _function(self, name: str) -> ast.FunctionDef | None:
        functions = [one for one in self.tree.body if isinstance(one, ast.FunctionDef)]
        return next((one for one in functions if one.name == name), None)

    def ignored(self, place: Place) -> frozenset[str] | None:
        """The codes that comments silence at a place; None for all."""
        codes: set[str] = set()
        above = self.lines[place.line - 2] if 2 <= place.line <= len(self.lines) + 1 else ""
        inside = self.lines[place.line - 1 : place.last]
        for text in (above if above.lstrip().startswith("#") else "", *inside):
            for match in _IGNORE.finditer(text):
                if match[1] is None:
                    return None
                codes.update(re.findall(r"\w+", match[1].upper()))
        return frozenset(codes)


def _names(call: ast.Call) -> Iterator[str]:
    """The texts that a call of ``op`` is given, and the name that a NOT NULL gets from them."""
    if isinstance(call.func, ast.Attribute):
        for node in (*call.args, *(keyword.value for keyword in call.keywords)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
                yield re.sub(r"\W", "_", node.value) + "_not_null"
