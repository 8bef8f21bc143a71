"""Types and literals of a rule, read token by token."""

from __future__ import annotations

from deltacheck.rules.cursor import Cursor
from deltacheck.rules.nodes import Form, Node, cast
from deltacheck.rules.tokens import Kind, Token, keyword, string
from deltacheck.rules.words import COMPLEX_TYPES, INTERVAL_UNIT, LITERAL_TYPES, TYPES, UNITS


def read_number(cursor: Cursor, *sign: Token) -> Node:
    """Read a number, after a sign that belongs to it."""
    token = cursor.next()
    if not token.text.endswith("F"):
        return Node(Form.LITERAL, (*sign, token))
    # Delta's lexer knows no F: it would cut 1.5F into 1, .5 and F.
    digits = "".join(part.text for part in (*sign, token))[:-1]
    return cast("CAST", Node(Form.LITERAL, (string(digits, token.start),)), "FLOAT")


def read_typed(cursor: Cursor) -> Node:
    """Read ``DATE '2020-01-01'`` and its like.

    Raises:
        NotARuleError: Spark has no such type of literal.
    """
    token = cursor.peek()
    if token.upper not in LITERAL_TYPES:
        raise cursor.refused(
            f"has a string with the prefix {token.text}",
            "Spark knows DATE, TIME, TIMESTAMP, TIMESTAMP_NTZ, TIMESTAMP_LTZ, INTERVAL and X "
            "before a string.",
        )
    return Node(Form.LITERAL, (keyword(cursor.next()), cursor.next()))


def begins_interval(cursor: Cursor, ahead: int) -> bool:
    """Whether a number and a unit of time follow, ``ahead`` of the next token."""
    ahead += cursor.is_symbol("-", "+", ahead=ahead)
    return cursor.peek(ahead).kind in (Kind.NUMBER, Kind.STRING) and bool(
        INTERVAL_UNIT.fullmatch(cursor.peek(ahead + 1).upper)
    )


def read_interval(cursor: Cursor) -> Node:
    """Read ``INTERVAL 1 DAY 2 HOURS`` or ``INTERVAL '1-2' YEAR TO MONTH``.

    Raises:
        NotARuleError: The unit after TO is missing.
    """
    parts = [keyword(cursor.next())]
    while begins_interval(cursor, 0):
        if cursor.is_symbol("-", "+"):
            parts.append(Token(Kind.SIGN, cursor.next().text))
        parts += (cursor.next(), keyword(cursor.next()))
        if cursor.is_word("TO"):
            parts += (keyword(cursor.next()), cursor.word(*UNITS))
            break
    return Node(Form.LITERAL, tuple(parts))


def read_type(cursor: Cursor) -> str:
    """Read the name of a type, and return it in Spark's own spelling.

    Raises:
        NotARuleError: It is none, or none that a rule can cast to.
    """
    word = cursor.peek().upper
    if word in COMPLEX_TYPES:
        with cursor.deeper():
            return _complex_type(cursor)
    if word == "INTERVAL":
        parts = [cursor.next().upper, cursor.word(*UNITS).text]
        if cursor.is_word("TO"):
            parts += (cursor.next().upper, cursor.word(*UNITS).text)
        return " ".join(parts)
    if word not in TYPES:
        raise cursor.unexpected("the name of a type is missing")
    cursor.next()
    if not cursor.is_symbol("("):
        return TYPES[word]
    cursor.next()
    sizes = [_size(cursor)]
    while cursor.is_symbol(","):
        cursor.next()
        sizes.append(_size(cursor))
    cursor.symbol(")")
    return f"{TYPES[word]}({', '.join(sizes)})"


def _size(cursor: Cursor) -> str:
    if not cursor.peek().text.isdecimal():
        raise cursor.unexpected("a whole number is missing")
    return cursor.next().text


def _complex_type(cursor: Cursor) -> str:
    word = cursor.next().upper
    cursor.symbol("<")
    inner = [_inner_type(cursor, word)]
    while cursor.is_symbol(",") and word != "ARRAY":
        cursor.next()
        inner.append(_inner_type(cursor, word))
    cursor.close_type()
    # A space, so that no two > make a shift.
    return f"{word}<{', '.join(inner)} >"


def _inner_type(cursor: Cursor, word: str) -> str:
    if word != "STRUCT":
        return read_type(cursor)
    field = cursor.name().text
    if cursor.is_symbol(":"):
        cursor.next()
    return f"{field}: {read_type(cursor)}"
