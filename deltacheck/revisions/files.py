"""The folder of migrations: read into a history, and written to.

Promises that reading changes nothing: no byte code, no modules left behind, no change of
working directory, nothing on standard output; and that whatever is wrong with a file is
reported with its name and, where there is one, its line. Knows no database.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import importlib.util
import inspect
import os
import re
import secrets
import sys
import traceback
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from deltacheck.errors import DeclarationError, HistoryError, UsageError
from deltacheck.revisions.graph import History, history_of, next_number
from deltacheck.revisions.operations import Operation
from deltacheck.revisions.recorder import Op
from deltacheck.revisions.render import merge_revision, one_line, render
from deltacheck.revisions.revision import Revision, shown
from deltacheck.revisions.source import checksum, checksum_of, imports_of, line_of, message_of

__all__ = ["checksum", "load_history", "load_revision", "write_merge", "write_revision"]

HEAD = "HEAD"
"""The file in ``versions/`` that names the newest migration, so that two branches that both
add one get a conflict from version control."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_RESERVED = ("head", "heads", "base")
_LAYOUT = 'It needs revision = "...", down_revision = "...", upgrade(op) and downgrade(op).'


def load_history(folder: Path, *, variables: Mapping[str, str] | None = None) -> History:
    """Read all migrations of a folder.

    A migration is a file ``*.py`` whose name begins with neither ``_`` nor ``.``. A folder
    that is not there holds none.

    Args:
        folder: Usually ``versions``.
        variables: Values for ``${NAME}`` in names of tables; default: the process's
            environment variables.

    Raises:
        HistoryError: A file is unreadable, is not a migration, or fails; the migrations do
            not make a history; or ``HEAD`` names another newest one.
        DeclarationError: A migration calls ``op`` with an argument that cannot be used.
    """
    try:
        files = sorted(path for path in folder.iterdir() if _is_migration(path.name))
    except FileNotFoundError:
        files = []
    except OSError as error:
        raise HistoryError(
            f"{shown(str(folder))} cannot be read: {error.strerror}; nothing was done.",
            hint="It must be a folder of migrations; deltacheck.toml says which (versions).",
            paths=(folder,),
        ) from None
    siblings = {path.stem for path in folder.glob("*.py")} | {folder.name}
    history = history_of([load_revision(path, siblings, variables=variables) for path in files])
    _check_head(folder / HEAD, history)
    return history


def _is_migration(name: str) -> bool:
    return name.endswith(".py") and not name.startswith(("_", "."))


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
    tree = _parsed(path)
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
        checksum=checksum_of(tree),
        upgrade=upgrade,
        downgrade=downgrade,
    )


def _parsed(path: Path) -> ast.Module:
    try:
        if not path.is_file():  # a folder, a pipe, a link to nothing
            raise OSError("it is not a file")
        source = importlib.util.decode_source(path.read_bytes())
        return ast.parse(source, str(path))
    except OSError as error:
        raise HistoryError(
            f"{shown(str(path))} cannot be read: {error.strerror or error}; nothing was done.",
            hint="Repair or remove it.",
            paths=(path,),
        ) from None
    except SyntaxError as error:
        raise _problem(
            path, error.lineno, f"it is not Python: {error.msg}", "Correct it."
        ) from None
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
        _call(function, op)
    return op.operations


def _call(function: Callable[..., object], op: Op) -> None:
    function(op)


def _identity(path: Path, tree: ast.Module, names: Mapping[str, object]) -> str:
    value = names.get("revision")
    if not isinstance(value, str):
        raise _lacking(path, tree, names, "revision", 'a text, such as "0002"')
    if not is_id(value):
        raise _problem(path, line_of(tree, "revision"), f"{value!r} is not an id", _ID_ADVICE)
    return value


_ID_ADVICE = (
    "An id has letters, digits, '_', '.' and '-', begins with a letter or a digit, and is "
    f"none of {', '.join(_RESERVED)}."
)


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


