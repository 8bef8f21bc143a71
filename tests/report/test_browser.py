"""The page in a real browser: it fits, opens without a complaint, and fetches nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from deltacheck.report.facts import Report
from deltacheck.report.page import page
from tests.report.browser import DESK, PHONE, Scheme, browser, chromium, look
from tests.report.facts import crowded, report, shop

pytestmark = [pytest.mark.slow, pytest.mark.browser]

PAGES = {"shop": shop(), "crowded": crowded(), "empty": report()}

SIZES = pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])


@pytest.fixture(scope="module")
def through() -> Iterator[Browser]:
    """A browser for all tests here."""
    with browser() as started:
        yield started


def saved(found: Report, folder: Path) -> Path:
    """The page of a report, in a file."""
    path = folder / "report.html"
    path.write_text(page(found), encoding="utf-8")
    return path


@SCHEMES
@SIZES
@pytest.mark.parametrize("found", PAGES.values(), ids=PAGES.keys())
def test_the_page_fits_and_opens_without_a_complaint(
    through: Browser, tmp_path: Path, found: Report, size: tuple[int, int], scheme: Scheme
) -> None:
    """With all that can be opened open, whatever is on it; each text stands out."""
    seen = look(through, saved(found, tmp_path), size, scheme, opened=True)

    assert seen.wider == 0
    assert seen.sticking_out == []
    assert seen.faint == []
    assert seen.errors == []
    assert seen.requests == []
    assert "Data quality of prod" in seen.text


@SIZES
def test_what_was_wrong_can_be_read_without_opening_or_scrolling_anything(
    through: Browser, tmp_path: Path, size: tuple[int, int]
) -> None:
    """Which day, which table, which check, its figures; and what came in that day."""
    seen = look(through, saved(shop(), tmp_path), size, "light")

    assert seen.cut_off == []
    assert (
        "Fri 6 Mar 2026: shop.orders usual_day: row_count is 50 (trend: row_count) "
        "50 rows came in with 1 batch, 0 of them bad." in seen.text
    )


def test_without_a_browser_the_tests_fail_and_say_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CHROMIUM", raising=False)

    with pytest.raises(FileNotFoundError, match="apt-get install chromium"):
        chromium()
