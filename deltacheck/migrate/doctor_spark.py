"""What only a session can tell of an environment: Delta, the warehouse, ledger and tables.

Writes nothing, unless asked to try the rights by a table of its own that it drops again.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.delta import warehouse
from deltacheck.delta.commit import Statement, Tag, commit
from deltacheck.delta.failures import EngineFailure, failure_of
from deltacheck.delta.table import read_table
from deltacheck.errors import DeltacheckError
from deltacheck.ledger.journal import Journal, journal_name, now, read_journal
from deltacheck.migrate.doctor import Exam
from deltacheck.migrate.run import Scene, check_unedited, engine_versions
from deltacheck.names import TableName, split_path
from deltacheck.quarantine.layout import environment_quarantine
from deltacheck.quarantine.place import check_place
from deltacheck.revisions.state import state_after

_CATALOG = "spark.sql.catalog.spark_catalog"
_JARS = ("spark.driver.extraClassPath", "spark.jars")


def examine(exam: Exam, scene: Scene, *, write: bool) -> None:
    """Add what the environment's session tells.

    Args:
        write: Whether to try the rights.
    """
    if not _delta(exam, scene.session):
        return
    _warehouse(exam, scene.environment)
    journal = exam.look("ledger", lambda: _ledger(exam, scene))
    if journal is not None:
        _rights(exam, scene, write=write)
    _tables(exam, scene)


def _delta(exam: Exam, session: SparkSession) -> bool:
    """Whether the session's SQL is Delta's: asked of a table that is not there."""
    try:
        session.sql(f"DESCRIBE HISTORY delta.`/deltacheck-doctor/{uuid4().hex}`").collect()
    except EngineFailure as error:
        if failure_of(error).family == "PARSE_SYNTAX_ERROR":
            exam.say(
                "delta",
                "this Spark does not know Delta's statements",
                "broken",
                "Start it with spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension.",
            )
            return False
    catalog = session.conf.get(_CATALOG, None)
    if catalog is None and session.conf.get("spark.sql.extensions", None) is not None:
        exam.say(
            "delta",
            "this Spark's catalog is not Delta's: on its tables ADD CONSTRAINT may do nothing",
            "broken",
            f"Start it with {_CATALOG}=org.apache.spark.sql.delta.catalog.DeltaCatalog.",
        )
        return False
    exam.say("delta", _delta_version(session) or "it knows Delta's statements")
    return True


def _delta_version(session: SparkSession) -> str:
    """What the session's settings tell of Delta's version, and where its jar is."""
    for setting in _JARS:
        for entry in re.split(rf"[,{os.pathsep}]", session.conf.get(setting, None) or ""):
            if match := re.search(r"delta-spark_[\d._]+-(\d+\.\d+\.\d+)\.jar$", entry):
                return f"{match[1]}, jars in {Path(entry).parent}"
    return ""


def _warehouse(exam: Exam, environment: Environment) -> None:
    root = warehouse.warehouse_of(environment)
    if root is None:
        return
    number = len(warehouse.tables(environment))
    there = next(one for one in (root, *root.parents) if one.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        exam.say(
            "warehouse",
            f"{there} cannot be written to",
            "broken",
            "Give yourself the right to, or name another warehouse in deltacheck.toml.",
        )
    elif not root.exists():
        exam.say("warehouse", f"{root} is not there yet; the first table makes it", "note")
    else:
        exam.say("warehouse", f"{root}, {number} tables")


def _ledger(exam: Exam, scene: Scene) -> Journal:
    name = journal_name(scene.environment)
    journal = read_journal(scene.session, scene.environment)
    if journal.id is None:
        exam.say("ledger", f"no {name} yet; the first upgrade makes it", "note")
        return journal
    at = next(reversed(journal.applied), "base")
    exam.say("ledger", f"{name}, {len(journal.runs)} runs, at {at}")
    exam.look("ledger", lambda: check_unedited(scene.history, journal))
    holder = journal.holder
    if holder is not None:
        dead = holder.expires <= now()
        exam.say(
            "ledger",
            f"run {holder.run} of {holder.who} "
            + ("ended without giving the lock back" if dead else "holds the lock"),
            "note",
            "The next upgrade settles it." if dead else "If it is dead: `deltacheck unlock`.",
        )
    _versions(exam, scene, journal)
    return journal


def _versions(exam: Exam, scene: Scene, journal: Journal) -> None:
    """Hold what runs here against what ran last."""
    last = next((entry.engine for entry in reversed(journal.entries) if entry.engine), None)
    if last is None:
        return
    before, here = json.loads(last), json.loads(engine_versions(scene.session))
    differing = [
        f"{what} {before[what]} then, {here[what]} now"
        for what in ("deltacheck", "spark", "delta-spark")
        if before.get(what) and here.get(what) and before[what] != here[what]
    ]
    if differing:
        exam.say("versions", f"other than in the last run: {'; '.join(differing)}", "note")
    else:
        exam.say("versions", "those of the last run")


def _rights(exam: Exam, scene: Scene, *, write: bool) -> None:
    if not write:
        exam.say("rights", "not tried", "skipped", "`deltacheck doctor --write` tries them.")
        return
    environment = scene.environment
    name = TableName((*split_path(environment.schema), f"doctor_{uuid4().hex[:12]}"))
    statements = (
        f"CREATE TABLE {name.sql} (id INT) USING delta",
        f"INSERT INTO {name.sql} VALUES (1), (2)",
        f"DELETE FROM {name.sql} WHERE id = 1",
        f"ALTER TABLE {name.sql} ADD CONSTRAINT id_known CHECK (id > 0)",
    )
    verb = "CREATE SCHEMA"
    try:
        try:
            warehouse.create_schema(scene.session, environment, name)
            for statement in statements:
                verb = statement.split()[0]
                commit(scene.session, name, Statement(statement), tag=Tag(job="doctor"))
        finally:
            scene.session.sql(f"DROP TABLE IF EXISTS {name.sql}")
    except EngineFailure as error:
        failure = failure_of(error)
        exam.say(
            "rights",
            f"{verb} in {environment.schema} failed: Spark says "
            f"{failure.condition or failure.kind}",
            "broken",
            f"deltacheck needs to make, write, alter and drop tables in {environment.schema}.",
        )
    else:
        exam.say("rights", f"create, insert, delete, alter and drop in {environment.schema}")


def _tables(exam: Exam, scene: Scene) -> None:
    names = sorted({*scene.rules, *state_after(scene.history.revisions)}, key=str)
    good = 0
    for name in names:
        try:
            table = read_table(scene.session, name)
            quarantine = environment_quarantine(name, scene.environment)
            check_place(scene.session, name, table.schema, quarantine)
        except DeltacheckError as error:
            exam.fail("tables", error)
            continue
        good += 1
        if table.append_only:
            exam.say(
                "tables",
                f"{name} is append-only: rows that break a new rule cannot be moved out",
                "note",
                "Set delta.appendOnly to false for the time of an upgrade.",
            )
    if names:
        verb = "is" if good == 1 else "are"
        exam.say("tables", f"{good} of {len(names)} {verb} there and can be worked on")
    else:
        exam.say("tables", "none is declared or migrated yet", "note")
