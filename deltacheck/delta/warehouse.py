"""A local warehouse: a folder whose folders are tables.

``<warehouse>/shop/orders`` is the table ``shop.orders``, and ``<warehouse>/orders`` is
``orders`` of the schema ``default``. There is no metastore: a table is made known to the
session's catalog when its name is first asked for, which commits nothing. A folder that Spark
has made for a schema on its own, ``shop.db``, is the schema's as well.

Delta does not protect a table on a local file system against two JVMs that commit in the
same instant, so deltacheck's processes take turns by a lock of the operating system, which is
free again when its holder dies. A killed process leaves a Java behind that goes on for some
seconds and may still commit; where the lock's file was there when that Java was started, it
holds its process's turn until it has ended too.

On any other environment the functions do nothing, or what its catalog does.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Union

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.errors import EngineError, NotDeltaError, TableError
from deltacheck.names import TableName, literal, quote

SETTING = "spark.deltacheck.warehouse"
"""The setting by which an embedded session tells where its warehouse is."""

COMMIT_LOCK = ".deltacheck.lock"
RUN_LOCK = ".deltacheck.run.lock"
# What Spark's own catalog takes as a name (SessionCatalog.validateName).
_NAME = re.compile(r"\w+", re.ASCII)
_DEFAULT = "default"
_CATALOG = "spark_catalog"

Place = Union[SparkSession, Environment]


def warehouse_of(place: Place) -> Path | None:
    """The folder of a local environment or of an embedded session, else None."""
    if isinstance(place, Environment):
        local = place.spark == "local" and place.warehouse is not None
        return place.warehouse.resolve() if local and place.warehouse else None
    told = place.conf.get(SETTING, None)
    return None if told is None else Path(told)


def is_delta(folder: Path) -> bool:
    """Say whether a folder holds a Delta table: a log with at least one commit."""
    return next((folder / "_delta_log").glob("*.json"), None) is not None


def tables(environment: Environment) -> tuple[TableName, ...]:
    """All Delta tables of a local warehouse, by name; none for other environments.

    Looks at folders alone: no session, nothing written.
    """
    root = warehouse_of(environment)
    found: list[TableName] = []
    for folder in _folders(root):
        if is_delta(folder):
            found.append(TableName((folder.name,)))
        else:
            schema = folder.name.removesuffix(".db")
            found += [TableName((schema, sub.name)) for sub in _folders(folder) if is_delta(sub)]
    return tuple(sorted(found, key=lambda table: table.key))


def register(session: SparkSession, environment: Environment | None, table: TableName) -> None:
    """Make a table of a local warehouse known to the session's catalog.

    Makes no commit, and creates nothing on disk: where there is no folder of that name,
    nothing happens, and the catalog will not know the table.

    Args:
        environment: Where the table is; None: the session tells.

    Raises:
        NotDeltaError: The table's folder holds Parquet files without a Delta log.
        TableError: Two folders have that name, but for upper and lower case.
    """
    root = _root(session, environment)
    if root is None or not _in_catalog(table):
        return
    schema = _schema_folder(root, table)
    if schema is None:
        return
    if schema != root:
        _create_database(session, table, schema)
    folder = _child(schema, table.name, table)
    if folder is None:
        return
    if is_delta(folder):
        name = TableName((table.schema or _DEFAULT, table.name))
        place = literal(folder.as_posix())
        session.sql(f"CREATE TABLE IF NOT EXISTS {name.sql} USING DELTA LOCATION {place}")
    elif next(folder.rglob("*.parquet"), None) is not None:
        raise NotDeltaError(
            f"{table} is a folder of Parquet files without a Delta log ({folder}); it was left "
            "untouched.",
            hint="CONVERT TO DELTA parquet.`<folder>` makes it a Delta table.",
            table=str(table),
        )


def create_schema(session: SparkSession, environment: Environment | None, table: TableName) -> None:
    """Make the schema of a table where there is none, in a local warehouse with its folder.

    Args:
        environment: Where the table is to be; None: the session tells.
        table: A table of the schema. A path, or a name without a schema, needs none.
    """
    if table.schema is None:
        return
    root = _root(session, environment)
    if root is not None and _in_catalog(table):
        folder = _schema_folder(root, table)
        if folder != root:
            _create_database(session, table, folder or root / table.schema)
        return
    name = ".".join(quote(part) for part in table.parts[:-1])
    if not session.catalog.databaseExists(name):
        session.sql(f"CREATE SCHEMA IF NOT EXISTS {name}")


def _root(session: SparkSession, environment: Environment | None) -> Path | None:
    return warehouse_of(session if environment is None else environment)


def _in_catalog(table: TableName) -> bool:
    return table.path is None and (table.catalog or _CATALOG).lower() == _CATALOG


def _create_database(session: SparkSession, table: TableName, folder: Path) -> None:
    schema = table.schema or _DEFAULT
    if not session.catalog.databaseExists(quote(schema)):
        place = literal(folder.as_posix())
        session.sql(f"CREATE DATABASE IF NOT EXISTS {quote(schema)} LOCATION {place}")


def _schema_folder(root: Path, table: TableName) -> Path | None:
    if table.schema is None or table.schema.lower() == _DEFAULT:
        return root
    return _child(root, table.schema, table) or _child(root, f"{table.schema}.db", table)


def _child(folder: Path, name: str, table: TableName) -> Path | None:
    same = [sub for sub in _folders(folder) if sub.name.casefold() == name.casefold()]
    exact = [sub for sub in same if sub.name == name]
    if len(same) > 1 and not exact:
        raise TableError(
            f"{table} could be any of {', '.join(sub.name for sub in same)} in {folder}; "
            "nothing was done.",
            hint="Names of tables compare without regard to case: rename one of the folders.",
            table=str(table),
        )
    return next(iter(exact or same), None)


def _folders(folder: Path | None) -> list[Path]:
    if folder is None or not folder.is_dir():
        return []
    return sorted(
        sub
        for sub in folder.iterdir()
        if _NAME.fullmatch(sub.name.removesuffix(".db")) and sub.is_dir()
    )


@dataclass
class _Turn:
    """The lock of one warehouse in this process: its threads queue here, then as one.

    Attributes:
        file: The open file by which the turn is held now.
        handed: The open file that this process's Java has inherited.
    """

    guard: threading.RLock = field(default_factory=threading.RLock)
    depth: int = 0
    file: IO[bytes] | None = None
    handed: IO[bytes] | None = None


_turns: dict[Path, _Turn] = {}
_turns_guard = threading.Lock()


@contextmanager
def exclusive(place: Place) -> Iterator[None]:
    """Hold a local warehouse while committing to it; wait for whoever holds it.

    Between processes by a lock of the operating system on ``.deltacheck.lock`` in the
    warehouse, between threads of one process by a lock of its own; the thread that holds it
    may take it again. Only for what writes: the warehouse is made if it is not there.

    Args:
        place: An embedded session or a local environment; for others nothing is held.

    Raises:
        EngineError: The warehouse cannot be written to.
    """
    root = warehouse_of(place)
    if root is None:
        yield
        return
    turn = _turn(root)
    with turn.guard:
        if turn.depth == 0:
            _take(turn, root)
        turn.depth += 1
        try:
            yield
        finally:
            turn.depth -= 1
            if turn.depth == 0:
                _give_back(turn)


def inherited(root: Path) -> tuple[int, ...]:
    """The file descriptors that a Java must inherit in order to hold this process's turns.

    A lock of the operating system belongs to the open file: it is free when all processes
    that share the file have closed it or ended. Nothing is created, so that there is nothing
    to inherit before the first commit to a warehouse, nor on Windows.

    Args:
        root: The warehouse's folder.
    """
    turn = _turn(root)
    with turn.guard:
        if turn.handed is None and sys.platform != "win32" and (root / COMMIT_LOCK).exists():
            turn.handed = _open(root, COMMIT_LOCK)
        return () if turn.handed is None else (turn.handed.fileno(),)


def _turn(root: Path) -> _Turn:
    with _turns_guard:
        return _turns.setdefault(root, _Turn())


def _take(turn: _Turn, root: Path) -> None:
    handed = turn.handed
    if handed is not None and _is_the_file(handed, root / COMMIT_LOCK):
        turn.file = handed
    else:
        turn.file = _open(root, COMMIT_LOCK)
    _lock(turn.file, wait=True)


def _give_back(turn: _Turn) -> None:
    if turn.file is None:
        return
    if turn.file is turn.handed:
        _unlock(turn.file)
    else:
        turn.file.close()
    turn.file = None


def _is_the_file(file: IO[bytes], path: Path) -> bool:
    # A warehouse that was removed and made again has another file of that name.
    return path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())


@contextmanager
def run_lock(environment: Environment) -> Iterator[bool | None]:
    """Try to be the one run on a local warehouse; never waits.

    Yields:
        True: no other run is alive, and none begins while the context lasts. False: another
        run, of any process or of this one, is alive. None: the environment is not local, and
        this cannot be told.

    Raises:
        EngineError: The warehouse cannot be written to.
    """
    root = warehouse_of(environment)
    if root is None:
        yield None
        return
    with _open(root, RUN_LOCK) as file:
        yield _lock(file, wait=False)


def _open(root: Path, name: str) -> IO[bytes]:
    try:
        root.mkdir(parents=True, exist_ok=True)
        return (root / name).open("ab")
    except OSError as error:
        raise EngineError(
            f"The warehouse {root} cannot be written to: {error.strerror}; nothing was done."
        ) from None


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes], *, wait: bool) -> bool:
        file.seek(0)
        while True:
            try:
                # LK_LOCK tries for ten seconds.
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except OSError:
                if not wait:
                    return False
            else:
                return True

    def _unlock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: IO[bytes], *, wait: bool) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
