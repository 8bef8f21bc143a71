"""A project's files: begun, grown and looked at.

Promises that no file is ever overwritten. Knows no Spark: nothing here imports it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from deltacheck.config import load_project
from deltacheck.errors import ConfigError, DeltacheckError, UsageError
from deltacheck.lint import Finding, lint_project
from deltacheck.revisions.autogenerate import difference
from deltacheck.revisions.files import load_history, write_merge, write_revision
from deltacheck.revisions.graph import History
from deltacheck.revisions.operations import Operation
from deltacheck.revisions.state import state_after
from deltacheck.rules.files import read_rules, survey_rules
from deltacheck.rules.model import RuleSet
from deltacheck.rules.selection import Selection


class Template(str, Enum):
    """Where a new project's tables are."""

    LOCAL = "local"
    CONNECT = "connect"
    DATABRICKS = "databricks"


_LOCAL = """\
# Where the tables are. `deltacheck --env NAME ...` picks one of the environments.
default_env = "local"

[env.local]
spark = "local"              # a Spark inside deltacheck's own process
warehouse = "warehouse"      # warehouse/shop/orders is the table shop.orders
# schema = "deltacheck"      # deltacheck's own tables
# quarantine = "{schema}_quarantine.{table}"    # default: {table}_quarantine beside the table
"""

_CONNECT = """\
# Where the tables are. `deltacheck --env NAME ...` picks one of the environments.
default_env = "dev"

[env.dev]
spark = "${DELTACHECK_SPARK:-sc://localhost:15002}"    # a Spark Connect server
schema = "deltacheck"        # deltacheck's own tables; catalog.schema where there are catalogs
# quarantine = "{schema}_quarantine.{table}"    # default: {table}_quarantine beside the table

# [env.prod]
# spark = "sc://spark.internal:15002"
# schema = "ops.deltacheck"
"""

_DATABRICKS = """\
# Where the tables are. `deltacheck --env NAME ...` picks one of the environments.
default_env = "dev"

[env.dev]
spark = "spark_session:databricks"    # the function in spark_session.py, run from this folder
schema = "${CATALOG:-dev}.deltacheck"    # deltacheck's own tables
quarantine = "{catalog}.{schema}_quarantine.{table}"

# [env.prod]
# spark = "spark_session:databricks"
# schema = "prod.deltacheck"
# quarantine = "{catalog}.{schema}_quarantine.{table}"
"""

_SPARK_SESSION = '''\
"""The Spark session that deltacheck works with."""


def databricks():
    """Databricks Connect: needs `pip install databricks-connect` and a configured profile."""
    from databricks.connect import DatabricksSession

    return DatabricksSession.builder.getOrCreate()
'''

_RULES = """\
# An example: the rules of one table, as sentences. Copy it to orders.yml and make it yours, then
# `deltacheck revision --autogenerate -m "orders can be found again"` writes the migration.
table: {table}
description: One row per order.
rules:
  order_id_present:
    not_null: order_id
  amount_positive:
    check: amount > 0
    description: An order amount is always greater than zero.
    on_violation: quarantine    # quarantine (default) | fail | drop | warn
gate: 5%    # more bad rows than that, and nothing is moved or written
"""

_FILES: Mapping[Template, Mapping[str, str]] = {
    Template.LOCAL: {"deltacheck.toml": _LOCAL},
    Template.CONNECT: {"deltacheck.toml": _CONNECT},
    Template.DATABRICKS: {"deltacheck.toml": _DATABRICKS, "spark_session.py": _SPARK_SESSION},
}
_TABLES = {Template.DATABRICKS: "${CATALOG:-dev}.shop.orders"}


def init_project(folder: Path, template: Template = Template.LOCAL) -> tuple[Path, ...]:
    """Begin a project: its configuration, and folders for rules and migrations.

    Args:
        folder: Made if it is not there.
        template: What the configuration says of the environments.

    Returns:
        The new files.

    Raises:
        UsageError: There is a project already, a file is in the way, or the folder cannot be
            written. Nothing is overwritten.
    """
    files = {
        **_FILES[template],
        "constraints/orders.yml.example": _RULES.format(table=_TABLES.get(template, "shop.orders")),
        "versions/.gitkeep": "",
    }
    if _is_project(folder):
        raise UsageError(
            f"{folder} has a deltacheck project already; nothing was done.",
            hint="Change its configuration by hand, or name a new folder.",
        )
    in_the_way = [name for name in files if (folder / name).exists()]
    if in_the_way:
        raise UsageError(
            f"{folder / in_the_way[0]} is there already; nothing was done.",
            hint="Move it away, or name a new folder.",
        )
    made = []
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
            made.append(path)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written: {error.strerror}. Made before that: "
            f"{', '.join(path.name for path in made) or 'nothing'}."
        ) from None
    return tuple(made)


