"""The page is whole by itself, and says what a newcomer wants to know."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

from deltacheck.report.facts import Report
from deltacheck.report.page import page
from tests.report.facts import (
    RULE,
    TABLE,
    batch,
    broken,
    checked,
    counted,
    day,
    report,
    shop,
    unread,
)

_VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Reads a page, and complains of what is not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.labels: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [str(value) for key, value in attrs if key in ("href", "src")]
        self.labels += [str(value) for key, value in attrs if key == "aria-label"]
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


def words(found: Report) -> str:
    """All that the page of a report says, with all white space made single spaces."""
    return " ".join(read(page(found)).text.split())


def test_the_page_is_whole_and_fetches_nothing() -> None:
    """No script, no link, no image from elsewhere."""
    text = page(shop())

    found = read(text)
    assert text.startswith("<!doctype html>")
    assert "script" not in found.tags
    assert [link for link in found.links if not link.startswith("#")] == []
    assert "url(" not in text
    assert "http" not in text


def test_the_page_begins_with_what_was_wrong_and_why() -> None:
    said = words(shop())

    assert "On 1 day a check failed" in said
    first, second = said.index("What was wrong"), said.index("What came in")
    assert first < said.index("usual_day: row_count is 50") < second
    assert "Fri 6 Mar 2026" in said[first:second]


def test_a_page_without_bad_news_says_so() -> None:
    assert "Nothing: no check failed, and nothing was stopped." in words(
        report(checked(day(1), "c", "passed"))
    )


def test_a_batch_that_was_stopped_is_told_with_its_day() -> None:
    said = words(report(batch(day(1), 100, 40, stopped="40 of 100 rows, more than 5%")))

    assert "Sun 1 Mar 2026: shop.orders Stopped: 40 of 100 rows, more than 5%" in said


def test_a_page_of_many_wrong_days_tells_the_newest_at_once() -> None:
    """The earlier ones have to be opened."""
    said = words(report(*(checked(day(number), "c", "failed") for number in range(1, 13))))

    assert "On 12 days a check failed" in said
    assert said.index("Tue 3 Mar 2026") < said.index("2 days more")
    assert said.index("2 days more, up to Mon 2 Mar 2026") < said.index("Sun 1 Mar 2026:")


def test_a_page_of_a_project_without_anything_says_so() -> None:
    assert "Nothing is known yet" in words(report())


def test_what_could_not_be_looked_at_is_told() -> None:
    """And what its quarantine holds is not made up."""
    said = words(report(problems={TABLE: "It cannot be read."}))

    assert "It cannot be read." in said
    assert "shop.orders 0 0 ? none" in said


def test_what_a_history_no_longer_told_is_told_once() -> None:
    """Two who read it at once say the same; how far it was read is no news."""
    gap = "versions 3 to 4 have left its history unread"
    found = report(unread(day(1), None), unread(day(2), gap), unread(day(2), gap))

    assert found.tables[0].gaps == (gap,)
    assert found.tables[0].days == ()
    assert words(found).count(gap) == 1


def test_a_wrong_day_tells_what_became_of_the_rows_that_broke_a_rule() -> None:
    found = report(
        batch(day(1), 100, 2), broken(day(1), "amount_positive", 2), checked(day(1), "c", "failed")
    )

    assert (
        "100 rows came in with 1 batch, 2 of them bad. 2 rows broke amount_positive (quarantined)."
        in words(found)
    )


def test_a_wrong_day_tells_whether_its_batch_was_let_in() -> None:
    """A bug of silence: who read that a check failed could not know where the rows are."""
    let_in = report(
        batch(day(1), 100, 2),
        broken(day(1), "amount_plausible", 7, "warn"),
        checked(day(1), "c", "failed"),
    )
    stopped = report(batch(day(1), 100, stopped="few: row_count is 100"))

    said = words(let_in)
    assert "7 rows broke amount_plausible (written, with a warning)." in said
    assert "No batch was stopped: a failed check of a table lets stay what came in." in said
    assert "1 batch stopped: no row of it was written to the table." in words(stopped)
    assert "No batch was stopped" not in words(stopped)


def test_the_cards_tell_wrong_days_and_of_when_the_last_checks_are() -> None:
    """A bug of emphasis: that none failed at last stood, green, above three wrong days."""
    found = report(checked(day(1), "c", "failed"), checked(day(2), "c", "passed"))

    said = words(found)
    assert "Days on which something was wrong1 of 30" in said
    assert "Checks at their last runnone failed of 1, the last on Mon 2 Mar 2026" in said


def test_the_page_says_what_its_words_mean() -> None:
    """What is bad, what was not judged, and days on which nothing happened at all."""
    said = words(report(batch(day(1), 10, 1), checked(day(1), "c", "unjudged"), batch(day(3), 1)))

    assert "Bad: breaks a rule that is more than a warning; such rows are in quarantine" in said
    assert "? not judged (too little history, or no row)" in said
    assert "Mon 2 Mar 2026000nothing came in and no check ran" in said


def test_behind_each_plot_is_its_table() -> None:
    """And each plot says in words what it shows."""
    found = read(page(shop()))

    assert found.tags.count("figure") == 3
    assert found.tags.count("details") == 3
    told = "Rows that came into shop.orders. 12 days, at most 100 rows. Pointed out: Fri 6 Mar 2026"
    assert any(label.startswith(told) for label in found.labels)
    assert "usual_day by day: failed on Fri 6 Mar 2026; " in found.labels
    assert "10 rows are held, the oldest for 9 days." in words(shop())


def test_rules_that_delta_does_not_enforce_are_told_with_their_last_count() -> None:
    rule = replace(RULE, state="warn")

    said = words(report(counted(day(1), "amount_positive", 3, 10), rules=(rule,)))

    assert "3 of 10 rows in the table, 2026-03-01 06:00" in said


def test_runs_of_checks_and_of_migrations_are_told() -> None:
    said = words(shop())

    assert "Last runs of checks" in said
    assert "2026-03-06 06:00 1 failed shop.orders" in said
    assert "2026-03-12 12:00 upgrade done 0001 shop.orders" in said


def test_what_people_named_cannot_break_the_page() -> None:
    hostile = "<script>alert(1)</script>"
    rule = replace(RULE, rule=hostile, expression="a < 'b' AND c > \"d\"", table=f"t{hostile}")

    found = read(page(report(checked(day(1), hostile, "failed", hostile), rules=(rule,))))

    assert "script" not in found.tags
    assert hostile in found.text
    assert any(hostile in label for label in found.labels)


def test_the_page_has_both_colours_and_fits_a_phone() -> None:
    text = page(shop())

    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
