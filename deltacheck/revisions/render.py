"""Migrations as text: formatted as ruff formats, importable, made to be read in a review.

Promises that reading the text back gives the same operations, and that ``downgrade`` is
the exact reverse of ``upgrade``. Knows no files.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from fractions import Fraction

from deltacheck.errors import DeclarationError
from deltacheck.names import TableName
from deltacheck.revisions.operations import (
    AddConstraint,
    DropConstraint,
    Operation,
    RenameTable,
    ReplaceConstraint,
    default_not_null_name,
)
from deltacheck.rules.model import Gate, Kind

_WIDTH = 88
"""Narrower than a project's own formatter is likely to be, so that it leaves the file alone."""
_LONGEST = 100
"""A SQL text that ends beyond this column is broken up. Not from ``_WIDTH`` on: a formatter
joins what fits its line."""


def render(
    revision: str,
    down_revision: str | Sequence[str] | None,
    message: str,
    operations: Sequence[Operation] = (),
) -> str:
    """The source of a migration.

    Args:
        revision: Its id.
        down_revision: The id of its parent, or of several; None for a first one.
        message: What it is for; its white space becomes single spaces.
        operations: What ``upgrade`` does, drops and replacements resolved (see
            :mod:`deltacheck.revisions.state`).

    Returns:
        Python. An operation without a reverse leaves a comment in ``downgrade``.
    """
    backwards = [_undone(operation) for operation in reversed(operations)]
    return (
        _docstring(message)
        + f"revision = {quoted(revision)}\n"
        + f"down_revision = {_parents(down_revision)}\n"
        + _function("upgrade", [_call(operation) for operation in operations])
        + _function("downgrade", backwards)
    )


def merge_revision(revision: str, heads: Sequence[str], message: str = "") -> str:
    """The source of a migration that does nothing but join heads.

    >>> merge_revision("0004", ["0002", "0003"]).splitlines()[0]
    '\"\"\"join 0002 and 0003\"\"\"'
    """
    return render(revision, heads, message or f"join {' and '.join(heads)}")


def one_line(message: str) -> str:
    """``message`` with single spaces and without characters that do not print."""
    return " ".join(
        "".join(char for char in word if char.isprintable()) for word in message.split()
    ).strip()


def quoted(text: str) -> str:
    r"""A string literal, with the quotes that need fewer escapes.

    >>> print(quoted("it's"), quoted('say "a"'), quoted("a\\b\n"))
    "it's" 'say "a"' "a\\b\n"
    """
    quote = "'" if text.count('"') > text.count("'") else '"'
    body = "".join(
        f"\\{char}"
        if char in (quote, "\\")
        else char
        if char.isprintable()
        else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
    return f"{quote}{body}{quote}"


def _docstring(message: str) -> str:
    text = one_line(message)
    if not text:
        return ""
    text = re.sub(r'"(?=""|$)', r"\"", text.replace("\\", r"\\"))
    lines = textwrap.wrap(text, _WIDTH - 8, break_long_words=False, break_on_hyphens=False)
    if len(lines) == 1:
        return f'"""{lines[0]}"""\n\n'
    return '"""' + "\n".join(lines) + '\n"""\n\n'


def _parents(parents: str | Sequence[str] | None) -> str:
    if not parents:
        return "None"
    if isinstance(parents, str):
        return quoted(parents)
    if len(parents) == 1:
        return quoted(parents[0])
    items = [quoted(parent) for parent in parents]
    line = f"({', '.join(items)})"
    if len("down_revision = " + line) <= _WIDTH:
        return line
    return "(\n" + "".join(f"    {item},\n" for item in items) + ")"


def _function(name: str, statements: Sequence[str]) -> str:
    body = list(statements)
    if all(statement.startswith("#") for statement in body):
        body.append("pass")
    return f"\n\ndef {name}(op):\n" + "".join(
        textwrap.indent(statement, "    ") + "\n" for statement in body
    )


def _undone(operation: Operation) -> str:
    back = operation.reverse()
    if back is None:
        return textwrap.indent(
            "This has no reverse; add one by hand where it needs one:\n" + _call(operation),
            "# ",
            lambda _: True,
        )
    return _call(back)


def _call(operation: Operation) -> str:
    """The call of ``op`` that records ``operation``."""
    if isinstance(operation, AddConstraint):
        if operation.kind is Kind.NOT_NULL:
            return _written(
                "set_not_null",
                [_table(operation.table), quoted(_column(operation)), *_named(operation)],
                _options(operation),
            )
        return _written("add_check", _check(operation), _options(operation))
    if isinstance(operation, DropConstraint):
        if operation.kind is Kind.NOT_NULL:
            return _written(
                "drop_not_null",
                [_table(operation.table), quoted(_column(operation)), *_named(operation)],
            )
        return _written("drop_check", [_table(operation.table), quoted(operation.name)])
    if isinstance(operation, ReplaceConstraint):
        return _written("replace_check", _check(operation.added), _options(operation.added))
    if isinstance(operation, RenameTable):
        return _written("rename_table", [_table(operation.old), _table(operation.new)])
    options = [] if operation.table is None else [f"table={_table(operation.table)}"]
    return _written("execute", [_sql(operation.statement)], options)


def _check(added: AddConstraint) -> list[str]:
    return [_table(added.table), quoted(added.name), _sql(added.expression)]


def _table(table: TableName) -> str:
    return quoted(table.template or str(table))


def _column(operation: AddConstraint | DropConstraint) -> str:
    if operation.column is None:
        raise DeclarationError(
            f"The NOT NULL {operation.name} on {operation.table} names no column.",
            hint="Give the operation its column.",
            table=str(operation.table),
            rule=operation.name,
        )
    return operation.column


def _named(operation: AddConstraint | DropConstraint) -> list[str]:
    if operation.name == default_not_null_name(_column(operation)):
        return []
    return [f"name={quoted(operation.name)}"]


def _options(added: AddConstraint) -> list[str]:
    options = []
    if added.violators != "quarantine":
        options.append(f"violators={quoted(added.violators)}")
    if added.gate is not None:
        options.append(f"gate={_gate(added.gate)}")
    return options


def _gate(gate: Gate) -> str:
    if not isinstance(gate.limit, Fraction):
        return str(gate.limit)
    return quoted(gate.text)


def _written(method: str, arguments: Sequence[str], options: Sequence[str] = ()) -> str:
    items = [*arguments, *options]
    line = f"op.{method}({', '.join(items)})"
    if len(line) + 4 <= _WIDTH and "\n" not in line:
        return line
    inner = "".join(f"{item},\n" for item in items)
    return f"op.{method}(\n{textwrap.indent(inner, '    ')})"


def _sql(text: str) -> str:
    """A literal; one that is too long for a line as several, which Python joins."""
    if len(quoted(text)) + 9 <= _LONGEST:
        return quoted(text)
    pieces = [""]
    for word in re.findall(r"\s*\S+\s*", text):
        if pieces[-1] and len(quoted(pieces[-1] + word)) + 9 > _WIDTH:
            pieces.append("")
        pieces[-1] += word
    return "\n".join(map(quoted, pieces))
