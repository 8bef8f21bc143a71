"""The rules that a table holds its rows to now: what Delta would check on the next append.

Reads the table's metadata; knows nothing of quarantined rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.types import StructType

from deltacheck.delta.failures import LENGTH_RULE
from deltacheck.delta.table import Definition
from deltacheck.ledger.recorded import read_recorded
from deltacheck.names import quote, split_path
from deltacheck.quarantine.terms import Term, rule_term
from deltacheck.rules.model import Kind, Rule

_CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark keeps the declared type of a CHAR or VARCHAR column, which it reads as STRING
(``CharVarcharUtils.CHAR_VARCHAR_TYPE_STRING_METADATA_KEY``)."""


@dataclass(frozen=True)
class Today:
    """A table's rules.

    Attributes:
        rules: Name, as declared where that is recorded, to expression.
        unread: Constraints with an expression that no rule may have, for example one with a
            lambda: only Delta itself can judge by them.
    """

    rules: Mapping[str, Term]
    unread: tuple[str, ...] = ()


def rules_today(table: Definition) -> Today:
    """The rules of a table: its CHECKs, its NOT NULLs, the lengths of its CHARs and VARCHARs."""
    recorded = read_recorded(table.name, table.properties)
    declared = {} if recorded is None else {rule.key: rule.name for rule in recorded.rules}
    texts = {declared.get(name.lower(), name): text for name, text in table.constraints.items()}
    for column in sorted(table.not_null):
        path = ".".join(quote(part) for part in column)
        texts["_".join(column) + "_not_null"] = f"{path} IS NOT NULL"
    if lengths := length_rule(table.schema):
        texts[LENGTH_RULE] = lengths
    rules, unread = {}, []
    for name, text in texts.items():
        term = rule_term(text)
        if term is None:
            unread.append(name)
        else:
            rules[name] = term
    return Today(rules, tuple(unread))


def held_by_schema(table: Definition, rules: Iterable[Rule]) -> dict[str, str]:
    """What a table's schema holds its rows to, by name: in lower case, and as it is shown.

    That is its NOT NULLs, and the lengths of its CHARs and VARCHARs.

    Args:
        rules: Those that are declared: a NOT NULL has the name of its rule.
    """
    # A rule that a CHECK holds is that one's name.
    listed = [rule for rule in rules if table.constraint(rule.name) is None]
    names = [not_null_name(listed, path) for path in sorted(table.not_null)]
    if length_rule(table.schema):
        names.append(LENGTH_RULE)
    return {name.lower(): name for name in names}


def not_null_name(rules: Iterable[Rule], path: Sequence[str]) -> str:
    """What a NOT NULL of a schema is called: as its rule, where one is declared."""
    rule = declared_not_null(rules, path)
    return "_".join(path) + "_not_null" if rule is None else rule.name


def declared_not_null(rules: Iterable[Rule], path: Sequence[str]) -> Rule | None:
    """The rule that a column may not be NULL, by its path in any case."""
    wanted = tuple(part.lower() for part in path)
    for rule in rules:
        column = not_null_path(rule)
        if column is not None and tuple(part.lower() for part in column) == wanted:
            return rule
    return None


def not_null_path(rule: Rule | None) -> tuple[str, ...] | None:
    """The column that may not be NULL by a rule, as a path; None: it says something else."""
    if rule is None or rule.kind is not Kind.NOT_NULL or rule.column is None:
        return None
    return split_path(rule.column)


def length_rule(schema: StructType) -> str:
    """SQL for the lengths that a table's CHARs and VARCHARs allow; empty where it has none."""
    tests = []
    for column in schema.fields:
        declared = str(column.metadata.get(_CHAR_VARCHAR, ""))
        if match := re.fullmatch(r"(?:var)?char\((\d+)\)", declared):
            name = quote(column.name)
            tests.append(f"({name} IS NULL OR length({name}) <= {match[1]})")
    return " AND ".join(tests)
