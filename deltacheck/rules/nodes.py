"""The tree of a rule: nodes made of tokens, and the SQL and the canonical form they spell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Union

from deltacheck.rules.tokens import Kind, Token, symbol


class Form(str, Enum):
    """What a node is."""

    COLUMN = "column"
    LITERAL = "literal"
    CALL = "call"
    CAST = "cast"
    CASE = "case"
    ACCESS = "access"
    PARENTHESES = "parentheses"
    ROW = "row"
    ARITHMETIC = "arithmetic"
    COMPARISON = "comparison"
    PREDICATE = "predicate"
    NOT = "not"
    AND = "and"
    OR = "or"


Part = Union[Token, "Node"]


@dataclass(frozen=True)
class Node:
    """A part of a rule: its form, and its tokens and inner nodes as they follow each other."""

    form: Form
    parts: tuple[Part, ...]

    @cached_property
    def height(self) -> int:
        """How many nodes lie on the longest way down."""
        return 1 + max((node.height for node in self.nodes), default=0)

    @cached_property
    def nesting(self) -> int:
        """How many calls and casts lie in one another."""
        inner = max((node.nesting for node in self.nodes), default=0)
        return inner + (self.form in (Form.CALL, Form.CAST))

    @property
    def nodes(self) -> Iterator[Node]:
        """The inner nodes, in order."""
        return (part for part in self.parts if isinstance(part, Node))

    def tokens(self) -> Iterator[Token]:
        """All tokens, in order."""
        for part in self.parts:
            if isinstance(part, Node):
                yield from part.tokens()
            else:
                yield part

    def walk(self) -> Iterator[Node]:
        """This node and all below it, in order of appearance."""
        yield self
        for node in self.nodes:
            yield from node.walk()

    def bare(self) -> Node:
        """This node without parentheses around it."""
        node = self
        while node.form is Form.PARENTHESES:
            node = next(node.nodes)
        return node

    def conjuncts(self) -> Iterator[Node]:
        """The parts of a top-level AND, in order, parentheses opened; else the node itself."""
        node = self.bare()
        if node.form is not Form.AND:
            yield node
            return
        for part in node.nodes:
            yield from part.conjuncts()

    @property
    def connects(self) -> bool:
        """Whether its inner nodes must be boolean."""
        return self.form in (Form.AND, Form.OR, Form.NOT)

    @property
    def is_logical(self) -> bool:
        """Whether it is TRUE, FALSE or NULL."""
        return [token.text for token in self.tokens()] in (["TRUE"], ["FALSE"], ["NULL"])

    @property
    def type(self) -> str:
        """The type that a CAST casts to."""
        return next(
            part.text for part in self.parts if isinstance(part, Token) and part.kind is Kind.TYPE
        )

    @property
    def start(self) -> int:
        """Where it begins in the text, counted from 0."""
        return min((token.start for token in self.tokens() if token.start), default=0)


def call(function: str, *arguments: Node) -> Node:
    """A call that the text spelled otherwise."""
    parts: list[Part] = [Token(Kind.FUNCTION, function, 0, function), symbol("(", Kind.OPEN)]
    for index, argument in enumerate(arguments):
        parts += [symbol(","), argument] if index else [argument]
    return Node(Form.CALL, (*parts, symbol(")")))


def cast(word: str, value: Node, to: str) -> Node:
    """``CAST(value AS to)``, or ``TRY_CAST``."""
    opening = (Token(Kind.KEYWORD, word), symbol("(", Kind.OPEN))
    closing = (Token(Kind.KEYWORD, "AS"), Token(Kind.TYPE, to), symbol(")"))
    return Node(Form.CAST, (*opening, value, *closing))


def sql(tokens: Iterable[Token]) -> str:
    """Spell tokens as SQL on one line.

    >>> from deltacheck.rules.grammar import parse
    >>> sql(parse("abs( - a [ 0 ] )<-- why\\n- -1").tokens())
    'abs(-a[0]) < - -1'
    """
    text, last = "", None
    for token in tokens:
        if last is not None and not _touch(last, token):
            text += " "
        text += token.text
        last = token
    return text


def _touch(left: Token, right: Token) -> bool:
    if right.kind is Kind.OPEN or right.text in (")", "]", ",", "."):
        return True
    if left.kind is Kind.SIGN:
        return right.kind is not Kind.SIGN
    if left.text == "X" and right.kind is Kind.STRING:
        return True
    return left.text in ("(", "[", ".")


def canonical(part: Part) -> str:
    """What all spellings of one rule have in common; not SQL.

    >>> from deltacheck.rules.grammar import parse
    >>> canonical(parse("(`A` <> 1)")) == canonical(parse("a != 1"))
    True
    """
    if isinstance(part, Token):
        return _canonical_token(part)
    node = part.bare()
    if node.form in (Form.AND, Form.OR):
        return f"({f' {node.form.upper()} '.join(map(canonical, _flat(node)))})"
    if node.form is Form.PREDICATE and "IS" not in _words(node) and "NOT" in _words(node):
        # x NOT IN (1) is NOT x IN (1), to Spark's parser too.
        parts = tuple(inner for inner in node.parts if not _is_keyword(inner, "NOT"))
        return canonical(Node(Form.NOT, (Token(Kind.KEYWORD, "NOT"), Node(node.form, parts))))
    inside = " ".join(map(canonical, node.parts))
    if node.form in (Form.COLUMN, Form.LITERAL) or isinstance(node.parts[0], Token):
        return inside
    return f"({inside})"


def _canonical_token(token: Token) -> str:
    if token.kind is Kind.NAME:
        return "`" + token.value.lower().replace("`", "``") + "`"
    if token.kind is Kind.FUNCTION:
        return token.value
    if token.kind is Kind.WORD:
        return token.upper
    return token.text


def _flat(node: Node) -> Iterator[Node]:
    for inner in node.nodes:
        if inner.bare().form is node.form:
            yield from _flat(inner.bare())
        else:
            yield inner


def _words(node: Node) -> list[str]:
    return [part.text for part in node.parts if isinstance(part, Token)]


def _is_keyword(part: Part, word: str) -> bool:
    return isinstance(part, Token) and part.kind is Kind.KEYWORD and part.text == word
