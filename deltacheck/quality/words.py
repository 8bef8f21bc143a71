"""Figures as a person reads them. Knows no values of rows."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction


def rows(number: int) -> str:
    """A number of rows.

    >>> rows(1), rows(2400)
    ('1 row', '2,400 rows')
    """
    return f"{number:,} row" if number == 1 else f"{number:,} rows"


def number(value: Fraction | int) -> str:
    """A figure, to at most four digits after the point, or four that are not zero.

    >>> number(Fraction(1500)), number(Fraction(1, 3)), number(Fraction(1, 30000))
    ('1,500', '0.3333', '0.00003333')
    """
    if value == int(value):
        return f"{int(value):,}"
    digits = 4
    while digits < 12 and abs(value) * 10**digits < 1000:
        digits += 1
    return f"{float(value):,.{digits}f}".rstrip("0").rstrip(".")


def percent(share: Fraction) -> str:
    """A share of rows.

    >>> percent(Fraction(1, 3)), percent(Fraction(1))
    ('33.33%', '100%')
    """
    return f"{number(Fraction(round(share * 10000), 100))}%"


def age(length: timedelta) -> str:
    """A length of time in its two largest units, rounded down.

    >>> age(timedelta(days=2, hours=3, minutes=59)), age(timedelta(seconds=59))
    ('2 d 3 h', '0 min')
    """
    minutes = int(length.total_seconds() // 60)
    days, hours, left = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    if hours:
        return f"{hours} h {left} min" if left else f"{hours} h"
    return f"{left} min"


def listed(names: tuple[str, ...]) -> str:
    """Names in a sentence.

    >>> listed(("a",)), listed(("a", "b", "c"))
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
