"""The project file: ``deltacheck.toml``, or ``[tool.deltacheck]`` in ``pyproject.toml``.

Says where a project's rules and migrations are and which environments they run on. Knows
nothing of Spark.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltacheck.errors import ConfigError
from deltacheck.events import EVENT_KINDS, Notify

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_ENVIRONMENT_KEYS = ("spark", "warehouse", "schema", "quarantine", "jars", "conf")
_PROJECT_KEYS = ("default_env", "constraints", "versions", "env", "notify")
_NOTIFY_KEYS = ("command", "logger", "events")
_PLACEHOLDERS = ("catalog", "schema", "table", "path")


@dataclass(frozen=True)
class Environment:
    """One place that migrations run on: a Spark and deltacheck's own schema in it.

    Attributes:
        name: As in ``[env.NAME]``.
        spark: ``local``, a Spark Connect address (``sc://host:port``), a Spark master URL,
            or ``package.module:function`` that returns a session.
        warehouse: The folder of a ``local`` environment's tables.
        schema: The schema of deltacheck's own tables, one or two parts.
        quarantine: The pattern of quarantine names, or None for ``{table}_quarantine``
            beside the table.
        jars: Delta's jars by path, for ``local``.
        conf: Further Spark settings, for ``local`` and master URLs.
    """

    name: str
    spark: str = "local"
    warehouse: Path | None = None
    schema: str = "deltacheck"
    quarantine: str | None = None
    jars: tuple[Path, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Project:
    """A folder with rules, migrations and the environments they run on.

    Attributes:
        path: The folder.
        file: The file that was read.
        notify: Where events are told; None: nowhere but in Python.
    """

    path: Path
    file: Path
    default_env: str
    environments: Mapping[str, Environment]
    constraints: Path
    versions: Path
    notify: Notify | None = None

    def environment(self, name: str | None = None) -> Environment:
        """The environment of that name, or the default one.

        Raises:
            ConfigError: The project has no environment of that name.
        """
        wanted = self.default_env if name is None else name
        if wanted not in self.environments:
            close = difflib.get_close_matches(wanted, self.environments, n=1)
            known = ", ".join(sorted(self.environments)) or "none"
            raise ConfigError(
                f"{self.file} has no environment {wanted!r}; nothing was done.",
                hint=(f"Did you mean {close[0]!r}? " if close else "") + f"It has: {known}.",
            )
        return self.environments[wanted]


def load_project(path: Path | str = ".", *, environ: Mapping[str, str] | None = None) -> Project:
    """Read the project of a folder.

    Args:
        path: The folder that has ``deltacheck.toml`` or a ``pyproject.toml`` with a table
            ``[tool.deltacheck]``.
        environ: Environment variables for ``${NAME}`` and ``${NAME:-default}`` in values;
            default: the process's own.

    Raises:
        ConfigError: There is neither file, or it is malformed.
    """
    folder = Path(path)
    variables = os.environ if environ is None else environ
    own, shared = folder / "deltacheck.toml", folder / "pyproject.toml"
    if own.is_file():
        return _project(folder, own, _read(own), variables)
    if shared.is_file():
        table = _read(shared).get("tool", {}).get("deltacheck")
        if table is not None:
            return _project(folder, shared, table, variables)
    raise ConfigError(
        f"There is no deltacheck project in {folder.resolve()}: it has no deltacheck.toml; "
        "nothing was done.",
        hint="Go to a folder that has one, name it with --project, or try `deltacheck demo`, "
        "which makes one.",
    )


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not readable TOML: {error}; nothing was done.") from None


def _project(
    folder: Path, file: Path, table: Mapping[str, Any], variables: Mapping[str, str]
) -> Project:
    values = _expanded(table, file, "", variables)
    _known(values, _PROJECT_KEYS, file, "")
    environments = values.get("env", {})
    if not isinstance(environments, dict) or not environments:
        raise ConfigError(
            f"{file} declares no environment; nothing was done.",
            hint='Add one, for example [env.local] with spark = "local" and '
            'warehouse = "warehouse".',
        )
    known = {name: _environment(folder, file, name, entry) for name, entry in environments.items()}
    default = _text(values, "default_env", file, "") or next(iter(known))
    if default not in known:
        raise ConfigError(
            f"{file}: default_env names {default!r}, which is not among its environments "
            f"({', '.join(known)}); nothing was done."
        )
    return Project(
        path=folder,
        file=file,
        default_env=default,
        environments=known,
        constraints=folder / (_text(values, "constraints", file, "") or "constraints"),
        versions=folder / (_text(values, "versions", file, "") or "versions"),
        notify=_notify(file, values.get("notify")),
    )


def _notify(file: Path, entry: object) -> Notify | None:
    if entry is None:
        return None
    if not isinstance(entry, dict):
        raise ConfigError(f"{file}: [notify] must be a table; nothing was done.")
    _known(entry, _NOTIFY_KEYS, file, "notify")
    command = entry.get("command", [])
    words = shlex.split(command) if isinstance(command, str) else command
    events = entry.get("events", list(EVENT_KINDS))
    for key, texts in (("command", words), ("events", events)):
        if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
            raise ConfigError(f"{file}: notify.{key} must be a list of texts; nothing was done.")
    for event in events:
        if event not in EVENT_KINDS:
            raise ConfigError(
                f"{file}: notify.events has the unknown event {event!r}; nothing was done.",
                hint=f"It may have: {', '.join(EVENT_KINDS)}.",
            )
    logger = _text(entry, "logger", file, "notify")
    if not words and logger is None:
        raise ConfigError(
            f"{file}: [notify] has neither command nor logger; nothing was done.",
            hint='Add one, for example command = ["python", "tell_team.py"].',
        )
    return Notify(tuple(words), logger, tuple(events))


def _environment(folder: Path, file: Path, name: str, entry: object) -> Environment:
    where = f"env.{name}"
    if not isinstance(entry, dict):
        raise ConfigError(f"{file}: [{where}] must be a table; nothing was done.")
    _known(entry, _ENVIRONMENT_KEYS, file, where)
    spark = _text(entry, "spark", file, where) or "local"
    warehouse = _text(entry, "warehouse", file, where)
    if spark == "local" and warehouse is None:
        raise ConfigError(
            f"{file}: [{where}] is local and names no warehouse; nothing was done.",
            hint='Add warehouse = "warehouse", the folder in which its tables are found.',
        )
    jars = entry.get("jars", [])
    if not isinstance(jars, list) or not all(isinstance(jar, str) for jar in jars):
        raise ConfigError(f"{file}: {where}.jars must be a list of paths; nothing was done.")
    conf = entry.get("conf", {})
    if not isinstance(conf, dict) or any(isinstance(v, (dict, list)) for v in conf.values()):
        raise ConfigError(f"{file}: [{where}.conf] must hold Spark settings; nothing was done.")
    quarantine = _text(entry, "quarantine", file, where)
    for placeholder in re.findall(r"\{([^}]*)\}", quarantine or ""):
        if placeholder not in _PLACEHOLDERS:
            raise ConfigError(
                f"{file}: {where}.quarantine has the unknown placeholder {{{placeholder}}}; "
                "nothing was done.",
                hint="It may have {catalog}, {schema}, {table} and {path}.",
            )
    return Environment(
        name=name,
        spark=spark,
        warehouse=None if warehouse is None else (folder / Path(warehouse).expanduser()),
        schema=_text(entry, "schema", file, where) or "deltacheck",
        quarantine=quarantine,
        jars=tuple(folder / Path(jar).expanduser() for jar in jars),
        conf={key: _setting(value) for key, value in conf.items()},
    )


def _setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(table: Mapping[str, Any], key: str, file: Path, where: str) -> str | None:
    value = table.get(key)
    if value is not None and (not isinstance(value, str) or not value.strip()):
        dotted = f"{where}.{key}" if where else key
        raise ConfigError(f"{file}: {dotted} must be a text; nothing was done.")
    return value


def _known(table: Mapping[str, Any], keys: tuple[str, ...], file: Path, where: str) -> None:
    for key in table:
        if key not in keys:
            close = difflib.get_close_matches(key, keys, n=1)
            dotted = f"{where}.{key}" if where else key
            raise ConfigError(
                f"{file} has the unknown key {dotted!r}; nothing was done.",
                hint=f"Did you mean {close[0]!r}?" if close else f"It may have: {', '.join(keys)}.",
            )


_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Put environment variables into ``${NAME}`` and ``${NAME:-default}``.

    >>> expand("${CATALOG:-dev}.shop", {})
    'dev.shop'

    Raises:
        KeyError: A variable is not set and has no default; its argument is the name.
    """

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        found = variables.get(name) or default
        if found is None:
            raise KeyError(name)
        return found

    return _VARIABLE.sub(value, text)


def _expanded(value: Any, file: Path, where: str, variables: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            key: _expanded(entry, file, f"{where}.{key}".lstrip("."), variables)
            for key, entry in value.items()
        }
    if isinstance(value, list):
        return [_expanded(entry, file, where, variables) for entry in value]
    if isinstance(value, str):
        try:
            return expand(value, variables)
        except KeyError as missing:
            raise ConfigError(
                f"{file}: {where} needs the environment variable {missing.args[0]}, which is "
                "not set; nothing was done.",
                hint=f"Set it, or write ${{{missing.args[0]}:-default}}.",
            ) from None
    return value
