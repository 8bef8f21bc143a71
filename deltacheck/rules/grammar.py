"""The grammar of a rule: tokens made into a tree the way Spark's parser groups them.

A white list: each form is one that Spark's ``expression`` has (``SqlBaseParser.g4``, 4.2), that
reads nothing but one row, and that Delta can store. Everything else is refused. What Delta cannot
store but can say in other words (``::``, shifts, ``1.5F``, bare ``current_date``) is put into
those words here.

sqlglot is not asked for this tree: a rule is rewritten token by token, and a grammar that reads
every dialect must guess where this one must not. It serves lint (``Expression.tree``).
"""

from __future__ import annotations

import re

from deltacheck.rules.cursor import MAX_DEPTH, WANTED, Cursor
from deltacheck.rules.functions import BARE_CLOCK, BARE_SESSION, REFUSED
from deltacheck.rules.literals import (
    begins_interval,
    read_interval,
    read_number,
    read_type,
    read_typed,
)
from deltacheck.rules.nodes import Form, Node, Part, call, cast
from deltacheck.rules.tokens import Kind, NotARuleError, Token, keyword, symbol, tokenize
from deltacheck.rules.words import CONNECTIVES, OPERATOR_WORDS, UNIT_FIRST, UNITS, spelled

MAX_CHAIN = 200
"""How many operators or accesses may follow one another (AND and OR excepted)."""

_LEVELS = {
    operator: level
    for level, operators in enumerate(
        ("= <=> != < <= > >=", "|", "^", "&", "<< >> >>>", "+ - ||", "* / % DIV")
    )
    for operator in operators.split()
}
_COMPARISON = 0
_SHIFTS = {"<<": "shiftleft", ">>": "shiftright", ">>>": "shiftrightunsigned"}


def parse(text: str) -> Node:
    """Read one expression.

    >>> [token.text for token in parse("a::int > 1").tokens()]
    ['CAST', '(', 'a', 'AS', 'INT', ')', '>', '1']

    Raises:
        NotARuleError: The text is anything but one boolean expression about one row.
    """
    parser = _Parser(tokenize(text))
    node = parser.expression()
    parser.finish()
    _check_boolean(node)
    return node


