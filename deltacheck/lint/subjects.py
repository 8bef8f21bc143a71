"""What lints look at: a constraint as it is declared or migrated, and a migration.

Plain values with all that a lint may want to know; who makes them is ``project``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from deltacheck.lint.facts import Fact, facts, path_of
from deltacheck.lint.truth import conjuncts
from deltacheck.names import TableName, quote
from deltacheck.revisions.graph import Revision
from deltacheck.rules.expression import Expression, parse_rule
from deltacheck.rules.model import Kind

_LITERAL = re.compile(
    r"""`(?:[^`]|``)*`|\b[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""",
    re.DOTALL,
)

_understood = lru_cache(maxsize=4096)(parse_rule)

ConstraintKey = tuple[TableName, str]
"""A table and the lower-case name of a constraint on it."""


@dataclass(frozen=True)
class Constraint:
    """A rule of ``constraints/``, or a constraint that a migration adds.

    Attributes:
        table: Its table.
        name: Its name, as written.
        kind: Whether it is a NOT NULL or a CHECK.
        text: The expression, as a person wrote it.
        stored: The expression, as Delta stores it.
        enforced: Whether Delta enforces it; a ``warn`` rule is only measured.
        never_null: Columns that another rule of the table keeps from NULL, in lower case.
        limited: Operands that another enforced rule gives an upper limit.
        types: Spark types of the table's columns, as far as known, by column in lower case.
        spellings: The same columns as the table spells them.
        elsewhere: How a migration spells the same constraint's name, where it does otherwise.
    """

    table: TableName
    name: str
    kind: Kind
    text: str
    stored: str
    enforced: bool = True
    never_null: frozenset[str] = frozenset()
    limited: frozenset[str] = frozenset()
    types: Mapping[str, str] = field(default_factory=dict)
    spellings: Mapping[str, str] = field(default_factory=dict)
    elsewhere: str | None = None

    @property
    def expression(self) -> Expression:
        """The expression, understood."""
        return _understood(self.text)

    @cached_property
    def tree(self) -> exp.Expr:
        """The expression as sqlglot reads it; nothing is known of what it cannot read."""
        try:
            return self.expression.tree
        except SqlglotError:
            return exp.Anonymous(this="unreadable")

    @cached_property
    def conjuncts(self) -> tuple[exp.Expr, ...]:
        """The parts of the expression that must all be true."""
        return conjuncts(self.tree)

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """What is so about operands where the expression is true."""
        return tuple(fact for part in self.conjuncts for fact in facts(part))

    @property
    def limits(self) -> frozenset[str]:
        """The operands that the expression gives an upper limit."""
        return frozenset(fact.key for fact in self.facts if fact.relation in ("<", "<=", "="))


@dataclass(frozen=True)
class Migration:
    """A migration, with what is known around it.

    Attributes:
        revision: The migration.
        before: The expressions of all constraints before it runs.
        applied_checksum: The checksum of its file when it was applied, where known.
    """

    revision: Revision
    before: Mapping[ConstraintKey, str] = field(default_factory=dict)
    applied_checksum: str | None = None


def literals(text: str) -> Iterator[str]:
    """The string literals of a SQL text, with their quotes.

    >>> list(literals("a = 'x' AND `b'` = 'y'"))
    ["'x'", "'y'"]
    """
    return (found for found in _LITERAL.findall(text) if not found.startswith("`"))


def without_literals(text: str) -> str:
    """A SQL text with all strings and quoted names emptied.

    >>> without_literals("a = 'x' AND `b'` = 'y'")
    "a = '' AND '' = ''"
    """
    return _LITERAL.sub("''", text)


def shown(tree: exp.Expr) -> str:
    """A column as people write it, anything else as SQL.

    >>> from sqlglot import parse_one
    >>> shown(parse_one("`a`.b", dialect="spark")), shown(parse_one("`a b`", dialect="spark"))
    ('a.b', '`a b`')
    """
    if path := path_of(tree):
        return ".".join(part if re.fullmatch(r"\w+", part) else quote(part) for part in path)
    return tree.sql(dialect="spark")


def code(text: str) -> str:
    """SQL set off from the words around it."""
    return text if "`" in text else f"`{text}`"


def columns_of(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The columns of an expression, nested fields with their whole path."""
    for column in tree.find_all(exp.Column):
        whole: exp.Expr = column
        while isinstance(whole.parent, exp.Dot) and whole.parent.this is whole:
            whole = whole.parent
        yield whole
