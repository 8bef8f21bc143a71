"""Sessions, databases and environments for the tests.

``spark`` is the embedded classic session, ``connect`` one of a Spark Connect server that the
tests start; ``any_spark`` runs a test on both. ``database``, ``environment`` and
``warehouse`` belong to whichever of them the test uses.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

import deltacheck
import deltacheck.delta.session as session_module
from deltacheck.config import Environment
from deltacheck.delta.cache import VARIABLE as CACHE_VARIABLE
from deltacheck.delta.cache import cache_folder
from deltacheck.delta.session import open_session, settings
from deltacheck.events import Event
from tests.harness.connect_server import LONG_LIVED, ConnectServer, connect_server

_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
_UNWANTED = ("SPARK_REMOTE", "SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "MASTER")


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A home and a cache for this run; only the jars are shared with other runs."""
    jars = cache_folder() / "jars"
    jars.mkdir(parents=True, exist_ok=True)
    cache = tmp_path_factory.mktemp("cache")
    (cache / "jars").symlink_to(jars, target_is_directory=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(cache))
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        for name in _UNWANTED:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def local_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the embedded session's tables, for the whole run."""
    return tmp_path_factory.mktemp("embedded") / "warehouse"


@pytest.fixture(scope="session")
def local_environment(local_warehouse: Path) -> Environment:
    """The environment that the embedded session of this process was opened with."""
    return Environment(
        "local",
        warehouse=local_warehouse,
        conf={"spark.master": "local[2]", **LONG_LIVED},
    )


@pytest.fixture(scope="session")
def spark(local_environment: Environment) -> Iterator[SparkSession]:
    """The embedded classic session, one per process."""
    session = open_session(local_environment)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A Spark Connect server, started when a test first needs it."""
    with connect_server(tmp_path_factory.mktemp("connect")) as server:
        yield server


@pytest.fixture(scope="session")
def connect_service_url(connect_service: ConnectServer) -> str:
    """The address of the Spark Connect server."""
    return connect_service.url


@pytest.fixture(scope="session")
def connect(connect_service: ConnectServer) -> Iterator[SparkSession]:
    """A session of the Spark Connect server."""
    session = open_session(Environment("connect", spark=connect_service.url))
    yield session
    session.stop()


@pytest.fixture(params=["classic", pytest.param("connect", marks=pytest.mark.connect)])
def any_spark(request: pytest.FixtureRequest) -> SparkSession:
    """Both sessions, one after the other."""
    name = "spark" if request.param == "classic" else "connect"
    session: SparkSession = request.getfixturevalue(name)
    return session


def _on_connect(request: pytest.FixtureRequest) -> bool:
    callspec = getattr(request.node, "callspec", None)
    chosen = callspec.params.get("any_spark") if callspec else None
    return chosen == "connect" or (chosen is None and "connect" in request.fixturenames)


@pytest.fixture(autouse=True)
def _api_mode(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let ``pyspark.sql.functions`` serve the session of this test.

    PySpark decides by a variable that the first Connect session of a process sets for good.
    """
    if _on_connect(request):
        os.environ[_CONNECT_MODE] = "1"
    else:
        os.environ.pop(_CONNECT_MODE, None)
    yield
    os.environ.pop(_CONNECT_MODE, None)


@pytest.fixture
def warehouse(request: pytest.FixtureRequest) -> Path:
    """The folder of the tables of the session that the test uses."""
    if _on_connect(request):
        server: ConnectServer = request.getfixturevalue("connect_service")
        return server.warehouse
    folder: Path = request.getfixturevalue("local_warehouse")
    return folder


@pytest.fixture
def session(request: pytest.FixtureRequest) -> SparkSession:
    """The session that the test uses: ``any_spark``, ``connect`` or else ``spark``."""
    if "any_spark" in request.fixturenames:
        name = "any_spark"
    else:
        name = "connect" if _on_connect(request) else "spark"
    found: SparkSession = request.getfixturevalue(name)
    return found


@pytest.fixture
def compiled(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Rules are evaluated by compiled code, as they are by Spark's default.

    In the test's session and in those that deltacheck opens beside it. Compiled code computes
    what occurs twice before anything else, which interpreted code never does.
    """
    by_default = {
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
    }
    ours = {**session_module.VERDICT_SETTINGS, **by_default}
    monkeypatch.setattr(session_module, "VERDICT_SETTINGS", ours)
    with settings(session, by_default):
        yield


@pytest.fixture
def database(session: SparkSession, warehouse: Path) -> Iterator[str]:
    """The name of a new database at ``<warehouse>/<name>``; it is dropped afterwards."""
    name = f"db_{uuid4().hex[:12]}"
    session.sql(f"CREATE DATABASE {name} LOCATION '{warehouse / name}'")
    yield name
    for schema in (name, f"{name}_deltacheck"):
        session.sql(f"DROP DATABASE IF EXISTS {schema} CASCADE")
        shutil.rmtree(warehouse / schema, ignore_errors=True)


@pytest.fixture
def environment(request: pytest.FixtureRequest, database: str) -> Environment:
    """The environment of the test's session, its ledger in ``<database>_deltacheck``."""
    ledger = f"{database}_deltacheck"
    if _on_connect(request):
        server: ConnectServer = request.getfixturevalue("connect_service")
        return Environment("connect", spark=server.url, schema=ledger)
    local: Environment = request.getfixturevalue("local_environment")
    return Environment("local", warehouse=local.warehouse, schema=ledger, conf=local.conf)


@pytest.fixture
def seen() -> Iterator[list[Event]]:
    """The events that a handler has been called with."""
    found: list[Event] = []
    deltacheck.on_event(found.append)
    yield found
    deltacheck.off_event(found.append)
