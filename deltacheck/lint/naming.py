"""Lints about the names of constraints."""

from __future__ import annotations

import re
from collections.abc import Iterator

from deltacheck.lint.finding import Remark
from deltacheck.lint.subjects import Constraint

_EMPTY_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a an and assert bar baz check checks chk ck cond condition constraint constraints cons dq
    expr foo is misc my name new no number of old one quality rule rules some sql test tests the
    thing tmp temp todo two three untitled valid validation x""",
    )
)


def says_nothing(constraint: Constraint) -> Iterator[Remark]:
    """A name that says nothing.

    The name is all that an error, a report and the quarantine show of a rule.

        check_1:            # broken by 12 rows: and now?
        amount_positive:    # broken by 12 rows
    """
    words = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", constraint.name))
    if all(len(word) == 1 or word.lower() in _EMPTY_WORDS for word in words):
        yield Remark(
            f"The name {constraint.name!r} does not say what the rule asks for.",
            "Name the column and what must be so, such as amount_positive; renamed_from keeps the "
            "history.",
        )


def lower_cased(constraint: Constraint) -> Iterator[Remark]:
    """A name with capital letters.

    Delta stores names of constraints in lower case and shows them so in its errors.

        AmountPositive:     # DELTA_VIOLATE_CONSTRAINT_WITH_VALUES names amountpositive
        amount_positive:
    """
    if constraint.enforced and constraint.name != constraint.name.lower():
        yield Remark(
            f"Delta stores {constraint.name!r} as {constraint.name.lower()!r} and shows it so.",
            "Use lower case, with _ between words.",
        )


def needs_quoting(constraint: Constraint) -> Iterator[Remark]:
    """A name that needs back-quotes.

    Everything but ASCII letters, digits and `_` does, in each statement that names the
    constraint.

        amount-positive:    # ALTER TABLE ... DROP CONSTRAINT `amount-positive`
        amount_positive:
    """
    if constraint.enforced and not re.fullmatch(r"[A-Za-z0-9_]+", constraint.name):
        yield Remark(
            f"The name {constraint.name!r} needs back-quotes in every statement.",
            "Use letters, digits and _ only.",
        )


def spelled_otherwise(constraint: Constraint) -> Iterator[Remark]:
    """One constraint under two spellings.

    Names compare without regard to case, so this is one constraint; who searches for it by
    name finds half of what there is.

        constraints/orders.yml      amount_positive:
        versions/0001_first.py      op.add_check("shop.orders", "Amount_Positive", ...)
    """
    if constraint.elsewhere is not None and constraint.elsewhere != constraint.name:
        yield Remark(
            f"A migration spells {constraint.name!r} as {constraint.elsewhere!r}; both are the "
            "same constraint.",
            "Spell it alike in both places.",
        )
