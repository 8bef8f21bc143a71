"""Real processes of the command line: two at once, and one that is told to stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.connect_server import SHORT_LIVED
from tests.harness.processes import REPOSITORY, run_python
from tests.migrate.victim import SLOW, SLOW_ROWS

CONFIG = f"""
[env.local]
spark = "local"
warehouse = "warehouse"
conf = {{ "spark.master" = "local[2]", "spark.driver.extraJavaOptions" = "{SHORT_LIVED}" }}
"""
MIGRATION = f'''
"""amounts are positive"""

revision = "0001"
down_revision = None


def upgrade(op):
    op.add_check("shop.orders", "amount_positive", "amount > 0 AND {SLOW}", gate="100%")


def downgrade(op):
    op.drop_check("shop.orders", "amount_positive")
'''
SETUP = f"""
import deltacheck
from deltacheck.delta.warehouse import create_schema
from deltacheck.names import TableName

session = deltacheck.session()
create_schema(session, None, TableName.parse("shop.orders"))
session.sql("CREATE TABLE shop.orders (id INT, amount DOUBLE) USING delta")
session.sql("INSERT INTO shop.orders {SLOW_ROWS}")
session.stop()
"""
ACCOUNT = """
import json

import deltacheck
from deltacheck.delta.warehouse import register
from deltacheck.names import TableName

session = deltacheck.session()
for name in ("shop.orders", "shop.orders_quarantine", "deltacheck.journal"):
    register(session, None, TableName.parse(name))
count = lambda query: session.sql(query).collect()[0][0]
print(json.dumps({
    "left": count("SELECT count(*) FROM shop.orders"),
    "held": count("SELECT count(*) FROM shop.orders_quarantine WHERE _deltacheck_state = 'held'"),
    "applied": count("SELECT count(*) FROM deltacheck.journal WHERE kind = 'revision'"),
    "open": count("SELECT count(DISTINCT run) FILTER (WHERE kind = 'start') - "
                  "count(DISTINCT run) FILTER (WHERE kind = 'end') FROM deltacheck.journal"),
}))
session.stop()
"""
DONE = {"left": 39960, "held": 40, "applied": 1, "open": 0}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "deltacheck.toml").write_text(CONFIG)
    (tmp_path / "versions").mkdir()
    (tmp_path / "versions" / "0001_amounts.py").write_text(MIGRATION)
    code, _, problem = run_python(SETUP, cwd=tmp_path)
    assert code == 0, problem
    return tmp_path


def upgrade(project: Path, *options: str) -> subprocess.Popen[str]:
    """Start ``deltacheck upgrade``."""
    return subprocess.Popen(
        [sys.executable, "-m", "deltacheck.cli.app", "upgrade", "--yes", "--json", *options],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def account(project: Path) -> dict[str, int]:
    """What is where, told by a new process."""
    code, out, problem = run_python(ACCOUNT, cwd=project)
    assert code == 0, problem
    found: dict[str, int] = json.loads(out.splitlines()[-1])
    return found


@pytest.mark.slow
def test_two_processes_on_one_local_warehouse(project: Path) -> None:
    """One runs; the other stops with exit code 5, or comes after and finds nothing to do."""
    both = [upgrade(project), upgrade(project)]
    ended = [process.communicate(timeout=900) for process in both]
    codes = sorted(process.returncode for process in both)
    assert codes in ([0, 5], [0, 0]), ended
    assert account(project) == DONE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "Ctrl-C"]
)
def test_told_to_stop_it_leaves_an_ended_journal(
    project: Path, number: signal.Signals, code: int
) -> None:
    """The lock is given back, and the next run goes on at once."""
    journal = project / "warehouse" / "deltacheck" / "journal" / "_delta_log"
    process = upgrade(project)
    while not (journal / f"{1:020}.json").exists() and process.poll() is None:
        # The run has the lock with the journal's second commit.
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
    process.send_signal(number)
    _, problem = process.communicate(timeout=900)
    assert process.returncode == code, problem
    with upgrade(project) as again:
        _, problem = again.communicate(timeout=900)
    assert again.returncode == 0, problem
    assert account(project) == DONE
