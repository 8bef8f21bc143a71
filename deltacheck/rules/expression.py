"""The SQL of a rule, understood before anything is touched.

Promises that what it returns is one boolean expression about one row, that holds nothing Delta
cannot store or enforce, and that means in ``ALTER TABLE ... ADD CONSTRAINT`` what it means in
Spark SQL. It is always spelled anew from its tokens: no text of a user reaches Spark as it came.

Knows no table: whether columns exist and the result is boolean is for Spark to say. Meanings are
those of Spark's defaults (``spark.sql.parser.escapedStringLiterals`` and
``spark.sql.caseSensitive`` off).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from deltacheck.errors import ExpressionError, IdentifierError
from deltacheck.names import split_path
from deltacheck.rules.functions import CLOCK, CLOCK_WITHOUT_ARGUMENTS
from deltacheck.rules.grammar import parse
from deltacheck.rules.nodes import Form, Node, canonical, sql
from deltacheck.rules.tokens import Kind, NotARuleError, Token, symbol, tokenize
from deltacheck.rules.words import UNITS, spelled

if TYPE_CHECKING:
    from sqlglot import exp

MAX_NAME_LENGTH = 255
"""The longest name of a constraint, in characters."""

_RESERVED_NAMES = {
    # Delta's CharVarcharConstraint.INVARIANT_NAME.
    "__char_varchar_string_length_check__",
    # What Delta calls a wrong value for a generated column.
    "generated column",
}

_VALUE_HINT = "Write one column, or one expression about a row, such as date(placed_at)."

_COMPUTED = {Form.ARITHMETIC, Form.CALL, Form.CAST, Form.ACCESS}
"""Forms for which a file's statistics tell nothing; in ANSI mode they can raise an error."""

_PATTERNS = {"LIKE", "ILIKE", "RLIKE"}
"""Predicates for whose negation a file's statistics tell nothing."""


@dataclass(frozen=True)
class Expression:
    """A rule's expression.

    Attributes:
        text: As written.
        stored: SQL that ``ALTER TABLE ... ADD CONSTRAINT`` carries with unchanged meaning.
        canonical: Equal for two texts exactly if they are one rule, differently written.
        columns: The paths it reads, in order of first use: ``("address", "zip")``.
        conjuncts: The SQL of the parts of a top-level AND, at least one.
        functions: The functions it calls, in lower case: the online check asks Spark whether
            each is Spark's own.
        uses_clock: Whether it reads the date or the time of the write.
    """

    text: str
    stored: str
    canonical: str
    columns: tuple[tuple[str, ...], ...]
    conjuncts: tuple[str, ...]
    functions: frozenset[str]
    uses_clock: bool
    _root: Node = field(compare=False, repr=False)

    @cached_property
    def tree(self) -> exp.Expr:
        """The expression as sqlglot reads it (Spark dialect), for lint."""
        from sqlglot import parse_one

        return parse_one(sql(_grouped(self._root)), dialect="spark")

    @property
    def is_pattern(self) -> bool:
        """Whether it only holds one column against one pattern: nothing in it stands behind a
        guard, and to evaluate it is costly.

        >>> [parse_rule(text).is_pattern for text in ("a RLIKE '^C'", "b > 0 OR a LIKE 'C%'")]
        [True, False]
        """
        root = self._root
        return (
            root.form is Form.PREDICATE
            and not _PATTERNS.isdisjoint(_operators(root))
            and [node.form for node in root.nodes] == [Form.COLUMN, Form.LITERAL]
        )


def parse_rule(text: str, *, table: str | None = None, rule: str | None = None) -> Expression:
    """Read the expression of a rule.

    >>> parse_rule("Amount::int>0 AND(status<>'it''s')").stored
    "CAST(Amount AS INT) > 0 AND (status != 'it\\\\'s')"

    Args:
        text: SQL, as a person wrote it.
        table: The table, for messages.
        rule: The rule's name, for messages.

    Raises:
        ExpressionError: It is not one boolean expression about one row that Delta can store and
            enforce: the message says why, the hint what to write instead.
    """
    try:
        root = parse(text)
        _check_columns(root)
    except NotARuleError as refusal:
        raise ExpressionError(
            f"The expression of {_label(rule, table)} {refusal.reason} "
            f"(character {refusal.position + 1}).",
            hint=refusal.hint,
            table=table,
            rule=rule,
        ) from None
    return Expression(
        text=text,
        stored=sql(root.tokens()),
        canonical=canonical(root),
        columns=_columns(root),
        conjuncts=tuple(sql(part.tokens()) for part in root.conjuncts()),
        functions=frozenset(_function(node) for node in _calls(root) if not _is_syntax(node)),
        uses_clock=any(map(_reads_clock, _calls(root))),
        _root=root,
    )