class _Parser(Cursor):
    # Boolean expressions

    def expression(self) -> Node:
        """Read ``a OR b``, ``a AND b``, ``NOT a`` or a predicate.

        Raises:
            NotARuleError: There is none.
        """
        parts: list[Part] = [self._conjunction()]
        while self.is_word("OR"):
            parts += (keyword(self.next()), self._conjunction())
        return _joined(Form.OR, parts)

    def _conjunction(self) -> Node:
        parts: list[Part] = [self._negation()]
        while self.is_word("AND"):
            parts += (keyword(self.next()), self._negation())
        return _joined(Form.AND, parts)

    def _negation(self) -> Node:
        if not self.is_word("NOT") and not self.is_symbol("!"):
            return self._predicate()
        with self.deeper():
            token = Token(Kind.KEYWORD, "NOT", self.next().start)
            return Node(Form.NOT, (token, self._negation()))

    def _predicate(self) -> Node:
        left = self._value()
        negated: list[Token] = []
        if self.is_word("NOT") and self.is_word(
            "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", ahead=1
        ):
            negated = [keyword(self.next())]
        word = self.peek().upper
        if word == "IN":
            return Node(Form.PREDICATE, (left, *negated, keyword(self.next()), *self._list()))
        if word == "BETWEEN":
            bounds = (keyword(self.next()), self._value(), self.word("AND"), self._value())
            return Node(Form.PREDICATE, (left, *negated, *bounds))
        if word in ("LIKE", "ILIKE", "RLIKE", "REGEXP"):
            return self._like([left, *negated])
        if word == "IS":
            return self._is(left)
        return left

    def _list(self) -> list[Part]:
        self.symbol("(")
        self._refuse_query()
        with self.deeper():
            parts: list[Part] = [symbol("("), self.expression()]
            while self.is_symbol(","):
                parts += (self.next(), self.expression())
        return [*parts, self.symbol(")")]

    def _like(self, parts: list[Part]) -> Node:
        word = self.word("LIKE", "ILIKE", "RLIKE", "REGEXP")
        parts.append(Token(Kind.KEYWORD, "RLIKE", word.start) if word.text == "REGEXP" else word)
        if self.is_word("ANY", "SOME", "ALL") and self.is_symbol("(", ahead=1):
            return Node(Form.PREDICATE, (*parts, keyword(self.next()), *self._list()))
        parts.append(self._value())
        if self.is_word("ESCAPE"):
            parts.append(keyword(self.next()))
            if self.peek().kind is not Kind.STRING:
                raise self.unexpected("ESCAPE takes one character in quotes")
            parts.append(self.next())
        return Node(Form.PREDICATE, tuple(parts))

    def _is(self, left: Node) -> Node:
        parts: list[Part] = [left, keyword(self.next())]
        if self.is_word("NOT"):
            parts.append(keyword(self.next()))
        kind = self.word("NULL", "TRUE", "FALSE", "UNKNOWN", "DISTINCT")
        parts.append(kind)
        if kind.text == "DISTINCT":
            parts += (self.word("FROM"), self._value())
        return Node(Form.PREDICATE, tuple(parts))

    # Values

    def _value(self, minimum: int = _COMPARISON) -> Node:
        left = self._signed()
        while (level := _LEVELS.get(self._operator(), -1)) >= minimum:
            operator = self.next()
            right = self._value(level + 1)
            if operator.text in _SHIFTS:
                left = self._wrapped(call(_SHIFTS[operator.text], left, right))
            elif level == _COMPARISON:
                if left.form is Form.COMPARISON and next(left.nodes).form is Form.COMPARISON:
                    raise self.refused(
                        "chains comparisons", "Join them with AND: 0 < a AND a < b AND b < 9."
                    )
                left = self._chained(Form.COMPARISON, left, operator, right)
            else:
                spelling = operator if operator.kind is Kind.SYMBOL else keyword(operator)
                left = self._chained(Form.ARITHMETIC, left, spelling, right)
        return left

    def _operator(self) -> str:
        token = self.peek()
        return token.text if token.kind is Kind.SYMBOL else token.upper

    def _chained(self, form: Form, *parts: Part) -> Node:
        node = Node(form, parts)
        if node.height > MAX_CHAIN:
            raise self.refused(
                f"chains more than {MAX_CHAIN} operators",
                "Split it into several rules, or compute a column that it can test.",
            )
        return node

    def _wrapped(self, node: Node) -> Node:
        if node.nesting > MAX_DEPTH:
            raise self.too_deep()
        return node

    def _signed(self) -> Node:
        if not self.is_symbol("-", "+", "~"):
            return self._accessed(self._primary())
        with self.deeper():
            token = self.next()
            sign = Token(Kind.SIGN, token.text, token.start)
            if sign.text == "-" and self.peek().kind is Kind.NUMBER:
                # In Spark's grammar the minus belongs to the number: -1::string is '-1'.
                return self._accessed(read_number(self, sign))
            return Node(Form.ARITHMETIC, (sign, self._signed()))

    def _accessed(self, node: Node) -> Node:
        while True:
            if self.is_symbol("["):
                with self.deeper():
                    index = (self.open("["), self._value(), self.symbol("]"))
                node = self._chained(Form.ACCESS, node, *index)
            elif self.is_symbol("."):
                node = self._chained(Form.ACCESS, node, self.next(), self.name())
            elif self.is_symbol("::", "?::"):
                word = "CAST" if self.next().text == "::" else "TRY_CAST"
                node = self._wrapped(cast(word, node, read_type(self)))
            elif self.is_word("COLLATE"):
                node = self._chained(Form.ACCESS, node, keyword(self.next()), self.collation())
            elif self.is_symbol(":"):
                raise self.refused(
                    "reads into JSON or a variant with ':', which not every writer understands",
                    "Use get_json_object(column, '$.path') or "
                    "variant_get(column, '$.path', 'type').",
                )
            else:
                return node

    def _primary(self) -> Node:
        token = self.peek()
        if token.kind is Kind.NUMBER:
            return read_number(self)
        if token.kind is Kind.STRING:
            return Node(Form.LITERAL, (self.next(),))
        if token.kind is Kind.NAME:
            return self._column_or_call()
        if token.kind is Kind.WORD:
            return self._worded(token)
        if self.is_symbol("("):
            parts = self._list()
            return Node(Form.PARENTHESES if len(parts) == 3 else Form.ROW, tuple(parts))
        if self.is_symbol("*"):
            raise self.star()
        if self.is_symbol(":"):
            raise self.refused("holds a parameter marker", "Write the value itself.")
        raise self.unexpected("a value is missing")

    def _refuse_query(self) -> None:
        after = self.peek(1)
        starts_value = after.kind in (Kind.WORD, Kind.NAME, Kind.STRING, Kind.NUMBER)
        if self.is_word("SELECT", "WITH") or (
            self.is_word("VALUES", "TABLE", "FROM", "MAP", "REDUCE")
            and starts_value
            and after.upper not in OPERATOR_WORDS
        ):
            raise self.refused(
                "reads other rows or tables with a sub-query, after which no write would work",
                "Look it up before the write, into a column that the rule can test; put "
                "back-quotes round a column of that name.",
            )

    def _worded(self, token: Token) -> Node:
        called = self.is_symbol("(", ahead=1)
        if token.upper in ("NULL", "TRUE", "FALSE"):
            return Node(Form.LITERAL, (keyword(self.next()),))
        if token.upper == "CASE":
            return self._case()
        if token.upper in ("CAST", "TRY_CAST") and called:
            return self._cast_call()
        if token.upper == "INTERVAL" and begins_interval(self, 1):
            return read_interval(self)
        if self.peek(1).kind is Kind.STRING and token.upper not in OPERATOR_WORDS:
            return read_typed(self)
        if token.upper in BARE_CLOCK and not called:
            return call(self.next().text.lower())
        if token.upper in BARE_SESSION and not called:
            raise _refused_function(token)
        if token.upper == "NOT":
            raise self.unexpected("put parentheses round NOT and what follows it")
        if token.upper in OPERATOR_WORDS:
            raise self.unexpected("a value is missing; back-quotes would make it a column")
        self._refuse_query()
        return self._column_or_call()

    def _case(self) -> Node:
        with self.deeper():
            parts: list[Part] = [keyword(self.next())]
            if not self.is_word("WHEN"):
                parts.append(self.expression())
            while True:
                parts += (self.word("WHEN"), self.expression())
                parts += (self.word("THEN"), self.expression())
                if not self.is_word("WHEN"):
                    break
            if self.is_word("ELSE"):
                parts += (keyword(self.next()), self.expression())
            return Node(Form.CASE, (*parts, self.word("END")))

    def _cast_call(self) -> Node:
        with self.deeper():
            word = keyword(self.next())
            self.symbol("(")
            value = self.expression()
            self.word("AS")
            written = read_type(self)
            if written == "STRING" and self.is_word("COLLATE"):
                self.next()
                written = f"STRING COLLATE {self.collation().text}"
            self.symbol(")")
            return cast(word.text, value, written)

    # Columns and calls

    def _column_or_call(self) -> Node:
        first = self.peek()
        path = [self.name()]
        while self.is_symbol("."):
            path += (self.next(), self.name())
        if not self.is_symbol("("):
            return Node(Form.COLUMN, tuple(path))
        function = path[0].value
        if len(path) > 1 or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", function):
            called = "".join(part.text for part in path)
            raise NotARuleError(
                f"calls {called}, which is not one of Spark's own functions",
                "Other writers do not have your functions: write the rule with Spark's own.",
                first.start,
            )
        if function.lower() in REFUSED:
            raise _refused_function(path[0])
        token = Token(Kind.FUNCTION, function, first.start, function.lower())
        with self.deeper():
            opening, inner = self.open(), self._arguments(first.upper)
            return Node(Form.CALL, (token, opening, *inner, self.symbol(")")))

    def _arguments(self, function: str) -> list[Part]:
        if self.is_symbol(")"):
            return []
        lead = self._lead(function)
        parts: list[Part] = [keyword(lead) if lead else self._argument(function)]
        while not self.is_symbol(")"):
            if self.is_symbol(","):
                parts.append(self.next())
            elif self.is_word(*CONNECTIVES.get(function, ())):
                parts.append(keyword(self.next()))
            elif not (function == "TRIM" and lead and len(parts) == 1):
                raise self.unexpected("',' or ')' is missing")
            parts.append(self._argument(function))
        if lead and function in UNIT_FIRST and len(parts) == 3:
            # date_add(day, 1): with two arguments the first is a column after all.
            column = Token(Kind.NAME, spelled(lead.text), lead.start, lead.text)
            parts[0] = Node(Form.COLUMN, (column,))
        return parts

    def _argument(self, function: str) -> Node:
        value = self._value() if function == "POSITION" else self.expression()
        if function == "STRUCT" and self.is_word("AS"):
            return Node(Form.ACCESS, (value, keyword(self.next()), self.name()))
        return value

    def _lead(self, function: str) -> Token | None:
        """Take the word that opens EXTRACT(YEAR FROM d), TRIM(BOTH FROM s), DATEADD(DAY, 1, d)."""
        if self.peek().kind is not Kind.WORD:
            return None
        if function == "EXTRACT":
            leads = self.is_word("FROM", ahead=1)
        elif function == "TRIM":
            leads = self.is_word("BOTH", "LEADING", "TRAILING") and not self.is_symbol(
                ")", ",", ".", ahead=1
            )
        else:
            comma = self.is_symbol(",", ahead=1)
            leads = function in UNIT_FIRST and self.is_word(*UNITS) and comma
        return self.next() if leads else None


def _refused_function(token: Token) -> NotARuleError:
    function = (token.value or token.text).lower()
    reason, hint = REFUSED[function]
    return NotARuleError(f"calls {function}, which {reason}", hint, token.start)


def _joined(form: Form, parts: list[Part]) -> Node:
    first = parts[0]
    return first if len(parts) == 1 and isinstance(first, Node) else Node(form, tuple(parts))


def _check_boolean(root: Node) -> None:
    literal = root.bare()
    if literal.form is Form.LITERAL:
        raise NotARuleError("is a constant and says nothing about a row", WANTED, literal.start)
    connected = (part for node in root.walk() if node.connects for part in node.nodes)
    for value in (node.bare() for node in (root, *connected)):
        if value.form in (Form.ARITHMETIC, Form.ROW) or (
            value.form is Form.LITERAL and not value.is_logical
        ):
            raise NotARuleError("has a value where true or false is needed", WANTED, value.start)
        if value.form is Form.CAST and value.type != "BOOLEAN":
            raise NotARuleError(
                f"has a value of type {value.type} where true or false is needed",
                WANTED,
                value.start,
            )
