"""Migrations as text: what is written is read back, and looks as ruff would have it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltacheck.errors import DeclarationError
from deltacheck.names import TableName
from deltacheck.revisions.files import load_history
from deltacheck.revisions.migration import load_revision
from deltacheck.revisions.operations import (
    AddConstraint,
    DropConstraint,
    Execute,
    Operation,
    RenameTable,
    ReplaceConstraint,
    Violators,
    default_not_null_name,
)
from deltacheck.revisions.recorder import Op
from deltacheck.revisions.render import merge_revision, one_line, render
from deltacheck.revisions.state import resolved
from deltacheck.rules.expression import not_null as sql_not_null
from deltacheck.rules.expression import parse_rule
from deltacheck.rules.model import Gate, Kind
from tests.revisions.chains import ORDERS, check, linear, not_null, write

RUFF = [sys.executable, "-m", "ruff", "format", "--isolated"]
LONG = (
    "status IN ('placed', 'paid', 'shipped', 'cancelled') OR (status IS NULL AND amount > 0) OR x"
)


def loaded(source: str) -> tuple[tuple[Operation, ...], tuple[Operation, ...], str]:
    """What a file of this source says: upgrade, downgrade, message."""
    with tempfile.TemporaryDirectory() as folder:
        revision = load_revision(write(Path(folder), "0001.py", source))
    return revision.upgrade, revision.downgrade, revision.message


def formatted(source: str) -> str:
    """As ruff formats it."""
    return subprocess.run(
        [*RUFF, "-"],
        input=source,
        capture_output=True,
        check=True,
        encoding="utf-8",
    ).stdout


def test_a_migration_reads_as_a_person_would_write_it() -> None:
    """Upgrade in order, downgrade in exact reverse."""
    operations: list[Operation] = [
        not_null("order_id", "order_id_present"),
        check("amount_positive"),
        ReplaceConstraint(check("known", "a IN (1, 2)"), check("known", "a IN (1)")),
    ]
    assert render("0002", "0001", "amounts are positive", operations) == (
        '"""amounts are positive"""\n'
        "\n"
        'revision = "0002"\n'
        'down_revision = "0001"\n'
        "\n"
        "\n"
        "def upgrade(op):\n"
        '    op.set_not_null("shop.orders", "order_id", name="order_id_present")\n'
        '    op.add_check("shop.orders", "amount_positive", "amount > 0")\n'
        '    op.replace_check("shop.orders", "known", "a IN (1, 2)")\n'
        "\n"
        "\n"
        "def downgrade(op):\n"
        '    op.replace_check("shop.orders", "known", "a IN (1)")\n'
        '    op.drop_check("shop.orders", "amount_positive")\n'
        '    op.drop_not_null("shop.orders", "order_id", name="order_id_present")\n'
    )


def test_a_migration_without_operations_is_there_to_be_filled_in() -> None:
    """The first one, with no parent."""
    source = render("0001", None, "", [])
    assert source.startswith('revision = "0001"\ndown_revision = None\n')
    assert source.count("    pass\n") == 2


def test_a_long_call_has_one_argument_per_line_and_long_sql_is_broken() -> None:
    """So that a review shows what changed."""
    added = AddConstraint(
        ORDERS, "known", Kind.CHECK, LONG, violators="fail", gate=Gate.parse("1/3")
    )
    assert (
        "    op.add_check(\n"
        '        "shop.orders",\n'
        '        "known",\n'
        "        \"status IN ('placed', 'paid', 'shipped', 'cancelled') OR (status IS NULL AND \"\n"
        '        "amount > 0) OR x",\n'
        '        violators="fail",\n'
        '        gate="1/3",\n'
        "    )\n"
    ) in render("0001", None, "", [added])


def test_what_has_no_reverse_leaves_a_remark() -> None:
    """The downgrade is still a function that runs."""
    source = render("0001", None, "", [Execute("OPTIMIZE shop.orders", ORDERS)])
    assert source.endswith(
        "def downgrade(op):\n"
        "    # This has no reverse; add one by hand where it needs one:\n"
        '    # op.execute("OPTIMIZE shop.orders", table="shop.orders")\n'
        "    pass\n"
    )
    assert loaded(source) == ((Execute("OPTIMIZE shop.orders", ORDERS),), (), "")


def test_a_table_is_written_with_its_variables() -> None:
    """A generated migration fits every environment."""
    op = Op({"CATALOG": "prod"})
    op.drop_check("${CATALOG}.shop.orders", "a")
    (dropped,) = op.operations
    assert isinstance(dropped, DropConstraint)
    assert 'op.drop_check("${CATALOG}.shop.orders", "a")' in render("1", None, "", [dropped])


def test_a_merge_joins_heads_and_does_nothing() -> None:
    """With both parents."""
    source = merge_revision("0004", ("0003a", "0003b"))
    assert 'down_revision = ("0003a", "0003b")' in source
    assert loaded(source) == ((), (), "join 0003a and 0003b")


def test_a_not_null_without_a_column_cannot_be_written() -> None:
    """Only Python code could make one."""
    nameless = AddConstraint(ORDERS, "a", Kind.NOT_NULL, "a IS NOT NULL")
    with pytest.raises(DeclarationError, match=r"The NOT NULL a on shop.orders names no column"):
        render("0001", None, "", [nameless])


MESSAGES = [
    'say "hello"',
    'ends in "',
    'ends in \\"',
    '"""',
    "a \\ b \\",
    "it's \\n not a newline",
    "tab\tnewline\nnull\x00",
    "\u202ereversed \udcff",
    "ünïcödé ☃ 日本",
    "{braces} %s",
    "many words " * 30,
    "x" * 200,
    "",
    " \n ",
    '"',
    "\\",
    "# not a comment",
]


