"""Checks on real tables: what they find, what they log, and what they leave alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltacheck
from deltacheck.delta.commit import Tag
from deltacheck.delta.table import history, latest_version
from deltacheck.errors import LedgerError, NotDeltaError
from deltacheck.ledger.quality_log import CHECK, append_lines
from deltacheck.names import TableName
from deltacheck.quality.events import events_of
from deltacheck.quality.scan import MOST_GROUPS
from deltacheck.rules.selection import Selection
from tests.harness import guarded
from tests.harness.marks import connect_is_slow
from tests.quality.yard import Yard

COLUMNS = "id INT, customer INT, amount DECIMAL(10,2), region STRING, placed_at TIMESTAMP"
ROWS = (
    "(1, 1, 10.00, 'EU', current_timestamp() - INTERVAL 3 HOURS)",
    "(2, 2, 20.00, 'EU', current_timestamp() - INTERVAL 30 HOURS)",
    "(2, 9, 30.00, 'US', current_timestamp() - INTERVAL 50 HOURS)",
    "(3, NULL, -5.00, 'US', NULL)",
)


def orders(yard: Yard) -> None:
    """Four orders: one id twice, one customer unknown, one NULL, one amount below zero."""
    yard.table(COLUMNS, *ROWS)
    yard.table("id INT, total DECIMAL(10,2), booked BOOLEAN", "(1, 55.00, true)", name="ledger")
    yard.table("id INT", "(1)", "(2)", "(2)", name="customers")


@connect_is_slow
@pytest.mark.parametrize("more", ["", ", where: id > 0"])
def test_each_kind_of_check_finds_what_is_there(
    any_spark: SparkSession, yard: Yard, more: str
) -> None:
    """And says it in figures; a condition that all rows meet changes nothing."""
    orders(yard)
    yard.declare(
        f"some: {{row_count: {{min: 4, max: 4}}{more}}}",
        f"fewer: {{row_count: {{max: 3}}{more}}}",
        f"ids: {{unique: id{more}}}",
        f"pairs: {{unique: [id, customer]{more}}}",
        f"known: {{references: {{columns: customer, table: @customers, keys: id}}{more}}}",
        f"fresh: {{freshness: {{column: placed_at, max_age: 4h}}{more}}}",
        f"fresher: {{freshness: {{column: placed_at, max_age: 2h}}{more}}}",
        "agrees: {reconcile: {measure: sum(amount), "
        f"against: {{table: @ledger, measure: sum(total), where: booked}}}}{more}}}",
        f"lines: {{reconcile: {{measure: row_count, against: {{table: @ledger}}}}{more}}}",
    )

    found = yard.results()

    assert {name: (one.state, one.outcome.message) for name, one in found.items()} == {
        "some": ("passed", "4 rows, within 4 to 4"),
        "fewer": ("failed", "4 rows, more than 3"),
        "ids": ("failed", "2 of 4 rows share id with another (1 value)"),
        "pairs": ("passed", "id and customer unique in 4 rows; NULL in 1 row, not counted"),
        "known": (
            "failed",
            f"1 of 4 rows have a customer that {yard.database}.customers has not; "
            "NULL in 1 row, let pass",
        ),
        "fresh": ("passed", "the newest placed_at of 4 rows is 3 h old, at most 4h"),
        "fresher": ("failed", "the newest placed_at of 4 rows is 3 h old, more than 2h"),
        "agrees": (
            "passed",
            f"sum(amount) is 55, sum(total) of {yard.database}.ledger is 55",
        ),
        "lines": (
            "failed",
            f"row_count is 4, row_count of {yard.database}.ledger is 1: 3 apart, more than 0",
        ),
    }
    assert {one.owner for one in found.values()} == {"sales"}


def test_where_narrows_the_rows_that_are_looked_at(yard: Yard) -> None:
    orders(yard)
    yard.declare(
        "ids: {unique: id, where: region = 'EU'}",
        "known: {references: {columns: customer, table: @customers, keys: id}, where: id = 3}",
        "fresh: {freshness: {column: placed_at, max_age: 40h}, where: region = 'US'}",
        "count: {row_count: {max: 1}, where: amount < 0}",
    )

    assert yard.states() == {
        "ids": "passed",
        "known": "passed",
        "fresh": "failed",
        "count": "passed",
    }


def test_by_judges_each_group_by_itself(yard: Yard) -> None:
    """A group without a row that matters is among them."""
    orders(yard)
    yard.declare(
        "count: {row_count: {min: 1}, where: placed_at IS NULL, by: region, show_groups: true}",
        "ids: {unique: id, by: region}",
        "known: {references: {columns: customer, table: @customers, keys: id}, by: region}",
        "fresh: {freshness: {column: placed_at, max_age: 4h}, by: [region, amount > 0]}",
    )

    found = yard.results()

    assert found["count"].outcome.message == (
        "1 of 2 groups by region fail: region = EU: 0 rows, fewer than 1"
    )
    assert [group.name for group in found["count"].groups] == ["region = EU", "region = US"]
    assert found["ids"].outcome.message == "all 2 groups by region pass"
    assert found["known"].outcome.message.startswith("1 of 2 groups by region fail: 1 of 2 rows")
    assert found["known"].outcome.failed == 1
    assert found["fresh"].outcome.message.startswith("2 of 3 groups by region and amount > 0 fail")


def test_groups_by_time_are_told_apart_to_the_microsecond(yard: Yard) -> None:
    """One name for two groups, of which one is lost: JSON has times to the millisecond."""
    times = [f"2026-03-02 06:00:00.00100{digit}" for digit in (1, 2)]
    rows = [f"(TIMESTAMP '{time}', TIMESTAMP_NTZ '{time}')" for time in times]
    yard.table("at TIMESTAMP, noted TIMESTAMP_NTZ", *rows, rows[0])
    yard.declare(
        "at: {row_count: {max: 1}, by: at, show_groups: true}",
        "noted: {row_count: {max: 1}, by: noted, show_groups: true}",
    )

    for found in yard.results().values():
        assert found.outcome.message.startswith("1 of 2 groups")
        assert [group.outcome.rows for group in found.groups] == [2, 1]
        assert len({group.key for group in found.groups}) == 2
        assert [".001001" in str(group.name) for group in found.groups] == [True, False]


def test_amounts_are_compared_per_group_with_those_of_the_other_table(yard: Yard) -> None:
    """A group that only one of the two has counts as nothing in the other."""
    yard.table("region STRING, amount INT", "('EU', 5)", "('US', 7)")
    yard.table("region STRING, amount INT", "('EU', 5)", "('CH', 0)", "('ZA', 1)", name="ledger")
    yard.declare(
        "agrees: {reconcile: {measure: sum(amount), against: {table: @ledger}}, by: region, "
        "show_groups: true}"
    )

    message = yard.results()["agrees"].outcome.message

    assert message.startswith("2 of 4 groups by region fail: ")
    assert "region = US: sum(amount) is 7" in message
    assert "region = ZA: sum(amount) is 0" in message


def test_rows_dated_in_the_future_do_not_make_a_table_fresh(yard: Yard) -> None:
    yard.table("ts TIMESTAMP", "(current_timestamp() + INTERVAL 300 DAYS)")
    yard.declare("fresh: {freshness: {column: ts, max_age: 1d}}")

    assert yard.results()["fresh"].outcome.message == "none of 1 row has a ts up to now"


def test_a_date_is_as_old_as_its_midnight(yard: Yard) -> None:
    """In UTC, whatever the session's zone."""
    yard.table("d DATE", "(current_date())")
    yard.declare("fresh: {freshness: {column: d, max_age: 25h}}")

    assert yard.states() == {"fresh": "passed"}


