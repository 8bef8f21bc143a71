"""Plots as SVG, small enough to be read as text. Each is drawn in the colours of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT, _FOOT, _HEAD = 640, 170, 22, 16


@dataclass(frozen=True)
class Bar:
    """One bar of a plot.

    Attributes:
        label: What stands below it.
        value: How high it is.
        part: How much of it, from below, is bad.
        marked: Whether it is to be pointed out.
    """

    label: str
    value: float
    part: float = 0
    marked: bool = False


def bars(title: str, values: Sequence[Bar]) -> str:
    """A plot of bars, one beside the other.

    >>> bars("rows", [Bar("Mon", 4, 1)]).count("<rect")
    2

    Args:
        title: What it shows, for those who cannot see it.
        values: From left to right.
    """
    most = max((one.value for one in values), default=0) or 1
    step = _WIDTH / max(len(values), 1)
    width = min(step * 0.7, 48)
    room = _HEIGHT - _FOOT - _HEAD
    # So many labels fit beside each other.
    every = max(1, round(len(values) * 58 / _WIDTH))
    parts = []
    for place, one in enumerate(values):
        left = place * step + (step - width) / 2
        high, low = room * one.value / most, room * one.part / most
        told = f"{one.label}: {one.value:,.0f}" + (f", {one.part:,.0f} bad" if one.part else "")
        css = "bar marked" if one.marked else "bar"
        parts.append(
            f"<g><title>{escape(told)}</title>{_rect(css, left, width, high, _base(high))}"
        )
        if one.part:
            parts.append(_rect("bad", left, width, low, _base(low)))
        if one.marked:
            middle, top = left + width / 2, _base(high) - 4
            parts.append(f'<text class="mark" x="{middle:.1f}" y="{top:.1f}">!</text>')
        parts.append("</g>")
        if place % every == 0:
            middle = left + width / 2
            parts.append(f'<text x="{middle:.1f}" y="{_HEIGHT - 6}">{escape(one.label)}</text>')
    axis = f'<line x1="0" x2="{_WIDTH}" y1="{_HEIGHT - _FOOT}" y2="{_HEIGHT - _FOOT}"/>'
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}{axis}</svg>"
    )


def _base(height: float) -> float:
    return _HEIGHT - _FOOT - height


def _rect(css: str, left: float, width: float, height: float, top: float) -> str:
    return (
        f'<rect class="{css}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}"/>'
    )
