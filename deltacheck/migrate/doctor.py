"""Look at everything that deltacheck needs, and say what is off and what to do about it.

A look that fails is a finding, and the next one follows where it still can. Needs no package
but deltacheck's own: that Spark is not installed is one of the findings.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from deltacheck.config import Environment, Project, load_project
from deltacheck.errors import DeltacheckError, HistoryError
from deltacheck.revisions.files import load_history
from deltacheck.revisions.graph import History
from deltacheck.rules.files import survey_rules
from deltacheck.rules.model import RuleSet

State = Literal["ok", "note", "broken", "skipped"]

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class CheckUp:
    """One thing that was looked at.

    Attributes:
        state: note: it works, and there is something to know. skipped: it was not looked at.
        found: What is there, in one line.
        remedy: What to do about it, where there is something to do.
    """

    name: str
    state: State
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class Health:
    """What works and what does not.

    Attributes:
        environment: The environment looked at; None: it could not be found out which.
    """

    environment: str | None
    checks: tuple[CheckUp, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing is broken."""
        return all(check.state != "broken" for check in self.checks)


@dataclass
class Exam:
    """The findings so far."""

    checks: list[CheckUp] = field(default_factory=list)

    def say(self, name: str, found: str, state: State = "ok", remedy: str = "") -> None:
        """Add a finding."""
        self.checks.append(CheckUp(name, state, found, remedy))

    def fail(self, name: str, error: DeltacheckError) -> None:
        """Add an error as a finding."""
        self.say(name, error.message, "broken", error.hint)

    def look(self, name: str, at: Callable[[], _Found]) -> _Found | None:
        """What a look returns; where it fails, that is the finding, and None is returned."""
        try:
            return at()
        except DeltacheckError as error:
            self.fail(name, error)
            return None


