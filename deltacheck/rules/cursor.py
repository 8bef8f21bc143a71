"""A place in the tokens of a rule, moved forward by those who read them.

Promises that what does not fit is refused with a reason and a remedy. Knows no forms: those are
``grammar.py``'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deltacheck.rules.tokens import Kind, NotARuleError, Token, keyword, symbol
from deltacheck.rules.words import QUERY_WORDS, WINDOW_WORDS, spelled

MAX_DEPTH = 24
"""How deep parentheses, calls, types and CASE may nest."""

WANTED = "Write one boolean expression about one row, such as amount > 0."
MANY_ROWS = "Compute it before the write, into a column that the rule can test."


class Cursor:
    """A place in a list of tokens.

    Args:
        tokens: The tokens, an END token last.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._index = 0
        self._depth = 0

    def peek(self, ahead: int = 0) -> Token:
        """The token ``ahead`` of the next one, which stays where it is."""
        return self._tokens[min(self._index + ahead, len(self._tokens) - 1)]

    def next(self) -> Token:
        """Take the next token."""
        token = self.peek()
        self._index += 1
        return token

    def is_symbol(self, *symbols: str, ahead: int = 0) -> bool:
        """Whether one of ``symbols`` follows."""
        token = self.peek(ahead)
        return token.kind is Kind.SYMBOL and token.text in symbols

    def is_word(self, *words: str, ahead: int = 0) -> bool:
        """Whether one of ``words``, given in upper case, follows without quotes."""
        return self.peek(ahead).upper in words

    def word(self, *words: str) -> Token:
        """Take one of ``words`` as a keyword.

        Raises:
            NotARuleError: Something else follows.
        """
        if not self.is_word(*words):
            raise self.unexpected(f"{' or '.join(sorted(words))} is missing")
        return keyword(self.next())

    def symbol(self, text: str) -> Token:
        """Take a symbol.

        Raises:
            NotARuleError: Something else follows.
        """
        if not self.is_symbol(text):
            raise self.unexpected(f"{text!r} is missing")
        return self.next()

    def open(self, text: str = "(") -> Token:
        """Take a bracket that belongs to the word before it.

        Raises:
            NotARuleError: Something else follows.
        """
        self.symbol(text)
        return symbol(text, Kind.OPEN)

    def name(self) -> Token:
        """Take the name of a column or a field.

        Raises:
            NotARuleError: Something else follows.
        """
        token = self.peek()
        if token.kind is Kind.NAME:
            return self.next()
        if self.is_symbol("*"):
            raise self.star()
        if token.kind is not Kind.WORD:
            raise self.unexpected("a name is missing")
        self.next()
        return Token(Kind.NAME, spelled(token.text), token.start, token.text)

    def collation(self) -> Token:
        """Take the name of a collation.

        Raises:
            NotARuleError: Something else follows.
        """
        if self.peek().kind is not Kind.WORD:
            raise self.unexpected("the name of a collation is missing")
        return keyword(self.next())

    def close_type(self) -> None:
        """Take one ``>``, of which the lexer may have read two or three as a shift.

        Raises:
            NotARuleError: Something else follows.
        """
        if not self.is_symbol(">>", ">>>"):
            self.symbol(">")
            return
        token = self.peek()
        self._tokens[self._index] = Token(Kind.SYMBOL, token.text[1:], token.start + 1)

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Read what is inside brackets.

        Raises:
            NotARuleError: They nest too deep.
        """
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.too_deep()
        yield
        self._depth -= 1

    def finish(self) -> None:
        """Make sure that nothing follows.

        Raises:
            NotARuleError: Something does.
        """
        if self.peek().kind is not Kind.END:
            raise self.unexpected("an operator is missing, or this is more than an expression")

    def refused(self, reason: str, hint: str) -> NotARuleError:
        """An error about what follows."""
        return NotARuleError(reason, hint, self.peek().start)

    def too_deep(self) -> NotARuleError:
        """An error about brackets, calls or casts in one another."""
        return self.refused(
            f"is nested more than {MAX_DEPTH} levels deep",
            "Split it into several rules, or compute a column that it can test.",
        )

    def star(self) -> NotARuleError:
        """An error about a ``*`` that is no product."""
        return self.refused("holds '*', which stands for all columns", "Name the columns.")

    def unexpected(self, problem: str) -> NotARuleError:
        """An error about what follows where something else should."""
        token = self.peek()
        if token.kind is Kind.END:
            return self.refused(f"ends too early: {problem}", WANTED)
        if token.upper in WINDOW_WORDS:
            reason = "uses a window or an aggregate: it needs many rows, and a rule judges one"
            return self.refused(reason, MANY_ROWS)
        if token.upper in QUERY_WORDS:
            return self.refused(
                f"is a query or a part of one ({token.upper})",
                "Write the condition alone; look other tables up before the write, into a column.",
            )
        shown = token.text if len(token.text) <= 40 else token.text[:37] + "..."
        return self.refused(f"is not understood at {shown} ({problem})", WANTED)
