"""A Spark Connect server with Delta, as a process of its own.

The server of the PySpark package itself, without a start script. It is ready when its port
opens, which takes 4 to 20 seconds.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from deltacheck.config import Environment
from deltacheck.delta.jars import delta_jars
from deltacheck.delta.java import find_java

HOST = "127.0.0.1"
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java's options for a process that ends soon: it compiles less."""

LONG_LIVED = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:+UseTransparentHugePages",
    "spark.driver.memory": "2g",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    # Compiling costs tables of a few rows more than reading them.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # What nobody looks at need not be kept.
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
}
"""Settings for a session or a server that serves many tests with small tables. The tests that
hold our verdict against Delta's, the worked example and the processes compile."""

_READY_SECONDS = 120
_END_SECONDS = 20


@dataclass(frozen=True)
class ConnectServer:
    """A running server.

    Attributes:
        url: What to give to ``SparkSession.builder.remote``.
        process: The server; it leads a process group of its own.
        warehouse: The folder of its tables.
        log: What it has printed.
    """

    url: str
    process: subprocess.Popen[bytes]
    warehouse: Path
    log: Path


@contextmanager
def connect_server(folder: Path, conf: dict[str, str] | None = None) -> Iterator[ConnectServer]:
    """Run a server for as long as the context lasts.

    Args:
        folder: Where its warehouse and its log go.
        conf: Further Spark settings.
    """
    port, log, warehouse = free_port(), folder / "connect-server.log", folder / "warehouse"
    with log.open("ab") as output:
        process = subprocess.Popen(
            _command(port, warehouse, log, conf or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_variables(),
            start_new_session=True,
        )
    try:
        wait_for_port(port, process, log)
        yield ConnectServer(f"sc://{HOST}:{port}", process, warehouse, log)
    finally:
        stop_group(process)


def free_port() -> int:
    """A port of the loopback interface on which nothing listens."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port


def wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return when the port answers; fail when the process ends or the time is over."""
    for _ in range(_READY_SECONDS * 10):
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
            break
        else:
            return
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    raise AssertionError(f"no server on port {port}; it printed:\n{tail}")


def stop_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, kind)
        except ProcessLookupError:
            return
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return


def _command(port: int, warehouse: Path, log: Path, conf: dict[str, str]) -> list[str]:
    home = Path(pyspark.__file__).parent
    jars = delta_jars(
        Environment("connect-server"),
        spark_home=home,
        spark_version=pyspark.__version__,
        java=find_java(),
        log=log,
    )
    settings = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": HOST,
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in jars),
        "spark.driver.host": HOST,
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.warehouse.dir": str(warehouse),
        "spark.ui.enabled": "false",
        **LONG_LIVED,
        **conf,
    }
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    return [
        str(home / "bin" / "spark-submit"),
        *("--master", "local[2]", *options),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"),
    ]


def _variables() -> dict[str, str]:
    ours = {
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        # A stream's batches are written by a process that the server starts.
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(__file__).parent.parent.parent),
    }
    unwanted = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_SUBMIT_ARGS")
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    return kept | ours
