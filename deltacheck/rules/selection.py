"""Which rules a command is about: narrowed by tag, owner, table or column. Knows no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from deltacheck.errors import ExpressionError
from deltacheck.names import TableName, split_path
from deltacheck.rules.checks import BatchCheck, TableCheck
from deltacheck.rules.expression import parse_rule
from deltacheck.rules.model import Rule, RuleSet, TableRules


@dataclass(frozen=True)
class Selection:
    """What a person asked to see. Within one attribute any of the values will do; all
    attributes must be met; an empty one is always met.

    Attributes:
        tables: Patterns of names of tables, such as ``shop.*``, without regard to case.
        tags: A rule's own tags and its table's.
        owners: Who answers for the rule, or where it names nobody, for its table.
        column: A column, or a field in one, that the rule reads.

    >>> Selection(tables=("shop.*",)).has_table(TableName.parse("Shop.orders"))
    True
    """

    tables: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    column: str | None = None

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return not (self.tables or self.tags or self.owners or self.column)

    @property
    def by_declaration(self) -> bool:
        """Whether only a rule of ``constraints/`` can be meant."""
        return bool(self.tags or self.owners)

    def has_table(self, table: TableName) -> bool:
        """Whether a table's name is one of those asked for."""
        name = str(table).casefold()
        return not self.tables or any(fnmatchcase(name, p.casefold()) for p in self.tables)

    def has_rule(self, declared: TableRules, rule: Rule | BatchCheck | TableCheck) -> bool:
        """Whether a declared rule or check has a tag and an owner asked for."""
        tags = {tag.casefold() for tag in (*declared.tags, *rule.tags)}
        owner = (rule.owner or declared.owner).casefold()
        return (not self.tags or any(tag.casefold() in tags for tag in self.tags)) and (
            not self.owners or any(one.casefold() == owner for one in self.owners)
        )

    def has_expression(self, expression: str) -> bool:
        """Whether an expression reads the column asked for."""
        return self.column is None or reads(expression, self.column)

    def rules(self, declared: RuleSet) -> Iterator[tuple[TableName, Rule]]:
        """The declared rules that are asked for, with their tables."""
        for name, table in declared.items():
            for rule in table.rules:
                if (
                    self.has_table(name)
                    and self.has_rule(table, rule)
                    and self.has_expression(rule.expression)
                ):
                    yield name, rule


EVERYTHING = Selection()
"""Nothing is left out."""


def reads(expression: str, column: str) -> bool:
    """Whether a rule reads a column, a field in it, or what it is a field of.

    Those are what Delta refuses to rename, drop or retype while a CHECK reads them
    (``alterDeltaTableCommands.scala``, checkDependentExpressions).

    >>> reads("address.zip IS NOT NULL", "Address"), reads("zip > 0", "address.zip")
    (True, False)

    Raises:
        IdentifierError: ``column`` is not a name.
    """
    wanted = [part.casefold() for part in split_path(column)]
    try:
        columns = parse_rule(expression).columns
    except ExpressionError:
        # Another tool's constraint that no rule could be: better one too many than too few.
        return wanted[-1] in expression.casefold()
    paths = [[part.casefold() for part in path] for path in columns]
    return any(path[: len(wanted)] == wanted[: len(path)] for path in paths)