@pytest.mark.parametrize("message", MESSAGES)
def test_any_message_is_read_back_and_is_formatted(message: str) -> None:
    """On one line, without what does not print."""
    source = render("0001", None, message, [])
    assert loaded(source)[2] == one_line(message)
    assert formatted(source) == source


NAMES = ["a", "amount_positive", "Known", "x1", "a_name_that_is_rather_long_for_a_rule_of_a_table"]
TABLES = ["orders", "shop.orders", "main.shop.orders", "`my table`.`a``b`", "delta.`/data/orders`"]
COLUMNS = ["id", "address.city", "`zip code`"]
PARTS = [
    "amount > 0",
    "status = 'it\\'s'",
    "name <> '\"'",
    "x LIKE '%\\\\d{3}%'",
    "note <> 'a\\nb  c'",
    "place = 'ü☃'",
]
GATES = [
    None,
    *(Gate.parse(gate) for gate in (0, 1, 100, "5", "5%", "0.5%", "1/3", "100 %", "7 / 8")),
]

names = st.sampled_from(NAMES)
tables = st.sampled_from(TABLES).map(TableName.parse)
columns = st.sampled_from(COLUMNS)
expressions = st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map(" AND ".join)
gates = st.sampled_from(GATES)
violators = st.sampled_from(get_args(Violators))


@cache
def stored(expression: str) -> str:
    """As the recorder stores it, which is what a file gives back."""
    return parse_rule(expression).stored


def checks(table: TableName) -> st.SearchStrategy[AddConstraint]:
    """Any CHECK on a table."""
    return st.builds(
        AddConstraint,
        table=st.just(table),
        name=names,
        kind=st.just(Kind.CHECK),
        expression=expressions.map(stored),
        violators=violators,
        gate=gates,
    )


@st.composite
def not_nulls(draw: st.DrawFn, table: TableName) -> AddConstraint:
    """Any NOT NULL on a table, with a name of its own or the default one."""
    column = draw(columns)
    return AddConstraint(
        table,
        draw(names | st.just(default_not_null_name(column))),
        Kind.NOT_NULL,
        sql_not_null(column).stored,
        column,
        draw(violators),
        draw(gates),
    )


@st.composite
def upgrades(draw: st.DrawFn) -> list[list[Operation]]:
    """The upgrades of a chain in which every drop, replacement and renaming has its object."""
    there: dict[TableName, dict[str, AddConstraint]] = {}
    chain: list[list[Operation]] = []
    for _ in range(draw(st.integers(1, 3))):
        operations: list[Operation] = []
        for _ in range(draw(st.integers(0, 4))):
            kind = draw(st.sampled_from(["add", "drop", "replace", "rename", "execute"]))
            if kind == "execute":
                statement = draw(expressions)
                operations.append(Execute(f"SELECT {statement}", draw(st.none() | tables)))
            elif kind == "add" or not there:
                on = draw(tables)
                new = draw(checks(on) | not_nulls(on))
                if new.key not in there.get(new.table, {}):
                    there.setdefault(new.table, {})[new.key] = new
                    operations.append(new)
            elif kind == "rename":
                old, table = draw(st.sampled_from(list(there))), draw(tables)
                if table not in there:
                    moved = there.pop(old).values()
                    there[table] = {one.key: replace(one, table=table) for one in moved}
                    operations.append(RenameTable(old, table))
            else:
                table = draw(st.sampled_from(list(there)))
                old_one = there[table][draw(st.sampled_from(list(there[table])))]
                if kind == "replace" and old_one.kind is Kind.CHECK:
                    new = replace(old_one, expression=stored("amount > 7"))
                    there[table][new.key] = new
                    operations.append(ReplaceConstraint(new, old_one))
                else:
                    operations.append(old_one.reverse())
                    del there[table][old_one.key]
                    if not there[table]:
                        del there[table]
        chain.append(operations)
    return chain


def written(folder: Path, chain: Sequence[Sequence[Operation]]) -> list[str]:
    """Write a chain as files; return their sources."""
    sources = []
    for number, operations in enumerate(chain, start=1):
        before = f"{number - 1:04d}" if number > 1 else None
        source = render(f"{number:04d}", before, f"step {number}", operations)
        write(folder, f"{number:04d}_x.py", source)
        sources.append(source)
    return sources


@given(upgrades())
def test_what_is_written_is_read_back(chain: list[list[Operation]]) -> None:
    """Any chain: the same operations, resolved, and downgrades that are their exact reverse."""
    expected = resolved(linear(*chain))
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder), chain)
        history = load_history(Path(folder))
    for one, other in zip(history.revisions, expected, strict=True):
        assert one.upgrade == other.upgrade
        reverses = [operation.reverse() for operation in reversed(one.upgrade)]
        assert list(one.downgrade) == [back for back in reverses if back is not None]


def test_what_is_written_is_formatted(tmp_path: Path) -> None:
    """Many chains at once, since starting ruff takes longer than they do; at the line lengths
    that projects use."""
    sources: list[str] = []

    @settings(max_examples=50)
    @given(upgrades())
    def collect(chain: list[list[Operation]]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            sources.extend(written(Path(folder), chain))

    collect()
    for number, source in enumerate(sources):
        write(tmp_path, f"{number}.py", source)
    for width in (88, 100):
        done = subprocess.run(
            [*RUFF, "--no-cache", "--diff", "--line-length", str(width), str(tmp_path)],
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stdout
        assert f"{len(sources)} files already formatted" in done.stderr
