"""One migration as a value: its place in the chain and its operations.

Knows nothing of other revisions, of how it was read, or of databases.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from deltacheck.revisions.operations import Operation


@dataclass(frozen=True)
class Revision:
    """One migration.

    Attributes:
        revision: Its id.
        down_revision: The ids of its parents: none for a first one, two for a merge.
        message: What it is for: the first paragraph of the file's docstring, on one line.
        path: The file it was read from, or None.
        checksum: Of the file's code; comments, formatting and docstrings do not count.
        upgrade: What it does.
        downgrade: What takes it back.
    """

    revision: str
    down_revision: tuple[str, ...] = ()
    message: str = ""
    path: Path | None = None
    checksum: str = field(default="", repr=False)
    upgrade: tuple[Operation, ...] = ()
    downgrade: tuple[Operation, ...] = ()

    @property
    def file(self) -> str:
        """What to call it in a message: its file's name, else its id.

        >>> Revision("0002", path=Path("versions/0002_amounts.py")).file
        '0002_amounts.py'
        """
        return self.revision if self.path is None else shown(self.path.name)


def shown(name: str) -> str:
    r"""A file's name as it can be printed anywhere.

    >>> print(shown("0002_a.py"), shown("two\nlines.py"))
    0002_a.py two\nlines.py
    """
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in name
    )


def paths_of(*revisions: Revision) -> tuple[Path, ...]:
    """The files of revisions, for an error's ``paths``."""
    return tuple(revision.path for revision in revisions if revision.path is not None)
