"""Random rules and random rows over one table, for property tests.

A rule is drawn as a tree and then spelled, plainly or at random: other spaces and comments, other
case, quoted names, redundant parentheses, other signs for the same operator. Each is total: no
row makes it raise an error, so that Delta's verdict is violated or not.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import IntEnum
from typing import Any

from hypothesis import strategies as st

SCHEMA = (
    "id INT, i INT, j BIGINT, x DOUBLE, p DECIMAL(38, 10), s STRING, d DATE, ts TIMESTAMP, "
    "ok BOOLEAN, st STRUCT<k: INT, v: STRING>, arr ARRAY<INT>, `order` INT"
)


class Level(IntEnum):
    """How tight a boolean expression binds."""

    OR = 1
    AND = 2
    NOT = 3
    PREDICATE = 4


@dataclass(frozen=True)
class Word:
    """A token of a rule. Kinds: column, keyword, function, operator, other."""

    kind: str
    text: str


@dataclass(frozen=True)
class Inner:
    """A boolean expression inside another, and how tight it must bind there."""

    rule: Bool
    level: Level


Part = Word | Inner


@dataclass(frozen=True)
class Bool:
    """A boolean expression."""

    level: Level
    parts: tuple[Part, ...]

    def words(self, chance: random.Random | None = None) -> list[Word]:
        """The tokens, with the parentheses that are needed, and some that are not."""
        words: list[Word] = []
        for part in self.parts:
            if isinstance(part, Word):
                words.append(part)
                continue
            needed = part.rule.level < part.level
            extra = not needed and chance is not None and chance.random() < 0.15
            inside = part.rule.words(chance)
            words += [*_OPEN, *inside, *_CLOSE] if needed or extra else inside
        return words

    def plain(self) -> str:
        """The rule, one space between two tokens."""
        return " ".join(word.text for word in self.words())

    def spelled(self, chance: random.Random) -> str:
        """The same rule, spelled another way."""
        text = ""
        for word in self.words(chance):
            text += chance.choice((" ", "  ", "\n", "\t", " /* x */ ", " -- y\n"))
            text += _spelled(word, chance)
        return text


_OPEN, _CLOSE, _COMMA = ((Word("other", text),) for text in "(),")
_SIGNS = {"=": ("=", "=="), "!=": ("!=", "<>"), "<=": ("<=", "!>"), ">=": (">=", "!<")}


def _spelled(word: Word, chance: random.Random) -> str:
    if word.kind == "operator":
        return chance.choice(_SIGNS.get(word.text, (word.text,)))
    if word.kind == "other":
        return word.text
    if word.kind == "column" and (chance.random() < 0.3 or word.text == "order"):
        return f"`{chance.choice((word.text, word.text.upper()))}`"
    return chance.choice((word.text, word.text.upper(), word.text.lower(), word.text.title()))


Words = tuple[Word, ...]
"""A value that needs no parentheses as an operand of a comparison."""


def _column(name: str) -> Words:
    return (Word("column", name),)


def _other(text: str) -> Words:
    return (Word("other", text),)


def _call(name: str, *arguments: Words) -> Words:
    words = [Word("function", name), *_OPEN]
    for index, argument in enumerate(arguments):
        words += (*_COMMA, *argument) if index else argument
    return (*words, *_CLOSE)


def _field(name: str, field: str) -> Words:
    return (*_column(name), Word("other", "."), *_column(field))


_INT_LITERALS = st.sampled_from(
    ["0", "1", "-1", "2", "3L", "7S", "- 2", "2147483647", "-2147483648", "9223372036854775807L"]
).map(_other)
_STRING_LITERALS = st.sampled_from(
    [
        "''",
        "'a'",
        "'A'",
        "' a '",
        "'It\\'s'",
        '"It\'s"',
        "'It''s'",
        "'%'",
        "'a_b'",
        "'\\\\'",
        "'é'",
        "'a\\tb'",
        "'--'",
        "'/*'",
        "r'\\d'",
        "'null'",
        "'a' 'b'",
        "'\\u0041'",
    ]
).map(_other)
_PATTERNS = st.sampled_from(["'%'", "''", "'a%'", "'%\\_%'", "'_'", "'It%'", "'%\\\\\\\\'"]).map(
    _other
)
_REGEXES = st.sampled_from(["'^a'", "r'^\\d+$'", "'^\\\\w*$'", "'.'", "'^$'"]).map(_other)

_text: st.SearchStrategy[Words] = st.one_of(
    st.just(_column("s")), st.just(_field("st", "v")), _STRING_LITERALS
)
_strings: st.SearchStrategy[Words] = st.one_of(
    _text,
    _text.map(lambda a: _call("lower", a)),
    _text.map(lambda a: _call("concat", _call("trim", a), _column("s"))),
    st.just((*_column("s"), Word("other", "||"), Word("other", "'x'"))),
    st.just(
        (
            Word("function", "substring"),
            *_OPEN,
            *_column("s"),
            Word("keyword", "FROM"),
            Word("other", "1"),
            Word("keyword", "FOR"),
            Word("other", "2"),
            *_CLOSE,
        )
    ),
)
_whole: st.SearchStrategy[Words] = st.one_of(
    st.sampled_from(["i", "j", "order"]).map(_column), st.just(_field("st", "k")), _INT_LITERALS
)
_integers: st.SearchStrategy[Words] = st.one_of(
    _whole,
    st.builds(lambda a, b: _call("try_add", a, b), _whole, _whole),
    st.builds(lambda a, b: _call("coalesce", a, b), _whole, _INT_LITERALS),
    st.sampled_from(["% 3", "& 3", "| 4", "^ 1", ">> 2", "<< 1", ">>> 1", "div 5"]).map(
        lambda tail: (*_column("i"), Word("other", tail))
    ),
    st.just((*_column("i"), Word("other", "::"), Word("keyword", "bigint"))),
    _strings.map(lambda a: _call("length", a)),
    st.just(_call("size", _column("arr"))),
    st.just(_call("get", _column("arr"), _other("0"))),
)
_doubles: st.SearchStrategy[Words] = st.one_of(
    st.just(_column("x")),
    st.sampled_from(["0D", "1e0", "-1.5", "1E308", "-0.0D", "1.5F"]).map(_other),
    st.sampled_from(["NaN", "Infinity", "-Infinity"]).map(
        lambda text: _call("double", _other(f"'{text}'"))
    ),
    st.just((*_column("x"), Word("other", "* 2D"))),
    st.just((Word("other", "-"), *_column("x"))),
    st.just(_call("try_divide", _column("x"), _column("i"))),
)
_decimals: st.SearchStrategy[Words] = st.one_of(
    st.just(_column("p")),
    st.sampled_from(["0.0000000001", "1.5BD", "-1.", "9" * 28 + ".9999999999"]).map(_other),
    st.just(_call("try_add", _column("p"), _other("1.5"))),
)
_dates: st.SearchStrategy[Words] = st.one_of(
    st.just(_column("d")),
    st.sampled_from(["0001-01-01", "1970-01-01", "2024-02-29", "9999-12-31"]).map(
        lambda day: (Word("keyword", "date"), Word("other", f"'{day}'"))
    ),
)
_timestamps: st.SearchStrategy[Words] = st.one_of(
    st.just(_column("ts")),
    st.sampled_from(["2024-02-29 12:00:00", "1970-01-01 00:00:00Z"]).map(
        lambda time: (Word("keyword", "timestamp"), Word("other", f"'{time}'"))
    ),
)

_alike = st.sampled_from(
    [
        (_integers, _integers),
        (_integers, _doubles),
        (_doubles, _doubles),
        (_decimals, _decimals),
        (_decimals, _integers),
        (_strings, _strings),
        (_dates, _dates),
        (_timestamps, _timestamps),
    ]
)
_pairs = _alike.flatmap(lambda kinds: st.tuples(*kinds))


def _predicate(*fragments: tuple[Part, ...]) -> Bool:
    return Bool(Level.PREDICATE, tuple(part for fragment in fragments for part in fragment))


def _inner(rule: Bool) -> tuple[Part, ...]:
    return (Inner(rule, Level.OR),)


def _keywords(text: str) -> Words:
    return tuple(Word("keyword", word) for word in text.split())


_NOT = st.sampled_from([(), _keywords("NOT")])
_comparisons = st.builds(
    lambda pair, sign: _predicate(pair[0], (Word("operator", sign),), pair[1]),
    _pairs,
    st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "<=>"]),
)
_predicates = st.one_of(
    st.just(_predicate(_column("ok"))),
    _comparisons,
    _comparisons,
    st.builds(
        lambda value, tail: _predicate(value, _keywords(tail)),
        st.one_of(_integers, _doubles, _decimals, _strings, _dates, st.just(_column("arr"))),
        st.sampled_from(["IS NULL", "IS NOT NULL"]),
    ),
    st.builds(
        lambda pair, tail: _predicate(pair[0], _keywords(tail), pair[1]),
        _pairs,
        st.sampled_from(["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]),
    ),
    st.builds(
        lambda value, no, low, high: _predicate(
            value, no, _keywords("BETWEEN"), low, _keywords("AND"), high
        ),
        _integers,
        _NOT,
        _integers,
        _doubles,
    ),
    st.builds(
        lambda value, no, one, two: _predicate(
            value, no, _keywords("IN"), _OPEN, one, _COMMA, two, _CLOSE
        ),
        _strings,
        _NOT,
        _STRING_LITERALS,
        st.one_of(_STRING_LITERALS, st.just(_keywords("NULL")), _strings),
    ),
    st.builds(
        lambda value, no, pattern: _predicate(value, no, _keywords("LIKE"), pattern),
        _strings,
        _NOT,
        _PATTERNS,
    ),
    st.builds(
        lambda value, no, pattern: _predicate(value, no, _keywords("RLIKE"), pattern),
        _strings,
        _NOT,
        _REGEXES,
    ),
    st.builds(
        lambda value: _predicate(_call("array_contains", _column("arr"), value)), _INT_LITERALS
    ).filter(lambda rule: not any(word.text.endswith(("L", "S")) for word in rule.words())),
)


def _connect(word: str, level: Level, operands: list[Bool]) -> Bool:
    parts: list[Part] = [Inner(operands[0], level)]
    for operand in operands[1:]:
        parts += (Word("keyword", word), Inner(operand, level))
    return Bool(level, tuple(parts))


def _grow(inner: st.SearchStrategy[Bool]) -> st.SearchStrategy[Bool]:
    several = st.lists(inner, min_size=2, max_size=4)
    return st.one_of(
        several.map(lambda operands: _connect("AND", Level.AND, operands)),
        several.map(lambda operands: _connect("OR", Level.OR, operands)),
        inner.map(lambda one: Bool(Level.NOT, (Word("keyword", "NOT"), Inner(one, Level.NOT)))),
        st.builds(
            lambda one, tail: _predicate(_OPEN, _inner(one), _CLOSE, _keywords(tail)),
            inner,
            st.sampled_from(["IS TRUE", "IS NOT FALSE", "IS UNKNOWN", "IS NULL"]),
        ),
        st.builds(
            lambda when, then, other: _predicate(
                _keywords("CASE WHEN"),
                _inner(when),
                _keywords("THEN"),
                _inner(then),
                _keywords("ELSE"),
                _inner(other),
                _keywords("END"),
            ),
            inner,
            inner,
            inner,
        ),
    )


rules: st.SearchStrategy[Bool] = st.recursive(_predicates, _grow, max_leaves=8)
"""Random rules."""

_rows: dict[str, st.SearchStrategy[Any]] = {
    "i": st.sampled_from([0, 1, -1, 2, 3, 7, 2**31 - 1, -(2**31)]),
    "j": st.sampled_from([0, 1, -1, 2, 2**63 - 1, -(2**63), 5]),
    "x": st.sampled_from(
        [0.0, -0.0, 1.0, -1.5, 1e308, 5e-324, float("nan"), float("inf"), float("-inf")]
    ),
    "p": st.sampled_from(
        [
            Decimal(0),
            Decimal("1.5"),
            Decimal("-1"),
            Decimal("0.0000000001"),
            Decimal("9" * 28 + "." + "9" * 10),
            Decimal("-" + "9" * 28 + "." + "9" * 10),
        ]
    ),
    "s": st.sampled_from(
        ["", "a", "A", " a ", "It's", "Its", 'say "x"', "%", "a_b", "\\", "12", "é", "a\tb"]
    ),
    "d": st.sampled_from([date(1, 1, 1), date(1970, 1, 1), date(2024, 2, 29), date(9999, 12, 31)]),
    "ts": st.sampled_from([datetime(1970, 1, 1), datetime(2024, 2, 29, 12)]),
    "ok": st.booleans(),
    "st": st.tuples(st.sampled_from([None, 0, 1, 7]), st.sampled_from([None, "", "a", "It's"])),
    "arr": st.lists(st.sampled_from([None, 0, 1, 2, 3]), max_size=3),
    "order": st.sampled_from([0, 1, 2]),
}

rows: st.SearchStrategy[tuple[Any, ...]] = st.tuples(
    *(st.one_of(st.none(), values, values, values) for values in _rows.values())
)
"""Random rows, without the ``id``."""
