"""A local warehouse: tables found by their folders, and processes that take turns."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta.warehouse import (
    create_schema,
    exclusive,
    is_delta,
    register,
    run_lock,
    tables,
    warehouse_of,
)
from deltacheck.errors import EngineError, NotDeltaError, TableError
from deltacheck.names import TableName
from tests.harness.processes import run_python, start_python


@pytest.fixture
def unknown(spark: SparkSession, local_warehouse: Path) -> Iterator[str]:
    """A schema whose tables only the folders know, as after a new start: t, p and e.

    ``t`` is a Delta table of two rows, ``p`` a folder of Parquet files, ``e`` an empty one,
    ``no-name`` one whose name Spark's own catalog does not take.
    """
    name = f"u_{uuid4().hex[:12]}"
    folder = local_warehouse / name
    spark.sql("SELECT 1 AS a UNION SELECT 2").write.format("delta").save(f"{folder}/t")
    spark.range(1).write.parquet(f"{folder}/p")
    (folder / "e" / "_delta_log").mkdir(parents=True)
    spark.range(1).write.format("delta").save(f"{folder}/no-name")
    yield name
    spark.sql(f"DROP SCHEMA IF EXISTS {name} CASCADE")


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


class TestRegister:
    """``register``"""

    def test_a_folder_is_a_table_when_it_is_asked_for(
        self, spark: SparkSession, local_environment: Environment, unknown: str
    ) -> None:
        """It can be read by name, and neither a commit nor a file was made."""
        table = TableName.parse(f"{unknown}.T")
        before = files(warehouse_of(spark) or Path())
        register(spark, local_environment, table)
        register(spark, local_environment, table)
        assert spark.table(table.sql).count() == 2
        assert files(warehouse_of(spark) or Path()) == before
        assert spark.sql(f"DESCRIBE HISTORY {table.sql}").count() == 1

    def test_the_session_tells_where_its_warehouse_is(
        self, spark: SparkSession, unknown: str
    ) -> None:
        """An environment is not needed, and a sibling serves as well."""
        table = TableName.parse(f"spark_catalog.{unknown}.t")
        register(spark.newSession(), None, table)
        assert spark.table(table.sql).count() == 2

    @pytest.mark.parametrize(
        "name", ["nowhere.t", "{unknown}.nothing", "{unknown}.e", "{unknown}.no-name"]
    )
    def test_what_is_not_there_is_not_made(
        self, spark: SparkSession, local_environment: Environment, unknown: str, name: str
    ) -> None:
        """No folder, or one that is no table yet: nothing happens."""
        table = TableName.parse(name.format(unknown=unknown))
        before = files(warehouse_of(spark) or Path())
        register(spark, local_environment, table)
        assert files(warehouse_of(spark) or Path()) == before
        with pytest.raises(AnalysisException):
            spark.table(table.sql)

    @pytest.mark.parametrize("name", ["delta.`/some/where`", "other.schema.t", "`../up`.t"])
    def test_other_names_are_left_to_the_catalog(
        self, spark: SparkSession, local_environment: Environment, name: str
    ) -> None:
        """Path tables and other catalogs are not the warehouse's, nor is a way out of it."""
        before = spark.catalog.listDatabases()
        register(spark, local_environment, TableName.parse(name))
        assert spark.catalog.listDatabases() == before

    def test_parquet_is_told_apart(
        self, spark: SparkSession, local_environment: Environment, unknown: str
    ) -> None:
        """A folder of Parquet files is not Delta, and the error says what it is."""
        with pytest.raises(NotDeltaError, match="Parquet files without a Delta log") as raised:
            register(spark, local_environment, TableName.parse(f"{unknown}.p"))
        assert raised.value.table == f"{unknown}.p"

    def test_names_that_differ_only_in_case(
        self, spark: SparkSession, local_environment: Environment, unknown: str
    ) -> None:
        """An exact name is taken; any other could be either, and is refused."""
        for name in ("Same", "SAME"):
            spark.range(3).write.format("delta").save(
                f"{local_environment.warehouse}/{unknown}/{name}"
            )
        register(spark, local_environment, TableName.parse(f"{unknown}.Same"))
        assert spark.table(f"{unknown}.same").count() == 3
        with pytest.raises(TableError, match="could be any of SAME, Same"):
            register(spark, local_environment, TableName.parse(f"{unknown}.same"))

    def test_a_schema_that_spark_placed(
        self, spark: SparkSession, local_environment: Environment
    ) -> None:
        """CREATE DATABASE without a place makes ``name.db``, which is found as ``name``."""
        name = f"s_{uuid4().hex[:12]}"
        spark.sql(f"CREATE DATABASE {name}")
        spark.sql(f"CREATE TABLE {name}.t (a INT) USING DELTA")
        assert TableName.parse(f"{name}.t") in tables(local_environment)
        spark.sql(f"DROP DATABASE {name} CASCADE")

    def test_a_table_of_the_default_schema(
        self, spark: SparkSession, local_environment: Environment
    ) -> None:
        """A name without a schema lies in the warehouse itself."""
        name = f"d_{uuid4().hex[:12]}"
        spark.range(2).write.format("delta").save(f"{local_environment.warehouse}/{name}")
        register(spark, local_environment, TableName.parse(name))
        assert spark.table(name).count() == 2
        assert TableName.parse(name) in tables(local_environment)
        spark.sql(f"DROP TABLE {name}")


