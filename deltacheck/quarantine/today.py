"""The rules that a table holds its rows to now: what Delta would check on the next append.

Reads the table's metadata; knows nothing of quarantined rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructType

from deltacheck.delta.failures import LENGTH_RULE
from deltacheck.delta.table import Definition
from deltacheck.ledger.recorded import read_recorded
from deltacheck.names import quote
from deltacheck.quarantine.terms import Term, rule_term

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


def length_rule(schema: StructType) -> str:
    """SQL for the lengths that a table's CHARs and VARCHARs allow; empty where it has none."""
    tests = []
    for column in schema.fields:
        declared = str(column.metadata.get(_CHAR_VARCHAR, ""))
        if match := re.fullmatch(r"(?:var)?char\((\d+)\)", declared):
            name = quote(column.name)
            tests.append(f"({name} IS NULL OR length({name}) <= {match[1]})")
    return " AND ".join(tests)
