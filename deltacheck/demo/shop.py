"""The worked example: an orders shop whose tables are dirty on purpose.

Makes a project in a new folder, fills its tables from small CSV files, and leaves the folder.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from deltacheck.delta.warehouse import create_schema, exclusive
from deltacheck.errors import UsageError
from deltacheck.names import TableName

ORDERS = (
    "order_id BIGINT, customer_id BIGINT, amount DECIMAL(10,2), status STRING, ordered_on DATE, "
    "country STRING"
)
CUSTOMERS = "customer_id BIGINT, email STRING, country STRING"

CONFIGURATION = """\
default_env = "local"

[env.local]
spark = "local"
warehouse = "warehouse"
"""


def make_project(folder: Path) -> None:
    """Make the example's project: its configuration, rules and migrations.

    Raises:
        UsageError: The folder is there already and not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"{folder} is there already and not empty; nothing was done.",
            hint="Name a new folder: deltacheck demo FOLDER.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "deltacheck.toml").write_text(CONFIGURATION, encoding="utf-8")
    for name in ("constraints", "versions"):
        shutil.copytree(_shipped(name), folder / name, ignore=shutil.ignore_patterns("__pycache__"))


def _shipped(name: str) -> Path:
    # A wheel carries them inside the package; a checkout has its one copy at the root.
    here = Path(__file__).resolve().parent
    return here / name if (here / name).is_dir() else here.parents[1] / name


def fill_tables(session: SparkSession) -> None:
    """Make the shop's two tables, bad rows included."""
    for table, columns, name in (
        ("shop.customers", CUSTOMERS, "customers"),
        ("shop.orders", ORDERS, "orders"),
    ):
        create_schema(session, None, TableName.parse(table))
        with exclusive(session):
            _read(session, name, columns).write.format("delta").saveAsTable(table)


def batch(session: SparkSession, name: str) -> DataFrame:
    """A batch of orders as a job would have it: ``good`` or ``bad``."""
    return _read(session, f"orders_{name}_batch", ORDERS)


def _read(session: SparkSession, name: str, columns: str) -> DataFrame:
    path = Path(__file__).resolve().parent / "data" / f"{name}.csv"
    return session.read.csv(path.as_uri(), schema=columns, header=True)
