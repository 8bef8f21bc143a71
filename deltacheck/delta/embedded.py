"""A classic Spark in this process: the embedded one of ``local``, or one on a master URL.

Promises that nothing of its JVM reaches the terminal: what launcher, log4j and Ivy print goes
to a log file. Promises one embedded Spark per process and warehouse, and never takes over a
session that deltacheck did not start.

Knows nothing of Spark Connect.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.jars import delta_jars
from deltacheck.delta.java import JavaHome, find_java
from deltacheck.delta.log import open_log
from deltacheck.delta.warehouse import SETTING, inherited, warehouse_of
from deltacheck.errors import EngineError

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""What makes a Spark one with Delta."""

_LAPTOP = {
    "spark.master": "local[*]",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
}
_LISTS = {
    "spark.sql.extensions": ",",
    "spark.jars": ",",
    "spark.driver.extraClassPath": os.pathsep,
}
_QUIET = {
    "spark.app.name": "deltacheck",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@dataclass(frozen=True)
class _Running:
    environment: Environment
    session: SparkSession
    application: str


_lock = threading.RLock()
_running: _Running | None = None
_gateway: Any = None


def start(environment: Environment) -> SparkSession:
    """Give the classic session of an environment, started on the first call.

    Args:
        environment: One whose ``spark`` is ``local`` or a master URL.

    Raises:
        EngineError: There is no Java or no Delta; Spark does not start; another session is
            running in this process.
    """
    global _running
    with _lock, _classic_mode():
        active = _active()
        if active is not None:
            if _running is not None and _application(active) == _running.application:
                return _same_place(_running, environment)
            raise EngineError(
                "This process has a Spark session that deltacheck did not start; it was left "
                "alone, and none was started.",
                hint="Hand it over with session=..., or stop it before.",
            )
        session = _start(environment)
        _running = _Running(environment, session, _application(session))
        return session


def _active() -> SparkSession | None:
    try:
        return SparkSession.active()
    except PySparkException:
        return None


def _application(session: SparkSession) -> str:
    return str(session.sparkContext.applicationId)


def _same_place(running: _Running, environment: Environment) -> SparkSession:
    ours, theirs = running.environment, environment
    if ours.spark == theirs.spark and _folder(ours) == _folder(theirs):
        other = [key for key, value in theirs.conf.items() if ours.conf.get(key) != value]
        if not other:
            return running.session
        raise EngineError(
            f"The environment {theirs.name!r} sets {', '.join(other)} otherwise than "
            f"{ours.name!r}, whose Spark this process already runs; nothing was done.",
            hint="Use a process for each, or give both the same conf.",
        )
    raise EngineError(
        f"The environment {theirs.name!r} needs a Spark of its own, and this process already "
        f"runs the one of {ours.name!r} ({_folder(ours) or ours.spark}); nothing was done.",
        hint="Two of them in one process would share one catalog: use a process for each.",
    )


def _folder(environment: Environment) -> Path | None:
    return None if environment.warehouse is None else environment.warehouse.resolve()


def _start(environment: Environment) -> SparkSession:
    log = open_log(environment)
    java = find_java()
    with log.open("a", encoding="utf-8") as file:
        file.writelines(f"deltacheck: {note}\n" for note in java.skipped)
    home = Path(pyspark.__file__).parent
    jars: tuple[Path, ...] = ()
    if not _brings_delta(environment.conf):
        version = pyspark.__version__
        jars = delta_jars(environment, spark_home=home, spark_version=version, java=java, log=log)
    variables: dict[str, str | None] = {"JAVA_HOME": str(java.home)}
    if environment.spark == "local":
        # The Spark of this Python package, without the settings of another installation.
        variables |= {"SPARK_HOME": str(home), "SPARK_CONF_DIR": str(home / "conf")}
        variables["PYSPARK_SUBMIT_ARGS"] = None
    made = _missing(warehouse_of(environment))
    try:
        with _variables(variables):
            return _launch(environment, _settings(environment, jars), java, log)
    finally:
        # Spark makes the folder of its default schema; a command that looks leaves none.
        for folder in made:
            _remove_if_empty(folder)


def _settings(environment: Environment, jars: Sequence[Path]) -> dict[str, str]:
    """The settings of the session: ours, then the environment's, joined where both count."""
    conf, paths = environment.conf, [str(jar) for jar in jars]
    ours = {**_QUIET, **DELTA, "spark.driver.extraClassPath": os.pathsep.join(paths)}
    if environment.spark == "local":
        ours |= _LAPTOP
    else:
        # Executors on other machines are sent the jars.
        ours |= {"spark.master": environment.spark, "spark.jars": ",".join(paths)}
    settings = {**ours, **conf}
    for key, separator in _LISTS.items():
        both = [values[key] for values in (ours, conf) if values.get(key)]
        settings[key] = separator.join(both)
    warehouse = warehouse_of(environment)
    if warehouse is not None:
        settings |= {"spark.sql.warehouse.dir": str(warehouse), SETTING: str(warehouse)}
    return {key: value for key, value in settings.items() if value}


def _brings_delta(conf: Mapping[str, str]) -> bool:
    keys = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
    return any("delta-spark" in conf.get(key, "") for key in keys)


def _launch(
    environment: Environment,
    settings: Mapping[str, str],
    java: JavaHome,
    log: Path,
) -> SparkSession:
    global _gateway
    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    session = None
    try:
        if _gateway is None:
            with log.open("ab") as output:
                options: dict[str, Any] = {"stdout": output, "stderr": subprocess.STDOUT}
                warehouse = warehouse_of(environment)
                if warehouse is not None:
                    options["pass_fds"] = inherited(warehouse)
                _gateway = launch_gateway(  # type: ignore[no-untyped-call]
                    conf=conf, popen_kwargs=options
                )
        SparkContext(conf=conf, gateway=_gateway)
        session = SparkSession.builder.config(conf=conf).getOrCreate()
        # The first statement loads Delta's catalog, so that a Spark without Delta shows now.
        session.sql("SHOW DATABASES").collect()
    except (Py4JError, PySparkException) as error:
        if session is not None:
            session.stop()
        hint = f"What Spark printed is in {log}."
        if "DeltaCatalog" in str(error):
            hint += (
                " If this process has run a Spark before, start a new process: Java goes on "
                "with the jars that it began with."
            )
        raise EngineError(
            f"Spark did not start for the environment {environment.name!r}, on Java "
            f"{java.version} of {java.source} ({java.home}): {_reason(error)}",
            hint=hint,
        ) from None
    return session


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    # Py4J says first what it called, and after a colon what went wrong.
    thrown = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return next(iter(thrown or lines), type(error).__name__)


def _missing(folder: Path | None) -> list[Path]:
    """The folders that Spark is about to make for its warehouse, innermost first."""
    missing: list[Path] = []
    while folder is not None and not folder.exists():
        missing.append(folder)
        folder = folder.parent
    return missing


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return


@contextmanager
def _classic_mode() -> Iterator[None]:
    """Take away the variables by which PySpark would start, or look for, Spark Connect."""
    names = ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_API_MODE")
    with _variables(dict.fromkeys((*names, "MASTER"))):
        yield


@contextmanager
def _variables(values: Mapping[str, str | None]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    _set_variables(values)
    try:
        yield
    finally:
        _set_variables(before)


def _set_variables(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
