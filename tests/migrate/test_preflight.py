"""Everything that can be checked is checked before a row moves."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from pyspark.errors import PySparkException

from deltacheck.delta.table import latest_version
from deltacheck.delta.violators import count_violators, violators_of
from deltacheck.errors import GateError, QuarantineError
from deltacheck.migrate.preflight import gated
from deltacheck.names import TableName
from deltacheck.revisions.operations import AddConstraint
from deltacheck.revisions.recorder import Op
from deltacheck.rules.model import Gate, TableRules
from tests.migrate.bench import Bench, chain, moments

FUNCTIONS = [
    "split_part(s, '-', 1) = 'a'",
    "luhn_check(s) OR s = 'a-b'",
    "array_size(split(s, '-')) = 2",
    "btrim(s) = s AND s LIKE 'a%'",
    "regexp_count(s, '-') = 1 AND s LIKE 'a%'",
    "try_to_timestamp(s) IS NULL AND equal_null(s, 'a-b')",
]


def test_functions_of_spark_that_delta_does_not_list(bench: Bench) -> None:
    """No row is moved for a rule that ADD CONSTRAINT refuses afterwards.

    Kind of bug: Delta's stricter validation of rules, asked for, refused ordinary functions
    after their violators had been moved.
    """
    table = bench.table("t", "s STRING", "VALUES ('a-b'), ('c-d')")

    def upgrade(op: Op) -> None:
        for place, rule in enumerate(FUNCTIONS):
            op.add_check(table, f"r{place}", rule, gate="100%")

    history = chain(upgrade)
    result = bench.upgrade(history)
    assert {step.state for step in result.steps} == {"enforced"}
    assert bench.held(table) == Counter({"('c-d',)": 1})


def test_a_gate_is_that_of_its_rule_whatever_the_rule_is_called() -> None:
    """A bug of words of ours that are names of others': the rule lost its gate to all others."""
    op = Op({})
    op.add_check("shop.t", "*", "a > 0", gate=0)
    op.add_check("shop.t", "plain", "b > 0")
    new = {add.name: add for add in op.operations if isinstance(add, AddConstraint)}

    groups = gated(new, Gate.parse("50%"))

    assert len({group.key for group in groups}) == 2
    assert [(group.gate, [one.name for one in group.members]) for group in groups] == [
        (Gate.parse("0"), ["*"]),
        (Gate.parse("50%"), ["plain"]),
    ]


def test_a_rule_that_statistics_can_prove_reads_no_data_file(bench: Bench) -> None:
    """Each file's smallest value and number of NULLs tell that it has no violator."""
    table = bench.table("t", "id INT, s STRING", "SELECT 1 + id, 'a' FROM range(100)")
    rules = {"id_positive": "id > 0 AND id IS NOT NULL", "s_there": "s IS NOT NULL"}
    for name, predicate in violators_of(rules).items():
        looked_at = bench.session.table(table).where(predicate)
        assert looked_at.inputFiles() == [], name
    everything = bench.session.table(table).where("(id > 0) IS NOT TRUE")
    assert everything.inputFiles() != []
    for file in bench.session.table(table).inputFiles():
        Path(unquote(urlparse(file).path)).unlink()
    full = TableName.parse(table)
    found = count_violators(bench.session, full, latest_version(bench.session, full), rules)
    assert (found.rows, found.any) == (100, 0)


@pytest.mark.parametrize(("gate", "holds"), [("3", True), ("2", False)])
def test_a_tables_gate_is_for_its_new_rules_taken_together(
    bench: Bench, gate: str, holds: bool
) -> None:
    """Each of two rules is broken by two rows, both of them by three.

    Kind of bug: the table's gate was held against each rule by itself.
    """
    table = bench.table("t", "id INT, n INT", "VALUES (1, 1), (-1, 1), (-2, -2), (1, -3)")

    def both(op: Op) -> None:
        op.add_check(table, "id_positive", "id > 0")
        op.add_check(table, "n_positive", "n > 0")

    name = TableName.parse(table)
    rules = {name: TableRules(name, (), gate=Gate.parse(int(gate)))}
    if holds:
        assert bench.upgrade(chain(both), rules=rules).tables[0].moved == 3
    else:
        with pytest.raises(GateError, match=r"3 of 4 rows .* more than the gate of 2"):
            bench.upgrade(chain(both), rules=rules)
        assert bench.held(table) == Counter()


def two_tables(bench: Bench) -> tuple[str, str]:
    """Two tables with one bad row each."""
    first, second = (
        bench.table(name, "id INT", "SELECT explode(array(1, -1))") for name in ("a", "b")
    )
    return first, second


def test_a_quarantine_that_cannot_be_made_stops_the_run_before_any_table_is_touched(
    bench: Bench, warehouse: Path
) -> None:
    """That of the second table: a file is where its folder would be."""
    tables = two_tables(bench)
    folder = warehouse / bench.database
    (folder / "b_bad").write_text("in the way")
    elsewhere = replace(bench.environment, quarantine=f"delta.`{folder}/{{table}}_bad`")
    mine = Bench(bench.session, elsewhere, bench.database)

    def upgrade(op: Op) -> None:
        for table in tables:
            op.add_check(table, "id_positive", "id > 0", gate="100%")

    with pytest.raises(QuarantineError):
        mine.upgrade(chain(upgrade))

    for table in tables:
        assert mine.rows(table) == Counter({"(1,)": 1, "(-1,)": 1})
        assert mine.constraints(table) == {}
    assert mine.held(tables[0]) == Counter()


def test_a_quarantine_that_may_not_be_written_stops_the_run_before_any_table_is_touched(
    bench: Bench,
) -> None:
    """That of the second table is there from an earlier run, and refuses every write now."""
    tables = two_tables(bench)

    def earlier(op: Op) -> None:
        op.add_check(tables[1], "id_small", "id < 9", gate="100%")

    def later(op: Op) -> None:
        for table in tables:
            op.add_check(table, "id_positive", "id > 0", gate="100%")

    bench.session.sql(f"INSERT INTO {tables[1]} VALUES (9)")
    bench.upgrade(chain(earlier))

    def refuse(number: int, when: str, what: str) -> None:
        if (when, what.split()[0]) == ("before", "b_quarantine"):
            raise PySparkException("", errorClass="NO_RIGHTS", messageParameters={})

    with moments(refuse), pytest.raises(QuarantineError, match="No row of any table was moved"):
        bench.upgrade(chain(earlier, later))

    for table in tables:
        assert bench.rows(table) == Counter({"(1,)": 1, "(-1,)": 1})
    assert bench.held(tables[0]) == Counter()
    assert bench.journal.unsettled == ()
    bench.upgrade(chain(earlier, later))
    assert bench.held(tables[1]) == Counter({"(9,)": 1, "(-1,)": 1})
