"""The report as a text file that Prometheus reads (text exposition format 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterator

from deltacheck.report.facts import Report

_HELP = {
    "deltacheck_check_failed": "Whether a check failed at its last run.",
    "deltacheck_check_timestamp_seconds": "When a check was last run.",
    "deltacheck_quarantined_rows": "Rows that the table's quarantine holds.",
    "deltacheck_quarantine_oldest_seconds": "For how long its oldest row has been held.",
    "deltacheck_table_unreadable": "Whether something of the table could not be looked at.",
    "deltacheck_rule_in_state": "How things stand with a rule: 1 for its state.",
}


def metrics(report: Report) -> str:
    """The text: names, labels and numbers, no value of a row."""
    lines: dict[str, list[str]] = {name: [] for name in _HELP}
    for name, labels, value in _samples(report):
        told = ",".join(f'{key}="{_label(text)}"' for key, text in labels.items())
        lines[name].append(f"{name}{{{told}}} {value}")
    text = []
    for name, samples in lines.items():
        if samples:
            text += [f"# HELP {name} {_HELP[name]}", f"# TYPE {name} gauge", *samples]
    return "\n".join(text) + "\n" if text else ""


def _samples(report: Report) -> Iterator[tuple[str, dict[str, str], int]]:
    for one in report.tables:
        about = {"environment": report.environment, "table": one.table}
        for rule in one.rules:
            labels = {**about, "rule": rule.rule, "state": rule.state}
            yield "deltacheck_rule_in_state", labels, 1
        for line in one.checks:
            labels = {**about, "check": line.rule or "", "action": line.action or ""}
            yield "deltacheck_check_failed", labels, int(line.state == "failed")
            yield "deltacheck_check_timestamp_seconds", labels, int(line.at.timestamp())
        yield "deltacheck_table_unreadable", about, int(bool(one.problem))
        if one.held is not None:
            yield "deltacheck_quarantined_rows", about, one.held.rows
        if one.held is not None and one.held.oldest is not None:
            waited = int((report.at - one.held.oldest).total_seconds())
            yield "deltacheck_quarantine_oldest_seconds", about, waited


def _label(text: str) -> str:
    r"""A label's value.

    >>> print(_label('a "b"'))
    a \"b\"
    """
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