def _is_project(folder: Path) -> bool:
    if (folder / "deltacheck.toml").exists():
        return True
    try:
        load_project(folder)
    except ConfigError:
        return False
    return True


@dataclass(frozen=True)
class NewRevision:
    """A migration that was written, or that there was no need to write.

    Attributes:
        path: The new file; None: there was nothing to put into one.
        revision: Its id.
        down_revision: The ids of its parents.
        operations: What it does.
    """

    path: Path | None
    revision: str | None = None
    down_revision: tuple[str, ...] = ()
    operations: tuple[Operation, ...] = ()


def new_revision(
    project: Path | str = ".",
    message: str = "",
    *,
    autogenerate: bool = False,
    revision: str | None = None,
) -> NewRevision:
    """Write the migration that follows the newest one.

    Args:
        project: The project's folder.
        message: What the migration is for.
        autogenerate: Fill it with the difference between ``constraints/`` and what the
            migrations add up to; where there is none, no file is made.
        revision: Its id; default: the next number.

    Raises:
        ConfigError: There is no project.
        HistoryError: The migrations are broken, or there are two heads.
        DeclarationError: A file in ``constraints/`` is broken.
        UsageError: The id is taken, or the file cannot be written.
    """
    found = load_project(project)
    history = load_history(found.versions)
    history.head()
    operations: tuple[Operation, ...] = ()
    if autogenerate:
        operations = difference(read_rules(found.constraints), state_after(history.revisions))
        if not operations:
            return NewRevision(None)
    path = write_revision(found.versions, history, message, operations, revision=revision)
    return _written(found.versions, path, operations)


def merge_heads(
    project: Path | str = ".", message: str = "", *, revision: str | None = None
) -> NewRevision:
    """Write a migration that joins all heads.

    Raises:
        ConfigError: There is no project.
        HistoryError: The migrations are broken.
        UsageError: There are not two heads, the id is taken, or the file cannot be written.
    """
    versions = load_project(project).versions
    path = write_merge(versions, load_history(versions), message, revision=revision)
    return _written(versions, path, ())


def _written(versions: Path, path: Path, operations: tuple[Operation, ...]) -> NewRevision:
    # Read back: what was written is a migration, and the history stays one chain.
    made = next(one for one in load_history(versions).revisions if one.path == path)
    return NewRevision(path, made.revision, made.down_revision, operations)


def lint(
    project: Path | str = ".", *, tags: Collection[str] = (), owners: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Look for what is wrong or doubtful in rules and migrations; writes nothing.

    Args:
        project: The project's folder.
        tags: Only about rules that have one of these tags.
        owners: Only about rules that one of these answers for.

    Returns:
        The findings in the order of files and lines. What could not be read is among them,
        whatever was asked for.

    Raises:
        ConfigError: There is no project.
    """
    found = load_project(project)
    problems: list[DeltacheckError] = []
    rules: RuleSet = {}
    history: History | None = None
    if found.constraints.is_dir():
        rules, broken = survey_rules(found.constraints)
        problems += broken
    try:
        history = load_history(found.versions)
    except DeltacheckError as error:
        problems.append(error)
    findings = lint_project(rules, history, problems=problems)
    return tuple(_about(findings, rules, Selection(tags=tuple(tags), owners=tuple(owners))))


def _about(
    findings: tuple[Finding, ...], rules: RuleSet, selection: Selection
) -> Iterator[Finding]:
    chosen = {(str(name), rule.key) for name, rule in selection.rules(rules)}
    for finding in findings:
        unreadable = finding.code.startswith("DC0")
        named = (finding.table or "", (finding.rule or "").lower())
        if unreadable or selection.everything or named in chosen:
            yield finding


__all__ = [
    "NewRevision",
    "Template",
    "init_project",
    "lint",
    "merge_heads",
    "new_revision",
]
