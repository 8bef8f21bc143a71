"""Events reach those who want to know: functions, a command, a logger."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pytest

import deltacheck
from deltacheck.config import load_project
from deltacheck.errors import ConfigError
from deltacheck.events import EVENT_KINDS, Event, Notify, emit

EVENT = Event(
    "quarantined",
    "shop.orders: bad rows of a batch are quarantined.",
    table="shop.orders",
    rules={"amount_positive": 2},
    owners=("finance",),
    batch="monday",
)


def project(folder: Path, notify: str) -> Notify | None:
    """What a project says under ``[notify]``."""
    text = f'[env.l]\nspark = "local"\nwarehouse = "w"\n{notify}\n'
    (folder / "deltacheck.toml").write_text(text, encoding="utf-8")
    return load_project(folder, environ={}).notify


def test_a_function_is_called_until_it_is_taken_off(seen: list[Event]) -> None:
    emit(EVENT)

    assert seen == [EVENT]
    with pytest.raises(ValueError):
        deltacheck.off_event(lambda event: None)


def test_what_a_function_raises_is_raised(seen: list[Event]) -> None:
    """The work that the event tells of is done by then."""

    def broken(event: Event) -> None:
        raise RuntimeError(event.kind)

    deltacheck.on_event(broken)
    try:
        with pytest.raises(RuntimeError, match="quarantined"):
            emit(EVENT)
    finally:
        deltacheck.off_event(broken)


def test_a_command_gets_the_event_as_json_on_its_standard_input(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    program = f"import sys; open({str(told)!r}, 'w').write(sys.stdin.read())"

    emit(EVENT, Notify(command=(sys.executable, "-c", program)))

    event = json.loads(told.read_text())
    assert (event["kind"], event["table"], event["owners"]) == (
        "quarantined",
        "shop.orders",
        ["finance"],
    )
    assert (event["rules"], event["batch"]) == ({"amount_positive": 2}, "monday")
    assert event["at"].endswith("+00:00")


def test_what_a_command_prints_is_kept_out_of_our_output(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A bug of mixed streams: it stood before the document of ``--json``."""
    emit(EVENT, Notify(command=(sys.executable, "-c", "print('sent')")))

    assert capfd.readouterr() == ("", "sent\n")


@pytest.mark.parametrize(
    "command", [("no-such-program-anywhere",), (sys.executable, "-c", "raise SystemExit(3)")]
)
def test_a_command_that_fails_stops_nothing(
    command: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "deltacheck"):
        emit(EVENT, Notify(command=command))

    assert "the command of [notify]" in caplog.text


def test_a_logger_gets_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "team.alerts"):
        emit(EVENT, Notify(logger="team.alerts"))

    (record,) = caplog.records
    assert json.loads(record.getMessage())["rules"] == {"amount_positive": 2}


def test_only_the_kinds_asked_for_are_told(
    caplog: pytest.LogCaptureFixture, seen: list[Event]
) -> None:
    """By the project; a function gets all."""
    emit(EVENT, Notify(logger="team.alerts", events=("upgraded",)))

    assert not caplog.records
    assert seen == [EVENT]


def test_a_project_says_where_its_events_are_told(tmp_path: Path) -> None:
    """A command as one text or as a list."""
    assert project(tmp_path, "") is None
    assert project(tmp_path, "[notify]\ncommand = \"tell --to 'the team'\"") == Notify(
        ("tell", "--to", "the team"), None, EVENT_KINDS
    )
    assert project(
        tmp_path, '[notify]\ncommand = ["tell"]\nlogger = "alerts"\nevents = ["check_failed"]'
    ) == Notify(("tell",), "alerts", ("check_failed",))


@pytest.mark.parametrize(
    ("notify", "words"),
    [
        ("[notify]", ("neither command nor logger", "tell_team")),
        ('[notify]\nlogger = "a"\nevents = ["failed"]', ("unknown event 'failed'", "stopped")),
        ('[notify]\ncomand = "a"', ("notify.comand", "Did you mean 'command'?")),
        ("[notify]\ncommand = 3", ("notify.command must be a list of texts",)),
        ('notify = "a"', ("[notify] must be a table",)),
    ],
)
def test_a_malformed_table_is_refused(tmp_path: Path, notify: str, words: tuple[str, ...]) -> None:
    text = f'{notify}\n[env.l]\nspark = "local"\nwarehouse = "w"\n'
    (tmp_path / "deltacheck.toml").write_text(text, encoding="utf-8")

    with pytest.raises(ConfigError) as refused:
        load_project(tmp_path)

    for word in words:
        assert word in str(refused.value)