def _check_head(file: Path, history: History) -> None:
    """Hold ``HEAD``, where there is one, against a history that has one head."""
    try:
        text = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise HistoryError(
            f"{shown(str(file))} cannot be read: {error}; nothing was done.",
            hint="Write the name of the newest migration into it, without .py.",
            paths=(file,),
        ) from None
    if len(history.heads) > 1:
        return  # what `merge` is for; it writes HEAD anew
    head = history.head()
    expected = "" if head is None else _head_line(head)
    if text == expected or (head is not None and text == head.revision):
        return
    newest = "there is no migration" if head is None else f"the newest migration is {head.file}"
    known = {one.revision for one in history.revisions}
    known |= {_head_line(one) for one in history.revisions}
    if len(text.splitlines()) > 1:
        says = "holds a conflict of two branches"
        hint = "Both branches' migrations are in one chain now:"
    elif text in known:
        says = f"says {shown(text)}"
        hint = "If the migrations after it are meant to be there,"
    else:
        says = f"says {shown(text)}" if text else "is empty"
        hint = "If a file got lost, get it back from version control; if not,"
    raise HistoryError(
        f"{shown(str(file))} {says}, but {newest}; nothing was done.",
        hint=f"{hint} write {expected} into it." if expected else f"{hint} remove it.",
        paths=(file,),
    )


def _head_line(revision: Revision) -> str:
    """What ``HEAD`` says of a newest revision: its file, since two branches may both have
    given the next number, and equal lines make no conflict."""
    return revision.revision if revision.path is None else shown(revision.path.stem)


def write_revision(
    folder: Path,
    history: History,
    message: str,
    operations: Sequence[Operation] = (),
    *,
    revision: str | None = None,
) -> Path:
    """Write the migration that follows the newest one, and ``HEAD``.

    Args:
        folder: Usually ``versions``; made if it is not there.
        history: What the folder holds.
        message: What the migration is for.
        operations: What it does, resolved (as ``difference`` gives them).
        revision: Its id; default: the next number, or where the history has other ids than
            numbers, twelve random hexadecimal digits.

    Returns:
        The new file.

    Raises:
        HistoryError: The history has two heads, or the file exists.
        UsageError: The id is taken, or cannot be one.
    """
    head = history.head()
    chosen = _new_id(history, revision)
    source = render(chosen, () if head is None else (head.revision,), message, operations)
    return _written(folder, chosen, message, source)


def write_merge(
    folder: Path, history: History, message: str = "", *, revision: str | None = None
) -> Path:
    """Write a migration that joins all heads, and ``HEAD``.

    Raises:
        UsageError: There is nothing to join, or the id is taken or cannot be one.
        HistoryError: The file exists.
    """
    if len(history.heads) < 2:
        raise UsageError(
            f"The history has {'one head' if history.heads else 'no revision'}; nothing was done.",
            hint="There is nothing to merge.",
        )
    chosen = _new_id(history, revision)
    source = merge_revision(chosen, history.heads, message)
    return _written(folder, chosen, message or "merge", source)


def _new_id(history: History, wanted: str | None) -> str:
    ids = [one.revision for one in history.revisions]
    if wanted is None:
        return next_number(ids) if all(map(str.isdigit, ids)) else secrets.token_hex(6)
    if not is_id(wanted):
        raise UsageError(f"{wanted!r} is not an id; nothing was done.", hint=_ID_ADVICE)
    if wanted in ids:
        raise UsageError(
            f"{history.get(wanted).file} has the id {wanted} already; nothing was done.",
            hint="Take another one.",
        )
    return wanted


def _written(folder: Path, revision: str, message: str, source: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{'_'.join(filter(None, (revision, slug(message))))}.py"
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(source)
    except FileExistsError:
        raise HistoryError(
            f"{path} exists already; nothing was done.",
            hint="Remove it or take another message.",
            paths=(path,),
        ) from None
    draft = folder / f".{HEAD}.new"
    draft.write_text(f"{path.stem}\n", encoding="utf-8", newline="\n")
    draft.replace(folder / HEAD)
    return path


def slug(message: str) -> str:
    """What a message adds to a file's name: at most 40 characters, plain ASCII.

    >>> slug("Amounts are positive, délais aussi!")
    'amounts_are_positive_delais_aussi'
    """
    plain = unicodedata.normalize("NFKD", one_line(message)).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", plain.lower())
    text = "_".join(words)
    if len(text) <= 40:
        return text
    return text[:41].rpartition("_")[0] or text[:40]