def test_an_empty_table_is_judged(yard: Yard) -> None:
    yard.table("id INT, ts TIMESTAMP")
    yard.declare(
        "some: {row_count: {min: 1}}",
        "ids: {unique: id}",
        "fresh: {freshness: {column: ts, max_age: 1d}}",
        "by_id: {row_count: {min: 1}, by: id}",
        "mean: {trend: {measure: mean(id)}}",
    )

    assert yard.states() == {
        "some": "failed",
        "ids": "passed",
        "fresh": "failed",
        "by_id": "failed",
        "mean": "unjudged",
    }


def test_a_check_that_cannot_be_evaluated_fails_and_hides_no_other(yard: Yard) -> None:
    """A column that is not there, a table that is not there, a cast of one row."""
    yard.table("id INT, code STRING", "(1, '7')", "(2, 'secret-value')")
    yard.declare(
        "there: {row_count: {min: 1}}",
        "not_there: {freshness: {column: placed_at, max_age: 1d}}",
        "no_parent: {references: {columns: id, table: @nowhere}}",
        "codes: {trend: {measure: sum(CAST(code AS INT))}}",
        "too_many: {row_count: {min: 1}, by: [id, code]}",
    )

    found = yard.results()

    assert {name: one.state for name, one in found.items()} == {
        "there": "passed",
        "not_there": "failed",
        "no_parent": "failed",
        "codes": "failed",
        "too_many": "passed",
    }
    said = {name: one.outcome.message for name, one in found.items()}
    assert "UNRESOLVED_COLUMN" in said["not_there"]
    assert "placed_at" in said["not_there"]
    assert "nowhere" in said["no_parent"]
    assert "CAST_INVALID_INPUT" in said["codes"]
    assert "secret-value" not in str(said)