class TestTables:
    """``tables``"""

    def test_lists_delta_tables_alone(self, local_environment: Environment, unknown: str) -> None:
        """Parquet, empty logs and what Spark could not name are not tables."""
        root = warehouse_of(local_environment)
        assert root
        assert is_delta(root / unknown / "t")
        found = [table for table in tables(local_environment) if table.schema == unknown]
        assert found == [TableName.parse(f"{unknown}.t")]

    def test_a_warehouse_that_is_not_there_has_none(self, tmp_path: Path) -> None:
        """Nor is it made by looking."""
        assert tables(Environment("new", warehouse=tmp_path / "new")) == ()
        assert list(tmp_path.iterdir()) == []

    def test_other_environments_have_none(self) -> None:
        """Their tables are known to their catalog."""
        assert tables(Environment("prod", spark="sc://127.0.0.1")) == ()


class TestCreateSchema:
    """``create_schema``"""

    def test_makes_the_schema_and_its_folder(
        self, spark: SparkSession, local_environment: Environment
    ) -> None:
        """A table made there is found by its folder, in this process and later."""
        table = TableName.parse(f"c_{uuid4().hex[:12]}.t")
        create_schema(spark, local_environment, table)
        create_schema(spark, None, table)
        spark.sql(f"CREATE TABLE {table.sql} (a INT) USING DELTA")
        assert table in tables(local_environment)
        spark.sql(f"DROP SCHEMA {table.schema} CASCADE")

    @pytest.mark.connect
    def test_in_a_catalog(self, connect: SparkSession) -> None:
        """Elsewhere the catalog decides where a schema lies."""
        schema = f"c_{uuid4().hex[:12]}"
        table = TableName((schema, "t"))
        create_schema(connect, Environment("connect", spark="sc://127.0.0.1"), table)
        create_schema(connect, None, table)
        assert connect.catalog.databaseExists(schema)
        connect.sql(f"DROP SCHEMA {schema}")

    @pytest.mark.parametrize("name", ["t", "delta.`/some/where`"])
    def test_a_name_without_a_schema_needs_none(
        self, spark: SparkSession, local_environment: Environment, name: str
    ) -> None:
        """Nothing is made for it."""
        before = spark.catalog.listDatabases()
        create_schema(spark, local_environment, TableName.parse(name))
        assert spark.catalog.listDatabases() == before


HOLD = """
    import sys, threading
    from pathlib import Path
    from deltacheck.config import Environment
    from deltacheck.delta.warehouse import exclusive, run_lock

    with {lock}(Environment("local", warehouse=Path({folder!r}))):
        print("held", flush=True)
        threading.Event().wait(120)
"""


