"""The code of a migration as text: its normal form and checksum, and what it may not import.

Runs nothing. The checksum is the same on every Python that deltacheck supports, since a
journal outlives the Python that wrote it.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Collection, Iterator


def checksum(source: str) -> str:
    """The SHA-256 of what ``source`` does, in hexadecimal.

    Line ends, formatting, comments and docstrings do not count; everything else does.

    >>> checksum("a = 1  # one") == checksum("a  =  1\\r\\n")
    True

    Raises:
        SyntaxError: It is not Python. (Before Python 3.12 a null character in it raises
            ValueError.)
    """
    return checksum_of(ast.parse(source))


def checksum_of(tree: ast.Module) -> str:
    """:func:`checksum` of a source that is parsed already."""
    digest = hashlib.sha256()
    for piece in _pieces(tree):
        digest.update(piece.encode("ascii"))
    return digest.hexdigest()


def _pieces(value: object, within: ast.AST | None = None) -> Iterator[str]:
    """Spell a tree, without what is absent.

    Not ``ast.dump``: what that shows of empty fields changes between Python versions, and
    newer ones have fields that older ones lack. Not ``repr``: whether it escapes a
    character depends on the version's Unicode tables.
    """
    if isinstance(value, ast.Constant):
        yield f"<{type(value.value).__name__} {value.value!a}>"
    elif isinstance(value, ast.AST):
        yield f"({type(value).__name__}"
        for name in value._fields:
            held = getattr(value, name, None)
            if name != "ctx" and held is not None and held != []:
                yield f" {name}="
                yield from _pieces(held, value)
        yield ")"
    elif isinstance(value, list):
        yield "["
        for item in value:
            if not _says_nothing(item, within):
                yield from _pieces(item, within)
                yield ","
        yield "]"
    else:
        yield ascii(value)


def _says_nothing(node: object, within: ast.AST | None) -> bool:
    """Whether it is a statement that is only a text (a docstring, or one used as a comment),
    or an empty part of an f-string (Python 3.12.1 has such parts where others have none)."""
    if isinstance(within, ast.JoinedStr):
        return isinstance(node, ast.Constant) and node.value == ""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def message_of(tree: ast.Module) -> str:
    r"""The first paragraph of the docstring, on one line.

    >>> message_of(ast.parse("'''amounts are\n   positive\n\n   At last.'''"))
    'amounts are positive'
    """
    lines = []
    for line in (ast.get_docstring(tree) or "").splitlines():
        if not line.strip():
            break
        lines.append(line)
    return " ".join(" ".join(lines).split())


def line_of(tree: ast.Module, name: str) -> int | None:
    """The line that gives ``name`` its value at the top of the module, or None."""
    found = None
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        else:
            names = []
        if name in names:
            found = node.lineno
    return found


def imports_of(tree: ast.Module, modules: Collection[str]) -> Iterator[tuple[int, str]]:
    """Where the code imports one of ``modules``, or anything relative to itself.

    Yields:
        The line, and what is imported as it is written there.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in modules:
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            if node.level or name.partition(".")[0] in modules:
                yield node.lineno, name