def test_another_table_that_nobody_asked_for_yet_is_found(yard: Yard, warehouse: Path) -> None:
    """In a local warehouse a table is known by its folder."""
    folder = warehouse / yard.database / "parents"
    yard.session.sql("SELECT 1 AS id").write.format("delta").save(str(folder))
    yard.table("id INT", "(1)", "(2)")
    yard.declare("known: {references: {columns: id, table: @parents}}")

    message = yard.results()["known"].outcome.message

    assert message == f"1 of 2 rows have a id that {yard.database}.parents has not"


def test_a_sum_that_is_no_number_agrees_with_nothing(yard: Yard) -> None:
    yard.table("x DOUBLE, ts TIMESTAMP", "(double('NaN'), current_timestamp())")
    yard.declare(
        "nan: {trend: {measure: sum(x)}}",
        "days: {trend: {measure: sum(ts - TIMESTAMP'2020-01-01')}}",
    )

    assert yard.states() == {"nan": "failed", "days": "failed"}


def test_too_many_groups_are_refused(yard: Yard) -> None:
    """Each would be judged and logged."""
    full = yard.table("id LONG")
    yard.session.sql(f"INSERT INTO {full} SELECT id FROM range({MOST_GROUPS + 1})")
    yard.declare("each: {row_count: {min: 1}, by: id}", "all: {row_count: {min: 1}}")

    found = yard.results()

    assert found["each"].outcome.message == f"there are more than {MOST_GROUPS:,} groups"
    assert found["all"].state == "passed"


def test_rules_that_delta_does_not_enforce_are_counted_beside_the_checks(yard: Yard) -> None:
    """Warn rules, and those still to be added; not what the table enforces, by any name."""
    full = yard.table(
        "id INT NOT NULL, amount INT", "(1, 5)", "(2, -1)", "(3, NULL)", "(4, 500)", "(5, 1)"
    )
    yard.session.sql(f"ALTER TABLE {full} ADD CONSTRAINT other CHECK (id > 0)")
    yard.declare(
        rules="id_here: {not_null: id}, id_positive: {check: id > 0}, "
        "amount_positive: {check: amount > 0}, amount_here: {not_null: amount}, "
        "amount_small: {check: amount < 100, on_violation: warn, gate: 1}"
    )

    found = yard.run()

    assert {one.rule: (one.state, one.failed, one.rows, one.gated) for one in found.rules} == {
        "amount_positive": ("pending", 2, 5, False),
        "amount_here": ("pending", 1, 5, False),
        "amount_small": ("warn", 2, 5, True),
    }
    assert found.failed
    assert {
        line.rule: (line.kind, line.state, line.failed, line.action) for line in yard.log()
    } == {
        "amount_positive": ("rule", "failed", 2, "quarantine"),
        "amount_here": ("rule", "failed", 1, "quarantine"),
        "amount_small": ("rule", "failed", 2, "warn"),
        "gate of amount_small": ("check", "failed", 2, "fail"),
    }


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("kind", guarded.RULES)
def test_what_stands_behind_a_guard_is_evaluated_only_where_the_guard_lets_it(
    yard: Yard, kind: str
) -> None:
    """Compiled code computes first what occurs twice, and the table's gate joins all rules.

    Kind of bug: the gate could not be judged for a division by zero.
    """
    yard.table(guarded.COLUMNS, *map(str, guarded.ROWS))
    rules = guarded.RULES[kind]
    yard.declare(
        rules=", ".join(f'{name}: {{check: "{text}"}}' for name, text in rules.items()),
        head="gate: 50%",
    )
    found = yard.run()
    bad = sum(not guarded.good(kind, row) for row in guarded.ROWS)
    assert [(one.failed, one.gated) for one in found.gates] == [(bad, bad > 3)]
    assert {one.rule: one.failed for one in found.rules}["large"] == bad


