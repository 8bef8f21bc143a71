"""The figures, as Prometheus itself reads them."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from deltacheck.report.facts import Report
from deltacheck.report.metrics import metrics
from tests.report.facts import RULE, TABLE, checked, crowded, day, report, shop


def read(found: Report) -> dict[str, Metric]:
    """The figures by their names."""
    return {one.name: one for one in text_string_to_metric_families(metrics(found))}


def figures(found: Report, name: str) -> list[tuple[dict[str, str], float]]:
    """The labels, but for environment and table, and the values of one figure."""
    apart = ("environment", "table")
    return [
        ({key: text for key, text in one.labels.items() if key not in apart}, one.value)
        for one in read(found)[name].samples
    ]


def test_each_figure_has_its_type_and_says_what_it_is() -> None:
    found = read(shop())

    assert set(found) == {
        "deltacheck_check_failed",
        "deltacheck_check_timestamp_seconds",
        "deltacheck_quarantined_rows",
        "deltacheck_quarantine_oldest_seconds",
        "deltacheck_rule_in_state",
        "deltacheck_table_unreadable",
    }
    assert {one.type for one in found.values()} == {"gauge"}
    assert all(one.documentation for one in found.values())


def test_the_figures_are_those_of_the_report() -> None:
    found = shop()

    check = {"check": "usual_day", "action": "fail"}
    assert figures(found, "deltacheck_check_failed") == [(check, 0)]
    at = day(10).timestamp()
    assert figures(found, "deltacheck_check_timestamp_seconds") == [(check, at)]
    assert figures(found, "deltacheck_quarantined_rows") == [({}, 10)]
    assert figures(found, "deltacheck_quarantine_oldest_seconds") == [({}, 9 * 86_400)]
    rule = {"rule": "amount_positive", "state": "enforced"}
    assert figures(found, "deltacheck_rule_in_state") == [(rule, 1)]
    (sample,) = read(found)["deltacheck_quarantined_rows"].samples
    assert (sample.labels["environment"], sample.labels["table"]) == ("prod", TABLE)


def test_names_are_read_as_they_were_written() -> None:
    """With quotes, backslashes and line ends in them."""
    odd = 'a "b"\\ \n {c="d"} \\n ä'
    found = report(checked(day(1), odd, "failed"), rules=(replace(RULE, rule=odd),))

    assert figures(found, "deltacheck_check_failed") == [({"check": odd, "action": "fail"}, 1)]
    assert figures(found, "deltacheck_rule_in_state") == [({"rule": odd, "state": "enforced"}, 1)]


def test_a_table_that_cannot_be_looked_at_has_no_made_up_figures() -> None:
    found = report(problems={TABLE: "It cannot be read."})

    assert figures(found, "deltacheck_table_unreadable") == [({}, 1)]
    assert set(read(found)) == {"deltacheck_table_unreadable"}


def test_a_report_of_nothing_has_no_figures() -> None:
    assert metrics(report()) == ""


def test_no_figure_is_there_twice() -> None:
    """Else the collector refuses the whole file."""
    lines = [one for one in metrics(crowded()).splitlines() if not one.startswith("#")]

    names = [one.rpartition(" ")[0] for one in lines]
    assert len(names) > 40
    assert len(set(names)) == len(names)