def not_null(column: str, *, table: str | None = None, rule: str | None = None) -> Expression:
    """The rule that a column or a nested field is not null.

    >>> not_null("address.zip").stored, not_null("`a.b`").columns
    ('address.zip IS NOT NULL', (('a.b',),))

    Raises:
        IdentifierError: ``column`` is not a name.
        ExpressionError: It is a name that no rule may use.
    """
    try:
        path = split_path(column)
    except IdentifierError as error:
        raise IdentifierError(error.message, hint=error.hint, table=table, rule=rule) from None
    if "`" not in column and re.search(r"[^\w$#@-]|--", "".join(path)):
        raise IdentifierError(
            f"{column!r} is not the name of a column ({_label(rule, table)}).",
            hint="'not_null' takes one column or nested field; put an unusual name between "
            "back-quotes, and write anything else under 'check'.",
            table=table,
            rule=rule,
        )
    return parse_rule(".".join(map(spelled, path)) + " IS NOT NULL", table=table, rule=rule)


@dataclass(frozen=True)
class Value:
    """An expression about one row, of any type.

    Attributes:
        text: As written.
        sql: Spelled anew from its tokens.
        columns: The paths it reads, in order of first use.
    """

    text: str
    sql: str
    columns: tuple[tuple[str, ...], ...]


def parse_value(text: str) -> Value:
    """Read an expression about one row that need not be boolean, such as a column.

    >>> parse_value("price*quantity").sql, parse_value("date(placed_at)").columns
    ('price * quantity', (('placed_at',),))

    Raises:
        ExpressionError: It is not one expression about one row, or reads no column.
    """
    try:
        # Any value will do here, and the grammar reads one inside a predicate.
        root = parse(f"({text}\n) IS NOT NULL")
        _check_columns(root)
    except NotARuleError as refusal:
        raise ExpressionError(
            f"{text.strip()!r} {refusal.reason} (character {refusal.position}).", hint=_VALUE_HINT
        ) from None
    value = next(root.nodes)
    if root.form is not Form.PREDICATE or value.form is not Form.PARENTHESES:
        raise ExpressionError(f"{text.strip()!r} is not one expression.", hint=_VALUE_HINT)
    inner = next(value.nodes)
    columns = _columns(inner)
    if not columns:
        raise ExpressionError(f"{text.strip()!r} reads no column.", hint=_VALUE_HINT)
    return Value(text.strip(), sql(inner.tokens()), columns)


def same_rule(left: str, right: str) -> bool:
    """Whether two texts are one rule, differently written.

    Texts that are no rules compare by their tokens, or, where they have none, as they are.

    >>> same_rule("length(a)<5", "LENGTH ( `A` ) < 5"), same_rule("a = 'x'", "a = 'X'")
    (True, False)
    """
    return _comparable(left) == _comparable(right)


def violator_predicate(*rules: Expression) -> str:
    """SQL that is true for exactly the rows for which at least one rule is false or NULL.

    Never NULL itself; the same as ``(rule) IS NOT TRUE`` for a single rule. Where a file's
    statistics can tell of every part that no row breaks it, each gets the shape in which Delta
    looks at them (``DataFiltersBuilder`` pushes NOT and IS NULL into comparisons, each on its
    own, and skips nothing where one side of an OR is anything else). Otherwise a rule is named
    only once: it is evaluated once, and Spark evaluates first what occurs twice
    (``spark.sql.subexpressionElimination``), even behind a guard such as ``b = 0 OR a / b > 1``.

    >>> violator_predicate(parse_rule("a > 0 AND b = 'x'"))
    "(NOT (a > 0) OR (a > 0) IS NULL) OR (NOT (b = 'x') OR (b = 'x') IS NULL)"
    >>> violator_predicate(parse_rule("a > 0"), parse_rule("lower(b) = 'x'"))
    "(a > 0) IS NOT TRUE OR (lower(b) = 'x') IS NOT TRUE"
    """
    parts = [part for rule in rules for part in rule._root.conjuncts()]
    if not all(map(_shows_in_statistics, parts)):
        return " OR ".join(f"({rule.stored}) IS NOT TRUE" for rule in rules)
    texts = [sql(part.tokens()) for part in parts]
    return " OR ".join(f"(NOT ({text}) OR ({text}) IS NULL)" for text in texts)