def test_violators_of_rules_not_enforced_stop_nothing_without_a_gate(yard: Yard) -> None:
    yard.table("amount INT", "(-1)")
    yard.declare(rules="amount_positive: {check: amount > 0}")

    assert not yard.run().failed


def test_a_failed_check_stops_unless_it_only_warns(yard: Yard) -> None:
    yard.table("id INT", "(1)")
    yard.declare("many: {row_count: {min: 5}, on_failure: warn}")

    found = yard.run()

    assert found.checks[0].state == "failed"
    assert not found.failed
    yard.declare("many: {row_count: {min: 5}}")
    assert yard.run().failed


def test_the_quarantine_has_limits_too(yard: Yard) -> None:
    """Rows that are held, and how long the oldest has waited; none before the first."""
    full = yard.table("id INT, amount INT")
    yard.session.sql(f"ALTER TABLE {full} ADD CONSTRAINT ok CHECK (amount > 0)")
    yard.declare(
        "few: {quarantine: {rows: 1}}",
        "young: {quarantine: {oldest: 7d}}",
        rules="ok: {check: amount > 0}",
    )
    assert yard.states() == {"few": "passed", "young": "passed"}

    batch = yard.session.sql("SELECT * FROM VALUES (1, -1), (2, -2), (3, 3) AS t(id, amount)")
    deltacheck.write(batch, full, route="rows")

    now = datetime.now(timezone.utc)
    assert yard.states(now) == {"few": "failed", "young": "passed"}
    assert yard.states(now + timedelta(days=8)) == {"few": "failed", "young": "failed"}
    assert yard.results(now)["few"].outcome.message == "2 rows held, more than 1"


def test_nothing_is_written_but_one_commit_of_the_log(yard: Yard) -> None:
    """It has a line for each check, and one for each group of rows."""
    full = yard.table("id INT, region STRING", "(1, 'EU')", "(2, 'US')")
    yard.declare(
        "some: {row_count: {min: 1}}",
        "each: {row_count: {min: 1}, by: region}",
        "ids: {unique: id}",
        rules="r: {check: id > 1, on_violation: warn}",
    )
    version = latest_version(yard.session, TableName.parse(full))
    run = yard.run().run
    yard.run()

    log = TableName.parse(f"{yard.environment.schema}.quality_log")
    assert latest_version(yard.session, TableName.parse(full)) == version
    assert [one.operation for one in history(yard.session, log)] == [
        "WRITE",
        "WRITE",
        "CREATE TABLE",
    ]
    assert history(yard.session, log, limit=2)[1].tag == {"run": run, "step": "check"}
    tables = yard.session.sql(f"SHOW TABLES IN {yard.database}").where("NOT isTemporary")
    assert [row["tableName"] for row in tables.collect()] == ["orders"]
    lines = [line for line in yard.log() if line.run == run]
    assert sorted((line.rule, line.group is not None) for line in lines if line.rule) == [
        ("each", False),
        ("each", True),
        ("each", True),
        ("ids", False),
        ("r", False),
        ("some", False),
    ]
    assert {line.version for line in lines} == {version}
    assert {line.environment for line in lines} == {yard.environment.name}


def test_neither_log_nor_result_has_a_value_of_a_row(yard: Yard) -> None:
    """Unless the declaration lets groups be named."""
    yard.table("email STRING, n INT", "('alice@example.org', 1)", "('alice@example.org', 2)")
    checks = (
        "mail: {unique: email}",
        "each: {row_count: {min: 5}, by: email}",
        "shares: {trend: {measure: shares(email)}}",
        "fresh: {freshness: {column: email, max_age: 1d}}",
    )
    yard.declare(*checks)

    assert "alice" not in str(yard.run())
    assert "alice" not in str(yard.log())

    yard.declare("each: {row_count: {min: 5}, by: email, show_groups: true}")
    assert "email = alice@example.org" in str(yard.run())
    assert "email = alice@example.org" in str(yard.log())


