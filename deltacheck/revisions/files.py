"""The folder of migrations: read into a history, and written to.

Promises that reading changes nothing, and that a new migration and ``HEAD`` never overwrite
another migration. Knows no database.
"""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

from deltacheck.errors import HistoryError, UsageError
from deltacheck.revisions.graph import History, history_of, next_number
from deltacheck.revisions.migration import ID_ADVICE, is_id, load_revision
from deltacheck.revisions.operations import Operation
from deltacheck.revisions.render import merge_revision, one_line, render
from deltacheck.revisions.revision import Revision, shown
from deltacheck.revisions.source import checksum

__all__ = ["HEAD", "checksum", "load_history", "write_merge", "write_revision"]

HEAD = "HEAD"
"""The file in ``versions/`` that names the newest migration, so that two branches that both
add one get a conflict from version control."""


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
        HistoryError: The history has two heads.
        UsageError: The id is taken or cannot be one, or the file exists or cannot be written.
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
        UsageError: There is nothing to join, the id is taken or cannot be one, or the file
            exists or cannot be written.
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
        raise UsageError(f"{wanted!r} is not an id; nothing was done.", hint=ID_ADVICE)
    if wanted in ids:
        raise UsageError(
            f"{history.get(wanted).file} has the id {wanted} already; nothing was done.",
            hint="Take another one.",
        )
    return wanted


def _written(folder: Path, revision: str, message: str, source: str) -> Path:
    path = folder / f"{'_'.join(filter(None, (revision, slug(message))))}.py"
    draft = folder / f".{HEAD}.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft.write_text(f"{path.stem}\n", encoding="utf-8", newline="\n")
        try:
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(source)
        except OSError:
            draft.unlink()
            raise
        draft.replace(folder / HEAD)
    except OSError as error:
        raise UsageError(
            f"{shown(str(path))} cannot be written: {error.strerror}; no migration was made.",
            hint="Take another message." if isinstance(error, FileExistsError) else "",
        ) from None
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
