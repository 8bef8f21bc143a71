"""The folder of one user in which deltacheck keeps what it can make again.

It holds Delta's jars, a launcher for the bundled Java and Spark's logs. Everything in it may
be deleted at any time. Nothing of a project is kept here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from deltacheck.errors import EngineError

VARIABLE = "DELTACHECK_CACHE"


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Say where the cache is; nothing is created.

    Args:
        environ: Environment variables; default: the process's own.

    Returns:
        ``DELTACHECK_CACHE`` where it is set, else the place that the operating system has
        for caches of a user.

    >>> cache_folder({"DELTACHECK_CACHE": "/fast/disk"}).as_posix()
    '/fast/disk'
    """
    variables = os.environ if environ is None else environ
    given = variables.get(VARIABLE)
    if given:
        return Path(given).expanduser().absolute()
    if sys.platform == "win32":
        local = variables.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "deltacheck"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "deltacheck"
    shared = variables.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "deltacheck"


def make(folder: Path) -> Path:
    """Make a folder of the cache, readable by its user alone.

    Raises:
        EngineError: It cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EngineError(
            f"The folder {folder}, in which deltacheck keeps Delta's jars and Spark's logs, "
            f"cannot be made: {error.strerror}; no Spark was started.",
            hint=f"Name a folder that can be written with the environment variable {VARIABLE}.",
        ) from None
    return folder