def test_checks_without_groups_cost_one_pass_over_the_table(
    spark: SparkSession, yard: Yard
) -> None:
    """Ten of them as many Spark jobs as one, the counts of violators among them."""
    yard.table(COLUMNS, *ROWS)

    def jobs(*checks: str, rules: str = "") -> int:
        yard.declare(*checks, rules=rules)
        yard.run()
        group = f"group {len(checks)}"
        spark.sparkContext.setJobGroup(group, "")
        yard.run()
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))

    one = jobs("c: {trend: {measure: sum(id)}}")
    ten = jobs(
        "a: {row_count: {min: 1}}",
        "b: {row_count: {min: 1}, where: id > 1}",
        "c: {trend: {measure: sum(id)}}",
        "d: {trend: {measure: mean(amount)}}",
        "e: {trend: {measure: null_share(customer)}}",
        "f: {trend: {measure: failure_share(r)}}",
        "g: {freshness: {column: placed_at, max_age: 4h}}",
        "h: {trend: {measure: sum(amount), last: 8 weeks}, where: region = 'EU'}",
        "i: {trend: {measure: row_count}}",
        "j: {trend: {measure: null_share(placed_at)}}",
        rules="r: {check: amount > 0}, s: {check: id < 3, on_violation: warn}",
    )

    assert ten == one


def test_only_what_is_asked_for_is_run(yard: Yard) -> None:
    """By table, tag and owner, for rules as for checks."""
    yard.table("id INT", "(1)")
    yard.table("id INT", "(1)", name="other")
    yard.declare(
        "a: {row_count: {min: 1}, tags: [daily]}",
        "b: {row_count: {min: 1}, owner: finance}",
        rules="r: {check: id > 0, tags: [daily]}, s: {check: id > 1}",
    )
    yard.declare("c: {row_count: {min: 1}}", name="other")

    def ran(selection: Selection) -> list[str]:
        found = yard.run(selection=selection)
        return [one.check.name for one in found.checks] + [one.rule for one in found.rules]

    assert ran(Selection()) == ["a", "b", "c", "r", "s"]
    assert ran(Selection(tables=("*.OTHER",))) == ["c"]
    assert ran(Selection(tags=("daily",))) == ["a", "r"]
    assert ran(Selection(owners=("Finance",))) == ["b"]
    assert ran(Selection(owners=("nobody",))) == []


def test_a_table_that_is_not_there_fails_its_checks(yard: Yard) -> None:
    """Rules may be declared ahead of their table."""
    yard.declare("some: {row_count: {min: 1}}")
    found = yard.run()
    assert (found.missing, found.failed) == ((yard.orders,), True)

    yard.declare(rules="r: {check: id > 0}")
    found = yard.run()
    assert (found.missing, found.failed) == ((), False)


def test_a_view_is_refused(yard: Yard) -> None:
    yard.session.sql(f"CREATE VIEW {yard.orders} AS SELECT 1 AS id")
    yard.declare("some: {row_count: {min: 1}}")

    with pytest.raises(NotDeltaError):
        yard.run()


def test_a_log_of_a_newer_deltacheck_is_left_alone(yard: Yard) -> None:
    yard.table("id INT", "(1)")
    yard.declare("some: {row_count: {min: 1}}")
    yard.run()
    log = f"{yard.environment.schema}.quality_log"
    yard.session.sql(f"ALTER TABLE {log} SET TBLPROPERTIES ('deltacheck.format' = '99')")

    with pytest.raises(LedgerError, match="format 99"):
        yard.run()


def test_a_table_gate_is_held_against_the_rows_that_an_upgrade_would_move(yard: Yard) -> None:
    """Each once, however many pending rules it breaks; those of warn rules do not count."""
    yard.table("id INT, amount INT", "(1, -1)", "(-2, -1)", "(3, 1)", "(4, 999)")
    rules = (
        "amount_ok: {check: amount > 0}, id_ok: {check: id > 0}, "
        "small: {check: amount < 9, on_violation: warn}"
    )
    yard.declare(rules=rules, head="gate: 1/2")
    found = yard.run()
    assert [(one.failed, one.rows, one.gated) for one in found.gates] == [(2, 4, False)]
    assert not found.failed

    yard.declare(rules=rules, head="gate: 1/3")
    found = yard.run()
    assert [(one.failed, one.gate, one.gated) for one in found.gates] == [(2, "1/3", True)]
    assert found.failed
    (event,) = events_of(found)
    assert (event.kind, event.owners) == ("check_failed", ("sales",))
    assert "2 of 4 rows break a rule, more than the gate 1/3" in event.message


