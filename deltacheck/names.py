"""Names of tables, columns and constraints, and how SQL spells them.

The only place that quotes an identifier. Names compare without regard to case and are
shown as they were declared; Delta stores constraint names in lower case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from deltacheck.errors import IdentifierError

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def quote(identifier: str) -> str:
    """Quote one identifier for Spark SQL.

    >>> quote("order id"), quote("a`b")
    ('`order id`', '`a``b`')
    """
    return "`" + identifier.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Spell ``text`` as a Spark SQL string literal that no session setting reads otherwise.

    >>> literal("it's")
    "'it\\\\u0027s'"
    """
    escaped = "".join(
        char if char.isprintable() and char not in "'\\\"" and ord(char) < 128 else _escape(char)
        for char in text
    )
    return f"'{escaped}'"


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def split_path(text: str) -> tuple[str, ...]:
    """Split a dotted name into its parts; back-quotes protect dots.

    >>> split_path("shop.orders"), split_path("a.`b.c`")
    (('shop', 'orders'), ('a', 'b.c'))

    Raises:
        IdentifierError: The text is empty, has an empty part, an unclosed back-quote, or
            a control character.
    """
    parts: list[str] = []
    rest = text
    while True:
        match = re.match(r"`((?:[^`]|``)+)`|([^`.\s][^`.]*)", rest)
        if match is None or _CONTROL.search(text):
            raise IdentifierError(
                f"{text!r} is not a name.",
                hint="Write parts separated by dots, and put a part that has a dot or a "
                "back-quote in it between back-quotes.",
            )
        quoted, plain = match.groups()
        parts.append(plain.rstrip() if quoted is None else quoted.replace("``", "`"))
        rest = rest[match.end() :]
        if not rest:
            return tuple(parts)
        if not rest.startswith("."):
            raise IdentifierError(
                f"{text!r} is not a name.", hint="Separate its parts with single dots."
            )
        rest = rest[1:]


@dataclass(frozen=True)
class TableName:
    """A table, by name (one to three parts) or by path (``delta.`/some/path```).

    Equality and hashing disregard case for named tables; ``str()`` shows the name as
    declared.

    Attributes:
        parts: The parts of the name, unquoted.
        template: The name as it was written, where that had ``${NAME}`` in it: what a new
            migration writes, so that it fits every environment.

    >>> TableName.parse("shop.Orders") == TableName.parse("SHOP.orders")
    True
    >>> TableName.parse("delta.`/data/orders`").sql
    'delta.`/data/orders`'
    """

    parts: tuple[str, ...]
    template: str = field(default="", compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Read a name as people write it.

        Raises:
            IdentifierError: It is not a name of one to three parts or a path table.
        """
        parts = split_path(text.strip())
        if len(parts) == 2 and parts[0].lower() == "delta" and "/" in parts[1]:
            return cls(("delta", parts[1].rstrip("/") or "/"))
        if len(parts) > 3:
            raise IdentifierError(
                f"{text!r} has {len(parts)} parts.",
                hint="A table is named table, schema.table or catalog.schema.table.",
                table=text,
            )
        return cls(parts)

    @property
    def path(self) -> str | None:
        """The folder of a path table, else None."""
        return self.parts[1] if self._is_path else None

    @property
    def _is_path(self) -> bool:
        return len(self.parts) == 2 and self.parts[0] == "delta" and "/" in self.parts[1]

    @property
    def name(self) -> str:
        """The last part."""
        return self.parts[-1]

    @property
    def schema(self) -> str | None:
        """The schema, where one was given."""
        return None if self._is_path or len(self.parts) < 2 else self.parts[-2]

    @property
    def catalog(self) -> str | None:
        """The catalog, where one was given."""
        return self.parts[0] if len(self.parts) == 3 else None

    @property
    def sql(self) -> str:
        """The name quoted for Spark SQL."""
        if self._is_path:
            return f"delta.{quote(self.parts[1])}"
        return ".".join(quote(part) for part in self.parts)

    @property
    def key(self) -> str:
        """What two spellings of one table have in common."""
        return self.sql if self._is_path else self.sql.casefold()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableName) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        if self._is_path:
            return self.sql
        return ".".join(
            part if re.fullmatch(r"[^\W\d]\w*", part) else quote(part) for part in self.parts
        )