def examine(
    project: Path | str = ".",
    env: str | None = None,
    *,
    write: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Health:
    """Look at a project, its environment, and what they run on.

    Args:
        project: The project's folder.
        env: The environment's name; default: the project's default.
        write: Also make a small table in the schema of deltacheck's own tables, write to it,
            and drop it again. Without it nothing is written.
        progress: Told in a few words what is looked at.
    """
    exam = Exam()
    version = _installed("deltacheck") or "from a source tree"
    exam.say("deltacheck", f"{version}, on Python {platform.python_version()}")
    place = exam.look("project", lambda: load_project(project))
    environment = None if place is None else exam.look("project", lambda: place.environment(env))
    if place is None or environment is None:
        _packages(exam)
        return Health(None, tuple(exam.checks))
    exam.say("project", f"{place.file}, environment {environment.name}")
    rules, history = _rules(exam, place), _history(exam, place)
    java = is_local(environment.spark)
    if _packages(exam) and (not java or exam.look("java", lambda: _java(exam))):
        progress("Starting Spark")
        _with_spark(exam, environment, history, rules, write, progress)
    return Health(environment.name, tuple(exam.checks))


def is_local(spark: str) -> bool:
    """Whether deltacheck starts that Spark itself, so that it needs a Java here.

    >>> is_local("local"), is_local("sc://host:15002"), is_local("package.module:function")
    (True, False, False)
    """
    other = spark.startswith("sc://") or re.fullmatch(r"[\w.]+:\w+", spark)
    return not other


def _rules(exam: Exam, project: Project) -> RuleSet:
    if not project.constraints.is_dir():
        exam.say("rules", f"there is no folder {project.constraints}", "note")
        return {}
    rules, problems = survey_rules(project.constraints)
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        first = problems[0]
        where = ":".join(str(part) for part in (first.path, first.line) if part)
        hint = f"{first.hint} `deltacheck lint` lists all.".strip()
        exam.say("rules", f"{where}: {first.message}{more}", "broken", hint)
    else:
        number = sum(len(table.rules) for table in rules.values())
        exam.say("rules", f"{number} for {len(rules)} tables" if rules else "none yet")
    return rules


def _history(exam: Exam, project: Project) -> History:
    try:
        history = load_history(project.versions)
        head = history.head()
    except HistoryError as error:
        exam.fail("migrations", error)
        return History()
    at = "none yet" if head is None else f"{len(history.revisions)}, head {head.revision}"
    exam.say("migrations", at)
    return history


def _packages(exam: Exam) -> bool:
    """Whether a Spark can be talked to at all."""
    spark = _installed("pyspark") or _installed("pyspark-client") or _installed("pyspark-connect")
    if importlib.util.find_spec("pyspark") is None:
        exam.say(
            "packages",
            "PySpark is not installed",
            "broken",
            "pip install 'deltacheck[local]', or 'deltacheck[connect]' for a Spark elsewhere.",
        )
        return False
    delta = _installed("delta-spark")
    if importlib.util.find_spec("delta") is None:
        exam.say(
            "packages",
            f"pyspark {spark or 'of this platform'}, but delta-spark is not installed",
            "broken",
            "Install the delta-spark that goes with this Spark.",
        )
        return False
    found = f"pyspark {spark or 'of this platform'}, delta-spark {delta or 'of this platform'}"
    needs = _needs("delta-spark", "pyspark")
    if spark is not None and needs and not fits(spark, needs):
        exam.say("packages", f"{found}, which needs pyspark {needs}", "note", "Install both anew.")
    else:
        exam.say("packages", found)
    return True


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _needs(package: str, other: str) -> str:
    """Which versions of another package a package asks for; empty: it does not say."""
    if _installed(package) is None:
        return ""
    for line in importlib.metadata.requires(package) or ():
        if match := re.fullmatch(rf"{re.escape(other)}\s*\(?([<>=!~\d., a-z]+?)\)?", line):
            return match[1]
    return ""


def fits(version: str, needs: str) -> bool:
    """Whether a version is within limits; what is no plain limit is not judged.

    >>> fits("4.2.0", "<=4.2.0,>=4.0.1"), fits("4.3.0", "<=4.2.0,>=4.0.1"), fits("4.10", ">=4.9")
    (True, False, True)
    """
    for part in needs.split(","):
        match = re.fullmatch(r"\s*(<=|>=|<|>)\s*([\d.]+)\s*", part)
        if match is None:
            continue
        left, right = _numbers(version), _numbers(match[2])
        holds = {"<=": left <= right, ">=": left >= right, "<": left < right, ">": left > right}
        if not holds[match[1]]:
            return False
    return True


def _numbers(version: str) -> tuple[int, int, int]:
    found = [int(digits) for digits in re.findall(r"\d+", version)[:3]]
    first, second, third = (*found, 0, 0, 0)[:3]
    return first, second, third


def _java(exam: Exam) -> bool:
    from deltacheck.delta.java import find_java

    java = find_java()
    state: State = "note" if java.skipped else "ok"
    passed = f" Passed over: {' '.join(java.skipped)}" if java.skipped else ""
    exam.say("java", f"{java.version}, from {java.source}: {java.home}.{passed}", state)
    return True


def _with_spark(
    exam: Exam,
    environment: Environment,
    history: History,
    rules: RuleSet,
    write: bool,
    progress: Callable[[str], None],
) -> None:
    # Only here: before this line a machine without Spark gets its findings, too.
    from deltacheck.delta.session import session_for
    from deltacheck.migrate import doctor_spark
    from deltacheck.migrate.run import scene

    began = time.monotonic()
    try:
        with session_for(environment) as session:
            seconds = time.monotonic() - began
            exam.say("spark", f"{session.version}, {environment.spark}, there in {seconds:.1f} s")
            with scene(session, environment, history, rules, progress) as stage:
                doctor_spark.examine(exam, stage, write=write)
    except DeltacheckError as error:
        exam.fail("spark", error)


__all__ = ["CheckUp", "Exam", "Health", "State", "examine", "fits", "is_local"]