def _shows_in_statistics(part: Node) -> bool:
    return not any(
        node.form in _COMPUTED
        or (node.form is Form.PREDICATE and not _PATTERNS.isdisjoint(_operators(node)))
        for node in part.walk()
    )


def check_name(name: str, *, table: str | None = None) -> str:
    """Return the name of a rule if Delta can hold it and a person can tell it from others.

    Raises:
        IdentifierError: It is empty, too long, reserved, or has characters that do not show or
            that end a name in SQL.
    """
    problem = _name_problem(name)
    if problem:
        shown = ascii(name if len(name) <= 60 else name[:57] + "...")
        raise IdentifierError(
            f"{shown} is not a name for a rule{f' of {table}' if table else ''}: {problem}.",
            hint="Use letters, digits and underscores, such as amount_positive.",
            table=table,
            rule=name,
        )
    return name


def _name_problem(name: str) -> str:
    if not name.strip():
        return "it is empty"
    if len(name) > MAX_NAME_LENGTH:
        return f"it is longer than {MAX_NAME_LENGTH} characters"
    if not name.isprintable():
        return "it has characters that do not show"
    if name != name.strip():
        return "it begins or ends with a space"
    if not unicodedata.is_normalized("NFC", name):
        return "it has letters composed of several characters, which look like others (not NFC)"
    if name.lower() in _RESERVED_NAMES:
        return "Delta uses it itself"
    if re.search(r"""[`'"\\;${}]|--|/\*""", name):
        return "it has a quote, a backslash, ';', '$', a brace or the start of a comment"
    return ""


def _label(rule: str | None, table: str | None) -> str:
    of_table = f" of {table}" if table else ""
    return f"rule {rule}{of_table}" if rule else f"a rule{of_table}"


def _comparable(text: str) -> tuple[str, ...]:
    try:
        return ("rule", canonical(parse(text)))
    except NotARuleError:
        pass
    try:
        return ("tokens", *(canonical(token) for token in tokenize(text)))
    except NotARuleError:
        return ("text", *text.split())


def _columns(root: Node) -> tuple[tuple[str, ...], ...]:
    paths: dict[tuple[str, ...], tuple[str, ...]] = {}
    for node in root.walk():
        if node.form is Form.COLUMN:
            path = tuple(token.value for token in node.tokens() if token.kind is Kind.NAME)
            paths.setdefault(tuple(part.lower() for part in path), path)
    return tuple(paths.values())


def _check_columns(root: Node) -> None:
    for node in root.walk():
        first = next(node.tokens())
        if node.form is Form.COLUMN and first.value.lower() == "_metadata":
            raise NotARuleError(
                "reads the hidden column _metadata, which a row being written does not have",
                "Write a rule that depends on the row's own columns.",
                first.start,
            )


def _calls(root: Node) -> list[Node]:
    return [node for node in root.walk() if node.form is Form.CALL]


def _function(call: Node) -> str:
    return next(call.tokens()).value


def _is_syntax(call: Node) -> bool:
    # TIMESTAMPADD(DAY, 1, ts): with a unit it is Spark's grammar, and no function is looked up.
    first = call.parts[2]
    return isinstance(first, Token) and first.text in UNITS


def _reads_clock(call: Node) -> bool:
    function = _function(call)
    return function in CLOCK or (
        function in CLOCK_WITHOUT_ARGUMENTS and next(call.nodes, None) is None
    )


def _grouped(node: Node) -> list[Token]:
    """The tokens, with parentheses where sqlglot's precedence is not Spark's."""
    tokens: list[Token] = []
    for part in node.parts:
        if isinstance(part, Token):
            tokens.append(part)
        elif _needs_group(node, part):
            tokens += (symbol("("), *_grouped(part), symbol(")"))
        else:
            tokens += _grouped(part)
    return tokens


def _needs_group(outer: Node, inner: Node) -> bool:
    operations = {Form.COMPARISON, Form.PREDICATE, Form.ARITHMETIC}
    if outer.form not in operations or inner.form not in operations:
        return False
    if _operators(outer) | _operators(inner) <= set("+-*/%"):
        return False
    if outer.form is not Form.ARITHMETIC and _operators(inner) <= set("+-*/%"):
        return False
    # a || b || c is read from the left by both.
    return outer.parts[0] is not inner or _operators(outer) != _operators(inner)


def _operators(node: Node) -> set[str]:
    return {part.text for part in node.parts if isinstance(part, Token)}


__all__ = [
    "Expression",
    "Value",
    "check_name",
    "not_null",
    "parse_rule",
    "parse_value",
    "same_rule",
    "violator_predicate",
]