def running() -> dict[int, int]:
    """The processes that have not ended, and their parents."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                found[int(stat.parent.name)] = int(parent)
    return found


def children(parent: int) -> set[int]:
    return {process for process, above in running().items() if above == parent}


class TestLocks:
    """``exclusive`` and ``run_lock``"""

    def test_a_killed_holder_frees_the_turn(self, tmp_path: Path) -> None:
        """Another process waits for as long as the holder lives, and not a moment longer."""
        place = Environment("local", warehouse=tmp_path)
        taken = threading.Event()

        def take() -> None:
            with exclusive(place):
                taken.set()

        with start_python(HOLD.format(lock="exclusive", folder=str(tmp_path))) as holder:
            assert holder.stdout
            assert holder.stdout.readline() == "held\n"
            waiter = threading.Thread(target=take)
            waiter.start()
            assert not taken.wait(0.3)
            os.killpg(holder.pid, signal.SIGKILL)
            assert taken.wait(10)
            waiter.join()

    @pytest.mark.slow
    @pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
    def test_a_killed_holder_keeps_its_turn_while_its_java_lives(self, tmp_path: Path) -> None:
        """The Java that a killed process leaves behind may still commit: nobody else does."""
        place = Environment("local", warehouse=tmp_path)
        with exclusive(place):
            assert (tmp_path / ".deltacheck.lock").exists()
        code = f"""
            import threading
            from pathlib import Path
            from deltacheck.config import Environment
            from deltacheck.delta.session import open_session
            from deltacheck.delta.warehouse import exclusive

            session = open_session(Environment("local", warehouse=Path({str(tmp_path)!r})))
            with exclusive(session):
                pass
            with exclusive(session):
                print("held", flush=True)
                threading.Event().wait(120)
        """
        with start_python(code) as holder:
            assert holder.stdout
            assert holder.stdout.readline() == "held\n"
            java = children(holder.pid)
            assert len(java) == 1
            os.kill(holder.pid, signal.SIGKILL)
            with exclusive(place):
                assert not java & running().keys()

    def test_a_killed_run_is_seen_to_be_dead(self, tmp_path: Path) -> None:
        """While another process runs, the lock says no; once it is killed, yes."""
        place = Environment("local", warehouse=tmp_path)
        with start_python(HOLD.format(lock="run_lock", folder=str(tmp_path))) as holder:
            assert holder.stdout
            assert holder.stdout.readline() == "held\n"
            with run_lock(place) as mine:
                assert mine is False
            os.killpg(holder.pid, signal.SIGKILL)
            holder.wait(10)
            with run_lock(place) as mine:
                assert mine is True
                with run_lock(place) as second:
                    assert second is False

    def test_a_thread_may_take_its_turn_again(self, tmp_path: Path) -> None:
        """Other threads of the process wait until it is given back for the last time."""
        place = Environment("local", warehouse=tmp_path)
        order: list[str] = []

        def other() -> None:
            with exclusive(place):
                order.append("other")

        thread = threading.Thread(target=other)
        with exclusive(place), exclusive(place):
            thread.start()
            thread.join(0.2)
            order.append("first")
        thread.join()
        assert order == ["first", "other"]

    def test_an_error_gives_the_turn_back(self, tmp_path: Path) -> None:
        """What follows can take it."""
        place = Environment("local", warehouse=tmp_path)
        with pytest.raises(KeyError), exclusive(place):
            raise KeyError
        code, out, _ = run_python(
            HOLD.format(lock="exclusive", folder=str(tmp_path)).replace("wait(120)", "wait(0)")
        )
        assert (code, out) == (0, "held\n")

    def test_the_turn_and_the_run_are_two_locks(self, tmp_path: Path) -> None:
        """A run commits while it holds its own lock."""
        place = Environment("local", warehouse=tmp_path)
        with run_lock(place) as mine, exclusive(place):
            assert mine is True

    def test_a_session_takes_the_turn_of_its_warehouse(
        self, spark: SparkSession, local_warehouse: Path
    ) -> None:
        """An embedded session, or its sibling, says which warehouse it commits to."""
        with exclusive(spark.newSession()):
            code, out, _ = run_python(
                f"""
                import fcntl
                with open({str(local_warehouse / ".deltacheck.lock")!r}, "ab") as file:
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        print("taken")
                """
            )
        assert (code, out) == (0, "taken\n")

    def test_elsewhere_nothing_is_held(self, tmp_path: Path) -> None:
        """Real stores and catalogs protect their tables themselves."""
        place = Environment("prod", spark="sc://127.0.0.1", warehouse=tmp_path)
        with run_lock(place) as mine, exclusive(place):
            assert mine is None
        assert list(tmp_path.iterdir()) == []

    def test_a_warehouse_that_cannot_be_made_is_told(self, tmp_path: Path) -> None:
        """The error names it."""
        (tmp_path / "file").write_text("")
        place = Environment("local", warehouse=tmp_path / "file" / "warehouse")
        with pytest.raises(EngineError, match="cannot be written to"), exclusive(place):
            pytest.fail("the block must not run")


def test_a_table_is_unknown_until_it_is_asked_for(spark: SparkSession, unknown: str) -> None:
    """Nothing is registered at the start: the catalog learns tables one by one."""
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table(f"{unknown}.t")
