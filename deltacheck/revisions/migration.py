"""One migration file: read, run with a recorder, and turned into a value.

Promises that running it changes nothing by accident: it writes no byte code, becomes no
module, and leaves ``sys.path``, the working directory and standard output as they are; and
that whatever is wrong with it is reported with its name and, where there is one, its line.
Knows nothing of other migrations and of databases.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from deltacheck.errors import DeclarationError, HistoryError
from deltacheck.revisions.operations import Operation
from deltacheck.revisions.recorder import Op
from deltacheck.revisions.revision import Revision, shown
from deltacheck.revisions.source import checksum_of, imports_of, line_of, message_of

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_RESERVED = ("head", "heads", "base")
_LAYOUT = 'It needs revision = "...", down_revision = "...", upgrade(op) and downgrade(op).'
ID_ADVICE = (
    "An id has letters, digits, '_', '.' and '-', begins with a letter or a digit, and is "
    f"none of {', '.join(_RESERVED)}."
)


def load_revision(
    path: Path, siblings: Collection[str] = (), *, variables: Mapping[str, str] | None = None
) -> Revision:
    """Read and run one migration with a recorder.

    Args:
        path: The file.
        siblings: Names of modules that it may not import.
        variables: As for :func:`load_history`.

    Raises:
        HistoryError: It is unreadable, is not a migration, or fails.
        DeclarationError: It calls ``op`` with an argument that cannot be used.
    """
    tree, checksum = _parsed(path)
    for line, name in imports_of(tree, siblings):
        raise _problem(
            path,
            line,
            f"it imports {name}, another file of its folder",
            "A migration stands alone, so that a later edit elsewhere cannot change what it "
            "does: copy what it needs into it.",
        )
    names: dict[str, object] = {"__name__": path.stem, "__file__": str(path)}
    with _isolated():
        with _blamed(path, "it"):
            exec(compile(tree, path, "exec", dont_inherit=True), names)
        upgrade = _recorded(path, tree, names, "upgrade", variables)
        downgrade = _recorded(path, tree, names, "downgrade", variables)
    return Revision(
        revision=_identity(path, tree, names),
        down_revision=_parents(path, tree, names),
        message=message_of(tree),
        path=path,
        checksum=checksum,
        upgrade=upgrade,
        downgrade=downgrade,
    )


def _parsed(path: Path) -> tuple[ast.Module, str]:
    try:
        if not path.is_file():  # a folder, a pipe, a link to nothing
            raise OSError("it is not a file")
        source = importlib.util.decode_source(path.read_bytes())
        tree = ast.parse(source, str(path))
        return tree, checksum_of(tree)
    except OSError as error:
        raise HistoryError(
            f"{shown(str(path))} cannot be read: {error.strerror or error}; nothing was done.",
            hint="Repair or remove it.",
            paths=(path,),
        ) from None
    except SyntaxError as error:
        what = f"it is not Python: {error.msg}"
        raise _problem(path, error.lineno, what, "Correct it.") from None
    except (ValueError, RecursionError, MemoryError) as error:  # undecodable, null, too deep
        raise _problem(path, None, f"it is not Python: {error}", "Write it in UTF-8.") from None


@contextlib.contextmanager
def _isolated() -> Iterator[None]:
    """Undo what a migration's code may do to the process by accident."""
    folder, search, bytecode = _working_folder(), list(sys.path), sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        sys.dont_write_bytecode = bytecode
        sys.path[:] = search
        if folder is not None:
            os.chdir(folder)


def _working_folder() -> Path | None:
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def _blamed(path: Path, what: str) -> Iterator[None]:
    """Turn whatever a migration's code raises into an error that names file and line."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except DeclarationError as error:
        error.path, error.line, error.column = path, _line_in(path, error), None
        raise
    except BaseException as error:
        text = " ".join("".join(traceback.format_exception_only(type(error), error)).split())
        raise _problem(
            path, _line_in(path, error), f"{what} raised {text}", _advice(error)
        ) from error


def _line_in(path: Path, error: BaseException) -> int | None:
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == str(path)
    ]
    return lines[-1] if lines else None


def _advice(error: BaseException) -> str:
    if isinstance(error, AttributeError) and isinstance(error.obj, Op):
        known = [name for name in dir(Op) if not name.startswith("_")]
        close = difflib.get_close_matches(str(error.name), known, n=1)
        return f"Did you mean op.{close[0]}?" if close else f"op has: {', '.join(known)}."
    if isinstance(error, SystemExit):
        return "A migration says what to do by calling op; it must not end the process."
    return "A migration is run to learn what it does, each time the history is read: correct it."


def _recorded(
    path: Path,
    tree: ast.Module,
    names: Mapping[str, object],
    name: str,
    variables: Mapping[str, str] | None,
) -> tuple[Operation, ...]:
    function = names.get(name)
    if not callable(function):
        raise _lacking(path, tree, names, name, "a function that takes op")
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise _problem(
            path, line_of(tree, name), f"{name} is not a plain function", f"Write def {name}(op):."
        )
    op = Op(variables)
    with _blamed(path, f"{name}(op)"):
        function(op)
    return op.operations


def _identity(path: Path, tree: ast.Module, names: Mapping[str, object]) -> str:
    value = names.get("revision")
    if not isinstance(value, str):
        raise _lacking(path, tree, names, "revision", 'a text, such as "0002"')
    if not is_id(value):
        raise _problem(path, line_of(tree, "revision"), f"{value!r} is not an id", ID_ADVICE)
    return value


def is_id(text: str) -> bool:
    """Whether a revision can have this id.

    >>> is_id("0002"), is_id("+1"), is_id("head")
    (True, False, False)
    """
    return _ID.fullmatch(text) is not None and text.lower() not in _RESERVED


def _parents(path: Path, tree: ast.Module, names: Mapping[str, object]) -> tuple[str, ...]:
    value = names.get("down_revision", 0)
    parents = (value,) if isinstance(value, str) else () if value is None else value
    if not isinstance(parents, (tuple, list)) or not all(isinstance(one, str) for one in parents):
        raise _lacking(
            path,
            tree,
            names,
            "down_revision",
            'the id before it (None for the first, ("a", "b") for a merge)',
        )
    return tuple(parents)


def _lacking(
    path: Path, tree: ast.Module, names: Mapping[str, object], name: str, wanted: str
) -> HistoryError:
    if name not in names:
        return _problem(path, None, f"it has no {name}", _LAYOUT)
    got = type(names[name]).__name__
    return _problem(path, line_of(tree, name), f"{name} is {got}", f"It must be {wanted}.")


def _problem(path: Path, line: int | None, what: str, hint: str) -> HistoryError:
    where = shown(str(path)) + (f":{line}" if line else "")
    return HistoryError(f"{where}: {what}; nothing was done.", hint=hint, paths=(path,))
