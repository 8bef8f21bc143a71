"""A page as a person sees it: opened in a headless Chromium, on a phone and at a desk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, sync_playwright

Scheme = Literal["light", "dark"]

PHONE, DESK = (390, 844), (1280, 900)

_QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

_STICKING_OUT = """
() => [...document.querySelectorAll("body *")]
  .filter(one => !one.closest(".scroll") || one.matches(".scroll"))
  .filter(one => { const box = one.getBoundingClientRect();
    return box.right > document.documentElement.clientWidth + 1 || box.left < -1; })
  .map(one => one.outerHTML.slice(0, 100))
"""

_CUT_OFF = """
() => [...document.querySelectorAll(".scroll")]
  .filter(one => one.checkVisibility())
  .filter(one => one.scrollWidth > one.clientWidth + 1)
  .map(one => one.querySelector("table").getAttribute("aria-label"))
"""

_FAINT = """
() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = colour => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = colour => { const [r, g, b] = rgba(colour).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = one => { while (one && rgba(getComputedStyle(one).backgroundColor)[3] === 0)
    one = one.parentElement; return one ? getComputedStyle(one).backgroundColor : "white"; };
  return [...document.querySelectorAll("body *")]
    .filter(one => [...one.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
    .filter(one => { const [a, b] = [light(getComputedStyle(one).color), light(behind(one))];
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5; })
    .map(one => one.outerHTML.slice(0, 100));
}
"""


@dataclass(frozen=True)
class Seen:
    """What there was to see of a page.

    Attributes:
        text: All that can be read without opening anything.
        wider: By how many pixels the page is wider than the window.
        sticking_out: Elements beyond its edges, but for those in a box that scrolls.
        cut_off: Tables that have to be scrolled sideways to be read.
        faint: Texts with less contrast to what is behind them than 4.5 to 1 (WCAG 2.2, 1.4.3).
        errors: What the console and the page complained of.
        requests: What it fetched, the page itself apart.
    """

    text: str
    wider: int
    sticking_out: list[str]
    cut_off: list[str]
    faint: list[str]
    errors: list[str]
    requests: list[str]


def chromium() -> str:
    """The path of a Chromium.

    Raises:
        FileNotFoundError: There is none.
    """
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    if found is None:
        raise FileNotFoundError(
            "There is no Chromium to look at the page with. Install one (Debian: apt-get install "
            "chromium), or name its path in the variable CHROMIUM."
        )
    return found


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium(), args=list(_QUIET))
        yield started
        started.close()


def look(
    through: Browser,
    path: Path,
    size: tuple[int, int],
    scheme: Scheme,
    *,
    opened: bool = False,
    picture: Path | None = None,
) -> Seen:
    """Open a page and look at it.

    Args:
        size: Of the window, in pixels.
        opened: Whether to open all that can be opened before.
        picture: A file for what is seen, as PNG.
    """
    width, height = size
    context = through.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, offline=True
    )
    seen = context.new_page()
    errors: list[str] = []
    requests: list[str] = []
    seen.on("console", lambda message: errors.append(message.text))
    seen.on("pageerror", lambda error: errors.append(str(error)))
    seen.on("request", lambda request: requests.append(request.url))
    seen.goto(path.as_uri())
    if opened:
        seen.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    root: dict[str, Any] = seen.evaluate(
        "(({scrollWidth, clientWidth}) => ({scrollWidth, clientWidth}))(document.documentElement)"
    )
    found = Seen(
        text=" ".join(seen.inner_text("body").split()),
        wider=root["scrollWidth"] - root["clientWidth"],
        sticking_out=seen.evaluate(_STICKING_OUT),
        cut_off=seen.evaluate(_CUT_OFF),
        faint=seen.evaluate(_FAINT),
        errors=errors,
        requests=requests[1:],
    )
    if picture is not None:
        seen.screenshot(path=picture, full_page=True)
    context.close()
    return found
