"""The page is whole by itself, and says what a newcomer wants to know."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

from deltacheck.report.metrics import metrics
from deltacheck.report.page import page
from tests.report.facts import RULE, checked, day, report, shop

_VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Reads a page, and complains of what is not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [str(value) for key, value in attrs if key in ("href", "src")]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(text: str) -> Reader:
    """Read a page to its end."""
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def test_the_page_is_whole_and_fetches_nothing() -> None:
    """No script, no link, no image from elsewhere."""
    text = page(shop())

    found = read(text)
    assert "script" not in found.tags
    assert found.links == []
    assert "url(" not in text
    assert "http" not in text


def test_the_page_begins_with_what_was_wrong_and_why() -> None:
    said = read(page(shop())).text

    assert "On 1 day a check failed." in said
    first, second = said.index("What was wrong"), said.index("What came in")
    assert first < said.index("row_count is 50") < second
    assert "Fri 06 Mar 2026" in said[first:second]


def test_a_page_without_bad_news_says_so() -> None:
    assert "Nothing: no check failed." in read(page(report(checked(day(1), "c", "passed")))).text


def test_behind_each_plot_is_its_table() -> None:
    found = read(page(shop()))

    assert found.tags.count("svg") >= 3
    assert found.tags.count("details") >= found.tags.count("svg")
    assert "10 rows are held, the oldest for 9 days." in found.text


def test_what_people_named_cannot_break_the_page() -> None:
    hostile = "<script>alert(1)</script>"
    rule = replace(RULE, rule=hostile, expression="a < 'b' AND c > \"d\"", table=f"t{hostile}")

    found = read(page(report(checked(day(1), hostile, "failed", hostile), rules=(rule,))))

    assert "script" not in found.tags
    assert hostile in found.text


def test_the_page_has_both_colours_and_fits_a_phone() -> None:
    text = page(shop())

    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text


def test_the_figures_are_told_as_prometheus_reads_them() -> None:
    lines = metrics(shop()).splitlines()

    assert (
        'deltacheck_check_failed{environment="prod",table="shop.orders",check="usual_day",'
        'action="fail"} 0' in lines
    )
    assert 'deltacheck_quarantined_rows{environment="prod",table="shop.orders"} 10' in lines
    assert (
        'deltacheck_rule_in_state{environment="prod",table="shop.orders",rule="amount_positive",'
        'state="enforced"} 1' in lines
    )
    assert sum(line.startswith("# TYPE ") for line in lines) == 5
    assert all(line.startswith(("#", "deltacheck_")) for line in lines)
