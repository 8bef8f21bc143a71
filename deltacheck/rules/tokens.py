r"""The words of a rule: SQL text cut into tokens the way Spark cuts it.

Promises that each token is spelled so that Delta's own, smaller lexer cuts it in the same
place: ``ALTER TABLE ... ADD CONSTRAINT`` stores the tokens that Delta sees, joined with single
spaces, and every writer parses that text again. Raw strings, doubled quotes and neighbouring
strings become one string with ``\`` escapes, operators get their plain spelling, comments are
left out. What Delta would cut differently is refused.

Follows ``SqlBaseLexer.g4`` of Spark 4.2 and ``DeltaSqlBase.g4`` of Delta 4.4, under Spark's
default ``spark.sql.parser.escapedStringLiterals=false``. Knows nothing of what the tokens mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from deltacheck.names import quote

MAX_LENGTH = 20_000
"""The longest rule, in characters: anything longer is not written by a person."""


class NotARuleError(Exception):
    """Why a text is not a rule; ``expression.py`` turns it into an ExpressionError.

    Args:
        reason: What is wrong, as the end of a sentence.
        hint: What to write instead.
        position: Where in the text, counted from 0.
    """

    def __init__(self, reason: str, hint: str, position: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.position = position


class Kind(str, Enum):
    """What a token is. The grammar turns each WORD into a NAME, a FUNCTION or a KEYWORD."""

    WORD = "word"
    NAME = "name"
    FUNCTION = "function"
    KEYWORD = "keyword"
    NUMBER = "number"
    STRING = "string"
    TYPE = "type"
    SYMBOL = "symbol"
    OPEN = "open"
    SIGN = "sign"
    END = "end"


@dataclass(frozen=True)
class Token:
    """One token.

    Attributes:
        kind: What it is. OPEN is a bracket that belongs to the word before it, SIGN an
            operator that belongs to the operand after it.
        text: Its SQL.
        start: Where it begins in the text it was read from.
        value: What a string or a name says, without quotes and escapes.
    """

    kind: Kind
    text: str
    start: int = 0
    value: str = ""

    @property
    def upper(self) -> str:
        """The word in upper case; empty for what is not a bare word."""
        return self.text.upper() if self.kind is Kind.WORD else ""


# Java's regular expressions do not count these as spaces, Spark's lexer does.
_SPACE = r"[ \t\n\f\r\x0b\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]+"
_EXPONENT = r"[eE][+-]?[0-9]+"
_TOKEN = re.compile(
    rf"""
      (?P<space>{_SPACE})
    | (?P<comment>--[^\r\n]* | /\*(?!\+).*?\*/)
    | (?P<raw>[rR]'[^']*' | [rR]"[^"]*")
    | (?P<string>'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*")
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<number>(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:{_EXPONENT})?(?:[bB][dD]|[dDfF])?
        | [0-9]+(?:{_EXPONENT})?(?:[bB][dD]|[lLsSyYdDfF])?)(?![A-Za-z0-9_]))
    | (?P<word>\w+)
    | (?P<symbol><=>|>>>|\?::|<=|>=|<>|!=|==|!<|!>|\|\||<<|>>|::|->|=>|\|>|/\*
        |[()\[\],.=<>+\-*/%&|^~!:;?])
    """,
    re.VERBOSE | re.DOTALL,
)

_PLAIN_OPERATORS = {"==": "=", "<>": "!=", "!>": "<=", "!<": ">="}

_FOREIGN = {
    ";": ("holds ';'", "Write one expression; statements do not belong into a rule."),
    "?": ("holds a parameter marker", "Write the value itself."),
    "->": (
        "uses a lambda, which ALTER TABLE cannot carry to Delta",
        "Use functions that take no lambda (array_contains, array_min, array_max, size, "
        "map_keys ...), or check the elements before they are written.",
    ),
    "=>": ("names an argument", "Give the arguments by position."),
    "|>": ("holds the pipe operator", "Write one boolean expression."),
    "/*": ("holds a comment that does not end, or a hint", "Close it with */ or take it out."),
}

_STRAY = {
    "'": ("has a quote that does not close", "Close the string; inside it write \\'."),
    '"': ("has a quote that does not close", 'Close the string; inside it write \\".'),
    "`": ("has a back-quote that does not close", "Close the name; inside it write ``."),
    "$": (
        "holds '$' outside a string",
        "Variables are not replaced in rules: write the value itself, or put a column name "
        "between back-quotes.",
    ),
    **dict.fromkeys(
        "‘’‚‛“”„‟´",
        ("holds a typographic quote", "Use the plain quote ' (U+0027)."),
    ),
}


def tokenize(text: str) -> list[Token]:
    """Cut ``text`` into tokens, an END token last.

    >>> [token.text for token in tokenize("a=='It''s' -- why")]
    ['a', '=', "'It\\\\'s'", '']

    Raises:
        NotARuleError: A character, a comment or a literal that no rule may hold.
    """
    if len(text) > MAX_LENGTH:
        raise NotARuleError(
            f"is longer than {MAX_LENGTH} characters",
            "Split it into several rules, or compute a column that it can test.",
        )
    return [*_merged(_tokens(text)), Token(Kind.END, "", len(text))]


def _tokens(text: str) -> Iterator[Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise _stray(text[position], position)
        token = _token(match.lastgroup, match.group(), position)
        position = match.end()
        if match.lastgroup == "raw" and text[position : position + 1] in ("'", '"'):
            raise NotARuleError(
                "has a raw string that runs into another quote",
                "Write it as a normal string, with \\\\ for \\ and \\' for '.",
                position,
            )
        if token is not None:
            yield token


def _token(group: str, text: str, start: int) -> Token | None:
    if group == "space":
        return None
    if group == "comment":
        _check_comment(text, start)
        return None
    if group in ("raw", "string"):
        value = text[2:-1] if group == "raw" else _unescape(text, start)
        return string(value, start)
    if group == "quoted":
        return name(text[1:-1].replace("``", "`"), start)
    if group == "number":
        return Token(Kind.NUMBER, text.upper(), start)
    if group == "word":
        # Spark's and Delta's lexers disagree about letters beyond ASCII: only quotes are safe.
        return Token(Kind.WORD, text, start) if text.isascii() else name(text, start)
    if text in _FOREIGN:
        raise NotARuleError(*_FOREIGN[text], start)
    return Token(Kind.SYMBOL, _PLAIN_OPERATORS.get(text, text), start)


def _check_comment(text: str, start: int) -> None:
    # Spark nests /* */ and lets a backslash carry -- on to the next line; Delta does neither.
    if text.endswith("\\") or "/*" in text[2:]:
        raise NotARuleError(
            "has a comment that Spark and Delta end in different places",
            "Take the comment out of the rule; 'description' is the place for it.",
            start,
        )


def _stray(char: str, position: int) -> NotARuleError:
    reason, hint = _STRAY.get(
        char,
        (
            f"holds {char!r} (U+{ord(char):04X}) outside quotes",
            "Put text between single quotes and an unusual column name between back-quotes.",
        ),
    )
    return NotARuleError(reason, hint, position)


def _merged(tokens: Iterator[Token]) -> Iterator[Token]:
    """Join neighbouring strings, as Spark does."""
    last: Token | None = None
    for token in tokens:
        if last is not None and last.kind is token.kind is Kind.STRING:
            last = string(last.value + token.value, last.start)
            continue
        if last is not None:
            yield last
        last = token
    if last is not None:
        yield last


_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))" + r"""|''|\"\"""", re.DOTALL
)
_NAMED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def _unescape(literal: str, start: int) -> str:
    """What a string literal says, as ``SparkParserUtils.unescapeSQLString`` reads it."""
    delimiter = literal[0]

    def char(match: re.Match[str]) -> str:
        short, long, octal, other = match.groups()
        if match[0][0] != "\\":
            return delimiter if match[0][0] == delimiter else match[0]
        if other is not None:
            # Spark keeps the backslash here: \% and \_ are for LIKE.
            return match[0] if other in "%_" else _NAMED.get(other, other)
        code = int(octal, 8) if octal else int(short or long, 16)
        if code > 0x10FFFF:
            raise NotARuleError(
                "holds a character that does not exist", "Correct the \\U escape.", start
            )
        return chr(code)

    value = _ESCAPE.sub(char, literal[1:-1])
    try:
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise NotARuleError(
            "holds half a character (a lone surrogate)", "Correct the \\u escape.", start
        ) from None


def string(value: str, start: int = 0) -> Token:
    r"""A string literal that Spark and Delta read alike, on one line, holding no ``${``.

    >>> print(string("it's 100\\% ${x}").text)
    'it\'s 100\\% \u0024{x}'
    """
    escaped = "".join(map(_escape, value)).replace("${", "\\u0024{")
    return Token(Kind.STRING, f"'{escaped}'", start, value)


_SHORT = {"'": "\\'", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable():
        return char
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[index : index + 4]}" for index in range(0, len(units), 4))


def name(value: str, start: int = 0) -> Token:
    """A quoted identifier.

    Raises:
        NotARuleError: It is empty, unprintable, or Spark would replace a variable in it.
    """
    if not value.strip() or not value.isprintable() or "${" in value:
        raise NotARuleError(
            "has a column name that is empty, unprintable or holds '${'",
            "Rename the column, or use its real name.",
            start,
        )
    return Token(Kind.NAME, quote(value), start, value)


def keyword(token: Token) -> Token:
    """The word, understood as a part of SQL itself."""
    return replace(token, kind=Kind.KEYWORD, text=token.text.upper())


def symbol(text: str, kind: Kind = Kind.SYMBOL) -> Token:
    """A token that the text did not have."""
    return Token(kind, text)