def test_columns_may_have_any_name(yard: Yard) -> None:
    """With blanks, dots and keywords in them, quoted as in SQL."""
    yard.session.sql(
        f"CREATE TABLE {yard.orders} (`order id` INT, `a.b` STRING, `by` INT) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    yard.add("(1, 'x', 1)", "(1, 'y', 2)", "(NULL, 'y', 2)")
    yard.declare(
        'ids: {unique: "`order id`"}',
        'self: {references: {columns: "`a.b`", table: @orders}}',
        'groups: {row_count: {max: 1}, by: "`by`", where: "`a.b` = \'y\'"}',
        'usual: {trend: {measure: "null_share(`order id`)"}}',
    )

    assert yard.states() == {
        "ids": "failed",
        "self": "passed",
        "groups": "failed",
        "usual": "unjudged",
    }


def test_a_folder_that_is_no_delta_table_is_refused_and_nothing_is_logged(yard: Yard) -> None:
    """Before any table is looked at."""
    yard.session.sql(f"CREATE TABLE {yard.orders} (id INT) USING parquet")
    yard.declare("some: {row_count: {min: 1}}")

    with pytest.raises(NotDeltaError):
        yard.run()

    assert yard.log() == ()


def test_a_weekly_trend_looks_at_the_same_weekday_alone(yard: Yard) -> None:
    """Mondays are held against Mondays, of as many weeks as are asked for."""
    monday, week = datetime(2026, 3, 2, 6, tzinfo=timezone.utc), timedelta(weeks=1)
    full = yard.table("id LONG")
    yard.session.sql(f"INSERT INTO {full} SELECT id FROM range(10)")
    yard.declare("usual: {trend: {measure: row_count, last: 5 weeks}}")
    assert yard.states(monday) == {"usual": "unjudged"}
    (first,) = (line for line in yard.log() if line.rule == "usual")
    tuesday = monday + timedelta(days=1)
    earlier = [replace(first, at=monday + number * week) for number in range(1, 5)]
    earlier += [replace(first, at=tuesday + number * week, figure=99.0) for number in range(5)]
    append_lines(yard.session, yard.environment, earlier, Tag())

    on_monday = yard.results(monday + 5 * week)["usual"]
    on_tuesday = yard.results(tuesday + 5 * week)["usual"]

    assert (on_monday.state, on_tuesday.state) == ("passed", "failed")
    assert "the median of 5 earlier weeks is 10" in on_monday.outcome.message
    assert "the median of 5 earlier weeks is 99" in on_tuesday.outcome.message


def test_a_gate_that_cannot_be_judged_does_not_hold(yard: Yard) -> None:
    """A bug of zeros: a rule that nobody could count was broken by 0 of 0 rows."""
    yard.table("id INT", "(1)")
    rules = "gone: {check: amount > 0, gate: 5%}, lost: {check: amount > 1}"
    yard.declare(rules=rules, head="gate: 5%")

    found = yard.run()

    # The table's gate is for the rules that have none of their own.
    assert [one.gated for one in found.rules] == [True, False]
    assert [one.gated for one in found.gates] == [True]
    assert found.failed
    (event,) = events_of(found)
    assert "UNRESOLVED_COLUMN" in event.message
    assert "so the gate 5% does not hold" in event.message


def test_a_gate_is_logged_as_a_check_is(yard: Yard) -> None:
    """A bug of silence: what made a run fail was not in the log; nor was what cleared it."""
    yard.table("amount INT", "(5)", "(-1)")
    rules = "amount_ok: {{check: amount > {0}}}, small: {{check: amount < 9, gate: 0}}"
    yard.declare(rules=rules.format(0), head="gate: 1/3")
    yard.run()
    yard.declare(rules=rules.format(-2), head="gate: 1/3")
    yard.run()

    logged = [(one.rule, one.state, one.message) for one in yard.log() if one.kind == CHECK]
    assert sorted(logged) == [
        ("gate of small", "passed", "0 of 2 rows break it"),
        ("gate of small", "passed", "0 of 2 rows break it"),
        ("gate of the table", "failed", "1 of 2 rows break a rule, more than the gate 1/3"),
        ("gate of the table", "passed", "0 of 2 rows break a rule"),
    ]


def test_a_table_that_cannot_be_looked_at_is_logged_as_failed_and_hides_no_other(
    yard: Yard,
) -> None:
    """A bug of all or nothing: one lost log, or one missing table, and no table was checked."""
    full = yard.table("id INT", "(1)")
    yard.table("id INT", "(1)", name="other")
    yard.declare("some: {row_count: {min: 1}}", rules="r: {check: id > 0, gate: 0}")
    yard.declare("some: {row_count: {min: 1}}", name="other")
    yard.declare("some: {row_count: {min: 1}}", name="nowhere")
    assert yard.environment.warehouse is not None
    lost = yard.environment.warehouse / yard.database / "orders" / "_delta_log"
    for file in lost.glob("*0.json"):
        file.write_text("no JSON")

    found = yard.run(selection=Selection())

    assert {one.table: one.state for one in found.checks} == {
        full: "failed",
        f"{yard.database}.other": "passed",
        f"{yard.database}.nowhere": "failed",
    }
    assert (list(found.problems), found.failed) == ([full], True)
    assert found.missing == (f"{yard.database}.nowhere",)
    events = {event.table: event.message for event in events_of(found)}
    assert events[full].startswith(f"{full} cannot be read: Spark says ")
    logged = {(one.table, one.rule): one.state for one in yard.log()}
    assert logged == {
        (full, "some"): "failed",
        (full, "r"): "failed",
        (full, "gate of r"): "failed",
        (f"{yard.database}.other", "some"): "passed",
        (f"{yard.database}.nowhere", "some"): "failed",
    }


def test_a_quarantine_that_is_none_fails_its_check_alone(yard: Yard) -> None:
    """A bug of all or nothing: its name is taken, and no other check of any table was run."""
    yard.table("id INT", "(1)")
    yard.table("id INT", name="orders_quarantine")
    yard.declare("few: {quarantine: {rows: 1}}", "some: {row_count: {min: 1}}")

    found = yard.results()

    assert {name: one.state for name, one in found.items()} == {"few": "failed", "some": "passed"}
    assert "is not a quarantine table" in found["few"].outcome.message


def test_files_that_are_lost_fail_the_checks_that_read_them(yard: Yard) -> None:
    """A bug of all or nothing: no condition of Spark's names it, and the run was stopped."""
    yard.table("id INT", "(1)")
    yard.table("id INT", "(1)", name="parents")
    yard.declare(
        "known: {references: {columns: id, table: @parents}}",
        "meant: {references: {columns: id, table: @plain}}",
        "some: {row_count: {min: 1}}",
    )
    assert yard.environment.warehouse is not None
    folder = yard.environment.warehouse / yard.database
    yard.session.sql("SELECT 1 AS id").write.parquet(str(folder / "plain"))
    for file in (folder / "parents").glob("*.parquet"):
        file.unlink()

    assert yard.states() == {"known": "failed", "meant": "failed", "some": "passed"}


def test_a_group_that_is_gone_has_a_sum_of_nothing(yard: Yard) -> None:
    """A bug of omission: a region without rows was not looked at, and its trend passed."""
    full = yard.table("region STRING, amount INT", "('EU', 5)", "('US', 7)")
    yard.declare("usual: {trend: {measure: sum(amount)}, by: region, show_groups: true}")
    first = datetime(2026, 3, 1, 6, tzinfo=timezone.utc)
    yard.run(first)
    logged = [line for line in yard.log() if line.group is not None]
    earlier = [
        replace(line, at=first + timedelta(days=number))
        for line in logged
        for number in range(1, 6)
    ]
    append_lines(yard.session, yard.environment, earlier, Tag())
    yard.session.sql(f"DELETE FROM {full} WHERE region = 'US'")

    message = yard.results(first + timedelta(days=6))["usual"].outcome.message

    assert message.startswith(
        "1 of 2 groups by region fail: a group that is gone: sum(amount) is 0"
    )
