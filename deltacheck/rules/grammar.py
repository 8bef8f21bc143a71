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
from collections.abc import Iterator
from contextlib import contextmanager

from deltacheck.rules.functions import BARE_CLOCK, BARE_SESSION, REFUSED
from deltacheck.rules.nodes import Form, Node, Part, call, cast
from deltacheck.rules.tokens import Kind, NotARuleError, Token, keyword, string, symbol, tokenize
from deltacheck.rules.words import (
    COMPLEX_TYPES,
    CONNECTIVES,
    INTERVAL_UNIT,
    LITERAL_TYPES,
    OPERATOR_WORDS,
    QUERY_WORDS,
    TYPES,
    UNIT_FIRST,
    UNITS,
    WINDOW_WORDS,
    spelled,
)

MAX_DEPTH = 24
"""How deep parentheses, calls and CASE may nest."""

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

_WANTED = "Write one boolean expression about one row, such as amount > 0."
_MANY_ROWS = "Declare it under 'checks:' or 'batch:', which judge a table or a batch as a whole."


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


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._index = 0
        self._depth = 0

    # Tokens

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._index + ahead, len(self._tokens) - 1)]

    def _next(self) -> Token:
        token = self._peek()
        self._index += 1
        return token

    def _is_symbol(self, *symbols: str, ahead: int = 0) -> bool:
        token = self._peek(ahead)
        return token.kind is Kind.SYMBOL and token.text in symbols

    def _is_word(self, *words: str, ahead: int = 0) -> bool:
        return self._peek(ahead).upper in words

    def _word(self, *words: str) -> Token:
        if not self._is_word(*words):
            raise self._unexpected(f"{' or '.join(words)} is missing")
        return keyword(self._next())

    def _symbol(self, text: str) -> Token:
        if not self._is_symbol(text):
            raise self._unexpected(f"{text!r} is missing")
        return self._next()

    def _open(self, text: str = "(") -> Token:
        self._symbol(text)
        return symbol(text, Kind.OPEN)

    def _refused(self, reason: str, hint: str) -> NotARuleError:
        return NotARuleError(reason, hint, self._peek().start)

    def _unexpected(self, problem: str) -> NotARuleError:
        token = self._peek()
        if token.kind is Kind.END:
            return self._refused(f"ends too early: {problem}", _WANTED)
        if token.upper in WINDOW_WORDS:
            reason = "uses a window or an aggregate: it needs many rows, and a rule judges one"
            return self._refused(reason, _MANY_ROWS)
        if token.upper in QUERY_WORDS:
            return self._refused(
                f"is a query or a part of one ({token.upper})",
                "Write the condition alone; look-ups in other tables go under 'checks:'.",
            )
        shown = token.text if len(token.text) <= 40 else token.text[:37] + "..."
        return self._refused(f"is not understood at {shown} ({problem})", _WANTED)

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._refused(
                f"is nested more than {MAX_DEPTH} levels deep",
                "Split it into several rules, or compute a column that it can test.",
            )
        yield
        self._depth -= 1

    def _chained(self, form: Form, *parts: Part) -> Node:
        node = Node(form, parts)
        if node.height > MAX_CHAIN:
            raise self._refused(
                f"chains more than {MAX_CHAIN} operators",
                "Split it into several rules, or compute a column that it can test.",
            )
        return node

    def finish(self) -> None:
        """Make sure that nothing follows.

        Raises:
            NotARuleError: Something does.
        """
        if self._peek().kind is not Kind.END:
            raise self._unexpected(
                "nothing, or an operator, should follow; statements are not rules"
            )

    # Boolean expressions

    def expression(self) -> Node:
        """Read ``a OR b``, ``a AND b``, ``NOT a`` or a predicate.

        Raises:
            NotARuleError: There is none.
        """
        parts: list[Part] = [self._conjunction()]
        while self._is_word("OR"):
            parts += (keyword(self._next()), self._conjunction())
        return _joined(Form.OR, parts)

    def _conjunction(self) -> Node:
        parts: list[Part] = [self._negation()]
        while self._is_word("AND"):
            parts += (keyword(self._next()), self._negation())
        return _joined(Form.AND, parts)

    def _negation(self) -> Node:
        if not self._is_word("NOT") and not self._is_symbol("!"):
            return self._predicate()
        with self._deeper():
            token = Token(Kind.KEYWORD, "NOT", self._next().start)
            return Node(Form.NOT, (token, self._negation()))

    def _predicate(self) -> Node:
        left = self._value()
        negated: list[Token] = []
        if self._is_word("NOT") and self._is_word(
            "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", ahead=1
        ):
            negated = [keyword(self._next())]
        word = self._peek().upper
        if word == "IN":
            parts: list[Part] = [left, *negated, keyword(self._next()), *self._list()]
            return Node(Form.PREDICATE, tuple(parts))
        if word == "BETWEEN":
            parts = [left, *negated, keyword(self._next()), self._value()]
            return Node(Form.PREDICATE, (*parts, self._word("AND"), self._value()))
        if word in ("LIKE", "ILIKE", "RLIKE", "REGEXP"):
            return self._like([left, *negated])
        if word == "IS":
            return self._is(left)
        return left

    def _list(self) -> list[Part]:
        self._symbol("(")
        self._refuse_query()
        with self._deeper():
            parts: list[Part] = [symbol("("), self.expression()]
            while self._is_symbol(","):
                parts += (self._next(), self.expression())
        return [*parts, self._symbol(")")]

    def _like(self, parts: list[Part]) -> Node:
        word = self._word("LIKE", "ILIKE", "RLIKE", "REGEXP")
        parts.append(Token(Kind.KEYWORD, "RLIKE", word.start) if word.text == "REGEXP" else word)
        if self._is_word("ANY", "SOME", "ALL") and self._is_symbol("(", ahead=1):
            return Node(Form.PREDICATE, (*parts, keyword(self._next()), *self._list()))
        parts.append(self._value())
        if self._is_word("ESCAPE"):
            parts.append(keyword(self._next()))
            if self._peek().kind is not Kind.STRING:
                raise self._unexpected("ESCAPE takes one character in quotes")
            parts.append(self._next())
        return Node(Form.PREDICATE, tuple(parts))

    def _is(self, left: Node) -> Node:
        parts: list[Part] = [left, keyword(self._next())]
        if self._is_word("NOT"):
            parts.append(keyword(self._next()))
        kind = self._word("NULL", "TRUE", "FALSE", "UNKNOWN", "DISTINCT")
        parts.append(kind)
        if kind.text == "DISTINCT":
            parts += (self._word("FROM"), self._value())
        return Node(Form.PREDICATE, tuple(parts))

    # Values

    def _value(self, minimum: int = _COMPARISON) -> Node:
        left = self._signed()
        while (level := _LEVELS.get(self._operator(), -1)) >= minimum:
            operator = self._next()
            right = self._value(level + 1)
            if operator.text in _SHIFTS:
                left = call(_SHIFTS[operator.text], left, right)
            elif level == _COMPARISON:
                left = self._chained(Form.COMPARISON, left, operator, right)
            else:
                spelled = operator if operator.kind is Kind.SYMBOL else keyword(operator)
                left = self._chained(Form.ARITHMETIC, left, spelled, right)
        return left

    def _operator(self) -> str:
        token = self._peek()
        return token.text if token.kind is Kind.SYMBOL else token.upper

    def _signed(self) -> Node:
        if not self._is_symbol("-", "+", "~"):
            return self._accessed(self._primary())
        with self._deeper():
            token = self._next()
            sign = Token(Kind.SIGN, token.text, token.start)
            if sign.text == "-" and self._peek().kind is Kind.NUMBER:
                # In Spark's grammar the minus belongs to the number: -1::string is '-1'.
                return self._accessed(self._number(sign))
            return Node(Form.ARITHMETIC, (sign, self._signed()))

    def _number(self, *sign: Token) -> Node:
        token = self._next()
        if not token.text.endswith("F"):
            return Node(Form.LITERAL, (*sign, token))
        # Delta's lexer knows no F: it would cut 1.5F into 1, .5 and F.
        digits = "".join(part.text for part in (*sign, token))[:-1]
        return cast("CAST", Node(Form.LITERAL, (string(digits, token.start),)), "FLOAT")

    def _accessed(self, node: Node) -> Node:
        while True:
            if self._is_symbol("["):
                with self._deeper():
                    index = (self._open("["), self._value(), self._symbol("]"))
                node = self._chained(Form.ACCESS, node, *index)
            elif self._is_symbol("."):
                node = self._chained(Form.ACCESS, node, self._next(), self._name())
            elif self._is_symbol("::", "?::"):
                word = "CAST" if self._next().text == "::" else "TRY_CAST"
                node = cast(word, node, self._type())
            elif self._is_word("COLLATE"):
                node = self._chained(Form.ACCESS, node, keyword(self._next()), self._collation())
            elif self._is_symbol(":"):
                raise self._refused(
                    "reads into JSON or a variant with ':', which not every writer understands",
                    "Use get_json_object(column, '$.path') or "
                    "variant_get(column, '$.path', 'type').",
                )
            else:
                return node

    def _name(self) -> Token:
        token = self._peek()
        if token.kind is Kind.NAME:
            return self._next()
        if token.kind is not Kind.WORD:
            raise self._star() if self._is_symbol("*") else self._unexpected("a name is missing")
        self._next()
        return Token(Kind.NAME, spelled(token.text), token.start, token.text)

    def _collation(self) -> Token:
        if self._peek().kind is not Kind.WORD:
            raise self._unexpected("the name of a collation is missing")
        return keyword(self._next())

    def _star(self) -> NotARuleError:
        return self._refused("holds '*', which stands for all columns", "Name the columns.")

    def _primary(self) -> Node:
        token = self._peek()
        if token.kind is Kind.NUMBER:
            return self._number()
        if token.kind is Kind.STRING:
            return Node(Form.LITERAL, (self._next(),))
        if token.kind is Kind.NAME:
            return self._column_or_call()
        if token.kind is Kind.WORD:
            return self._worded(token)
        if self._is_symbol("("):
            parts = self._list()
            return Node(Form.PARENTHESES if len(parts) == 3 else Form.ROW, tuple(parts))
        if self._is_symbol("*"):
            raise self._star()
        if self._is_symbol(":"):
            raise self._refused("holds a parameter marker", "Write the value itself.")
        raise self._unexpected("a value is missing")

    def _refuse_query(self) -> None:
        after = self._peek(1)
        starts_value = after.kind in (Kind.WORD, Kind.NAME, Kind.STRING, Kind.NUMBER)
        if self._is_word("SELECT", "WITH") or (
            self._is_word("VALUES", "TABLE", "FROM", "MAP", "REDUCE")
            and starts_value
            and after.upper not in OPERATOR_WORDS
        ):
            raise self._refused(
                "reads other rows or tables with a sub-query, after which no write would work",
                "Declare look-ups in other tables under 'checks:' (references); put back-quotes "
                "round a column of that name.",
            )

    def _worded(self, token: Token) -> Node:
        called = self._is_symbol("(", ahead=1)
        if token.upper in ("NULL", "TRUE", "FALSE"):
            return Node(Form.LITERAL, (keyword(self._next()),))
        if token.upper == "CASE":
            return self._case()
        if token.upper in ("CAST", "TRY_CAST") and called:
            return self._cast_call()
        if token.upper == "INTERVAL" and self._begins_interval(1):
            return self._interval()
        if self._peek(1).kind is Kind.STRING and token.upper not in OPERATOR_WORDS:
            return self._typed_literal(token)
        if token.upper in BARE_CLOCK and not called:
            return call(self._next().text.lower())
        if token.upper in BARE_SESSION and not called:
            raise self._refused_function(token)
        if token.upper == "NOT":
            raise self._unexpected("put parentheses round NOT and what follows it")
        if token.upper in OPERATOR_WORDS:
            raise self._unexpected("a value is missing; back-quotes make it a column")
        self._refuse_query()
        return self._column_or_call()

    def _refused_function(self, token: Token) -> NotARuleError:
        function = (token.value or token.text).lower()
        reason, hint = REFUSED[function]
        return NotARuleError(f"calls {function}, which {reason}", hint, token.start)

    def _case(self) -> Node:
        with self._deeper():
            parts: list[Part] = [keyword(self._next())]
            if not self._is_word("WHEN"):
                parts.append(self.expression())
            while True:
                parts += (self._word("WHEN"), self.expression())
                parts += (self._word("THEN"), self.expression())
                if not self._is_word("WHEN"):
                    break
            if self._is_word("ELSE"):
                parts += (keyword(self._next()), self.expression())
            return Node(Form.CASE, (*parts, self._word("END")))

    def _cast_call(self) -> Node:
        with self._deeper():
            word = keyword(self._next())
            self._symbol("(")
            value = self.expression()
            self._word("AS")
            written = self._type()
            if written == "STRING" and self._is_word("COLLATE"):
                self._next()
                written = f"STRING COLLATE {self._collation().text}"
            self._symbol(")")
            return cast(word.text, value, written)

    def _typed_literal(self, token: Token) -> Node:
        if token.upper not in LITERAL_TYPES:
            raise self._refused(
                f"has a string with the prefix {token.text}",
                "Spark knows DATE, TIME, TIMESTAMP, TIMESTAMP_NTZ, TIMESTAMP_LTZ, INTERVAL and "
                "X before a string.",
            )
        return Node(Form.LITERAL, (keyword(self._next()), self._next()))

    def _begins_interval(self, ahead: int) -> bool:
        ahead += self._is_symbol("-", "+", ahead=ahead)
        return self._peek(ahead).kind in (Kind.NUMBER, Kind.STRING) and bool(
            INTERVAL_UNIT.fullmatch(self._peek(ahead + 1).upper)
        )

    def _interval(self) -> Node:
        parts = [keyword(self._next())]
        while self._begins_interval(0):
            if self._is_symbol("-", "+"):
                parts.append(Token(Kind.SIGN, self._next().text))
            parts += (self._next(), keyword(self._next()))
            if self._is_word("TO"):
                parts += (keyword(self._next()), self._word(*UNITS))
                break
        return Node(Form.LITERAL, tuple(parts))

    def _column_or_call(self) -> Node:
        first = self._peek()
        path = [self._name()]
        while self._is_symbol("."):
            path += (self._next(), self._name())
        if not self._is_symbol("("):
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
            raise self._refused_function(path[0])
        token = Token(Kind.FUNCTION, function, first.start, function.lower())
        with self._deeper():
            opening, inner = self._open(), self._arguments(first.upper)
            return Node(Form.CALL, (token, opening, *inner, self._symbol(")")))

    def _arguments(self, function: str) -> list[Part]:
        if self._is_symbol(")"):
            return []
        lead = self._lead(function)
        parts: list[Part] = [lead or self._argument(function)]
        while not self._is_symbol(")"):
            if self._is_symbol(","):
                parts.append(self._next())
            elif self._is_word(*CONNECTIVES.get(function, ())):
                parts.append(keyword(self._next()))
            elif not (function == "TRIM" and parts == [lead]):
                raise self._unexpected("',' or ')' is missing")
            parts.append(self._argument(function))
        if lead and function in UNIT_FIRST and len(parts) == 3:
            # date_add(day, 1): with two arguments the first is a column after all.
            parts[0] = Node(Form.COLUMN, (Token(Kind.NAME, lead.text, lead.start, lead.text),))
        return parts

    def _argument(self, function: str) -> Node:
        value = self._value() if function == "POSITION" else self.expression()
        if function == "STRUCT" and self._is_word("AS"):
            return Node(Form.ACCESS, (value, keyword(self._next()), self._name()))
        return value

    def _lead(self, function: str) -> Token | None:
        """The word that opens EXTRACT(YEAR FROM d), TRIM(BOTH FROM s), DATEADD(DAY, 1, d)."""
        if function == "EXTRACT":
            leads = self._is_word("FROM", ahead=1)
        elif function == "TRIM":
            leads = self._is_word("BOTH", "LEADING", "TRAILING") and not self._is_symbol(
                ")", ",", ".", ahead=1
            )
        else:
            leads = (
                function in UNIT_FIRST and self._is_word(*UNITS) and self._is_symbol(",", ahead=1)
            )
        return keyword(self._next()) if leads and self._peek().kind is Kind.WORD else None

    # Types

    def _type(self) -> str:
        word = self._peek().upper
        if word in COMPLEX_TYPES:
            with self._deeper():
                return self._complex_type()
        if word == "INTERVAL":
            parts = [self._next().upper, self._word(*UNITS).text]
            if self._is_word("TO"):
                self._next()
                parts += ("TO", self._word(*UNITS).text)
            return " ".join(parts)
        if word not in TYPES:
            raise self._unexpected("the name of a type is missing")
        self._next()
        if not self._is_symbol("("):
            return TYPES[word]
        self._next()
        sizes = [self._size()]
        while self._is_symbol(","):
            self._next()
            sizes.append(self._size())
        self._symbol(")")
        return f"{TYPES[word]}({', '.join(sizes)})"

    def _size(self) -> str:
        if not self._peek().text.isdigit():
            raise self._unexpected("a whole number is missing")
        return self._next().text

    def _complex_type(self) -> str:
        word = self._next().upper
        self._symbol("<")
        inner = [self._inner_type(word)]
        while self._is_symbol(",") and word != "ARRAY":
            self._next()
            inner.append(self._inner_type(word))
        if self._is_symbol(">>", ">>>"):
            # Two or three closing brackets, which the lexer took for a shift.
            closing = self._peek()
            self._tokens[self._index] = Token(Kind.SYMBOL, closing.text[1:], closing.start + 1)
        else:
            self._symbol(">")
        # Spaces, so that no two > make a shift.
        return f"{word}<{', '.join(inner)} >"

    def _inner_type(self, word: str) -> str:
        if word != "STRUCT":
            return self._type()
        field = self._name().text
        if self._is_symbol(":"):
            self._next()
        return f"{field}: {self._type()}"


def _joined(form: Form, parts: list[Part]) -> Node:
    first = parts[0]
    return first if len(parts) == 1 and isinstance(first, Node) else Node(form, tuple(parts))


def _check_boolean(root: Node) -> None:
    literal = root.bare()
    if literal.form is Form.LITERAL:
        raise NotARuleError("is a constant and says nothing about a row", _WANTED, literal.start)
    connected = (part for node in root.walk() if node.connects for part in node.nodes)
    for value in (node.bare() for node in (root, *connected)):
        if value.form in (Form.ARITHMETIC, Form.ROW) or (
            value.form is Form.LITERAL and not value.is_logical
        ):
            raise NotARuleError("has a value where true or false is needed", _WANTED, value.start)
        if value.form is Form.CAST and value.type != "BOOLEAN":
            raise NotARuleError(
                f"has a value of type {value.type} where true or false is needed",
                _WANTED,
                value.start,
            )
