"""Python processes that tests start for themselves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.harness.connect_server import SHORT_LIVED

REPOSITORY = Path(__file__).parent.parent.parent


def start_python(
    code: str, *, environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.Popen[str]:
    """Start Python on ``code``, with this repository's packages, in a process group of its own.

    Args:
        environ: Its environment variables; default: this process's.
        cwd: Its folder; default: this process's.
    """
    variables = dict(os.environ if environ is None else environ)
    variables["PYTHONPATH"] = str(REPOSITORY)
    variables["JAVA_TOOL_OPTIONS"] = f"{variables.get('JAVA_TOOL_OPTIONS', '')} {SHORT_LIVED}"
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=variables,
        cwd=cwd,
        start_new_session=True,
    )


def run_module(
    module: str, task: Mapping[str, Any], *, seconds: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run a module of the tests, which may kill its process group, on a task of its own.

    Args:
        task: Its one argument, as JSON.
    """
    return subprocess.run(
        [sys.executable, "-m", module, json.dumps(task)],
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        start_new_session=True,
    )


def run_python(
    code: str,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    seconds: float = 300,
) -> tuple[int, str, str]:
    """Run Python on ``code`` to its end; fail, and kill its group, when that takes too long.

    Returns:
        Exit code, standard output, standard error.
    """
    with start_python(code, environ=environ, cwd=cwd) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, out, err
