"""The checksum of a migration's code, and what else is read from it without running it."""

from __future__ import annotations

import ast

import pytest

from deltacheck.revisions.source import checksum, imports_of, line_of, message_of

SOURCE = '''"""amounts are positive"""

revision = "0002"
down_revision = "0001"


def upgrade(op):
    """Adds it."""
    op.add_check("shop.orders", "amount_positive", "amount > 0", gate=5)


def downgrade(op):
    op.drop_check("shop.orders", "amount_positive")
'''


VARIED = """
from __future__ import annotations
import os as o
x = f"{a!r:>{w}} b {c}" "d" f"{e=}" + "\u1c89 \U0001f7e0"
match x:
    case {"a": None, **r}: pass
    case [1, *_] | True: pass
    case P(a=1): pass
async def f(a, /, b: int = 1, *c, d=..., **e) -> None:
    async with x as y: return [i async for i in z if i]
class A(B, m=C):
    @property
    def p(self): return lambda q: (yield)
try: pass
except ValueError as v: raise
"""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (SOURCE, "c04518fce09474c12242e2972293f3d9061dc4d09b4e3ca39192276dafbcb7d9"),
        (VARIED, "041f6ad8acf6e605805d83ac95f9e9c9901f225730ef4723ea41ee0ebfcb5087"),
    ],
)
def test_the_checksum_is_the_same_on_every_python(source: str, expected: str) -> None:
    """A journal written under one Python is read under another. When this value changes,
    every applied migration of every user looks edited: never change it."""
    assert checksum(source) == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\n", "\r\n"),
        ("\n", "\r"),
        ('"amount > 0"', "'amount > 0'"),
        ('"amount > 0"', '"amount "\n        "> 0"'),
        (
            '"shop.orders", "amount_positive")',
            '\n        "shop.orders",\n "amount_positive",\n    )',
        ),
        ("def downgrade", "# a comment\ndef downgrade"),
        ("amounts are positive", "every amount is above zero"),
        ('"""amounts are positive"""', ""),
        ("Adds it.", "Adds the rule."),
        ("    op.drop", "    'a remark'\n    op.drop"),
        ("gate=5", "gate=0x5"),
        ("    ", "  "),
    ],
)
def test_what_does_not_count(before: str, after: str) -> None:
    """Line ends, quotes, layout, comments and docstrings."""
    edited = SOURCE.replace(before, after)
    assert edited != SOURCE
    assert checksum(edited) == checksum(SOURCE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("amount > 0", "amount > 1"),
        ("amount > 0", "amount  > 0"),
        ("amount_positive", "amount_Positive"),
        ('"0001"', "None"),
        ('"0001"', '("0001",)'),
        ("gate=5", "gate='5'"),
        ("gate=5", "gate=5.0"),
        ("gate=5", "gate=True"),
        (", gate=5", ""),
        ("drop_check", "add_check"),
        ("    op.drop", "    pass\n    op.drop"),
        ("    op.drop", "    if 1:\n        op.drop"),
    ],
)
def test_what_counts(before: str, after: str) -> None:
    """Whatever the migration does, down to the type of a number."""
    edited = SOURCE.replace(before, after)
    assert edited != SOURCE
    assert checksum(edited) != checksum(SOURCE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f(a)[1:]", "f(a)[:1]"),
        ("x = []", "x = ()"),
        ("x = [a, b]", "x = [[a], b]"),
        ("x = a, b", "x = [a, b]"),
        ("x = {a: b}", "x = {**b}"),
        ("def f(a, /, b): pass", "def f(a, b): pass"),
        ("x = None", "x: None"),
        ("x = 1", "x = 1 + 0"),
        ("x = 'é'", "x = 'e\\u0301'"),
        ("x = b'a'", "x = 'a'"),
        ("x = f'{a!r}'", "x = f'{a}'"),
        ("import a.b", "from a import b"),
    ],
)
def test_different_code_has_different_checksums(one: str, other: str) -> None:
    """The normal form leaves out what is absent, but never merges two programs."""
    assert checksum(one) != checksum(other)


@pytest.mark.parametrize(
    ("docstring", "message"),
    [
        ('"""one line"""', "one line"),
        ('"""two\n   lines\n\nand more."""', "two lines"),
        ('"""\nbelow\n"""', "below"),
        ('""""""', ""),
        ("", ""),
        ("x = 1", ""),
        ('r"""a \\ b"""', "a \\ b"),
    ],
)
def test_the_message_is_the_first_paragraph_of_the_docstring(docstring: str, message: str) -> None:
    """On one line, however it was wrapped."""
    assert message_of(ast.parse(docstring)) == message


def test_the_line_is_that_of_the_last_assignment() -> None:
    """The one that Python goes by."""
    tree = ast.parse("a = 1\nb: int = 2\na = 3\ndef c(): pass\nd.e = 4\n")
    assert [line_of(tree, name) for name in "abce"] == [3, 2, 4, None]


def test_imports_of_siblings_are_found_wherever_they_are() -> None:
    """At the top, in a function, relative, or as a part of a package."""
    tree = ast.parse(
        "import os, helpers\n"
        "def upgrade(op):\n"
        "    from helpers.more import x\n"
        "    from . import y\n"
        "from helpers2 import z\n"
    )
    assert sorted(imports_of(tree, {"helpers"})) == [(1, "helpers"), (3, "helpers.more"), (4, ".")]
