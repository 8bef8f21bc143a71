"""Quarantine tables: where violators are moved to, listed and released from.

A namespace, too: ``deltacheck.quarantine.list(...)``, ``show``, ``export``, ``release``,
``discard`` and ``purge`` are the twins of the commands. Nothing is imported before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltacheck.quarantine.api import (
        Discarded,
        Exported,
        Held,
        Purged,
        Released,
        Shown,
        discard,
        export,
        purge,
        release,
        show,
    )
    from deltacheck.quarantine.api import list_held as list

__all__ = [
    "Discarded",
    "Exported",
    "Held",
    "Purged",
    "Released",
    "Shown",
    "discard",
    "export",
    "list",
    "purge",
    "release",
    "show",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'deltacheck.quarantine' has no attribute {name!r}")
    found = "list_held" if name == "list" else name
    return getattr(import_module("deltacheck.quarantine.api"), found)
