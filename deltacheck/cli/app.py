"""The command line: parse, call, print, exit.

Thin over the Python functions. Nothing here imports Spark before a command needs it.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import cast

import typer

from deltacheck.cli import (
    checking,
    deploy,
    doctor_,
    existing,
    files,
    quarantine,
    report_,
    revisions,
    shop,
)
from deltacheck.cli.environments import run_each
from deltacheck.cli.options import hoisted, relative_last
from deltacheck.cli.output import err, print_error
from deltacheck.errors import DeltacheckError, EngineError, UsageError

# Typer's errors of usage. Newer versions bring a click of their own, older ones need the
# package of that name, so the class is found by the subclass that both export.
_USAGE = cast("type[typer.BadParameter]", typer.BadParameter.__mro__[2])

_ENGINE = ("pyspark", "delta", "py4j", "grpc", "pandas", "pyarrow")
"""Packages that the extras bring; the base install leaves them to the cluster."""

app = typer.Typer(
    name="deltacheck",
    help="The constraints of Delta Lake tables, managed the way Alembic manages schemas.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
files.add_to(app)
revisions.add_to(app)
deploy.add_to(app)
checking.add_to(app)
report_.add_to(app)
existing.add_to(app)
doctor_.add_to(app)
quarantine.add_to(app)
shop.add_to(app)


@app.callback()
def _root() -> None:
    """The constraints of Delta Lake tables, managed the way Alembic manages schemas."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code: the table in the README says what each means."""
    given = hoisted(sys.argv[1:] if arguments is None else arguments)
    given = relative_last(given)
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(_run(given))


def _run(given: list[str]) -> int:
    as_json = "--json" in given
    try:
        code = run_each(given)
        if code is None:
            code = app(given, standalone_mode=False)
    except DeltacheckError as error:
        print_error(error, as_json=as_json)
        return error.exit_code
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in _ENGINE:
            raise
        problem = EngineError(
            f"This command needs Spark, and this Python has no {error.name}; nothing was done.",
            hint='Install "deltacheck[local]", which brings Spark, Delta and Java, or '
            '"deltacheck[connect]" for a Spark Connect server.',
        )
        print_error(problem, as_json=as_json)
        return problem.exit_code
    except _USAGE as error:
        if not as_json:
            error.show()
            return 2
        print_error(UsageError(error.format_message()), as_json=True)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        err().print("Interrupted; the journal is intact.")
        return 130
    return code if isinstance(code, int) else 0


def _terminated(number: int, frame: FrameType | None) -> None:
    # Unwinds like Ctrl-C, so that the run can leave its lock.
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
