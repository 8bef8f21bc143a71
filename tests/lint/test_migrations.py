"""What lint says about migrations."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltacheck.lint import Finding, Severity, failed
from deltacheck.revisions.source import checksum
from tests.lint.projects import codes, lint, migration, rule_file

ADD = 'op.add_check("shop.orders", "amount_small", "amount IS NULL OR amount < 5")'
DROP = 'op.drop_check("shop.orders", "amount_small")'
REPLACE = 'op.replace_check("shop.orders", "amount_small", "amount IS NULL OR amount < 9")'
BACK = 'op.replace_check("shop.orders", "amount_small", "amount is null or (amount < 5)")'


def second(up: str, down: str) -> dict[str, str]:
    """A project whose second migration does this, after one that added ``amount_small``."""
    return {
        "versions/0001_first.py": migration(ADD, DROP),
        "versions/0002_second.py": migration(up, down, revision="0002", after="0001"),
    }


def of(findings: tuple[Finding, ...], code: str) -> Finding:
    (finding,) = [one for one in findings if one.code == code]
    return finding


@pytest.mark.parametrize(
    ("up", "down"),
    [
        (DROP, ADD),
        (REPLACE, BACK),
        (f"{DROP}\n{ADD.replace('5', '7')}", f"{DROP}\n{ADD}"),
        ('op.set_not_null("shop.orders", "id")', 'op.drop_not_null("shop.orders", "ID")'),
        ('op.rename_table("shop.orders", "shop.o")', 'op.rename_table("shop.o", "shop.orders")'),
        ('op.execute("OPTIMIZE shop.orders")', "pass"),
        ("pass", "pass"),
    ],
)
def test_a_downgrade_that_undoes_its_upgrade(tmp_path: Path, up: str, down: str) -> None:
    assert "DC301" not in codes(lint(tmp_path, second(up, down)))


@pytest.mark.parametrize(
    ("up", "down", "words"),
    [
        (ADD.replace("small", "big"), "pass", "leaves shop.orders.amount_big"),
        (DROP, "pass", "does not bring back shop.orders.amount_small"),
        (DROP, ADD.replace("5", "7"), "changes shop.orders.amount_small"),
        (REPLACE, "pass", "changes shop.orders.amount_small"),
        ("pass", DROP, "does not bring back shop.orders.amount_small"),
        (
            'op.rename_table("shop.orders", "shop.o")',
            "pass",
            "leaves shop.o.amount_small, does not bring back shop.orders.amount_small",
        ),
    ],
)
def test_a_downgrade_that_does_not_undo_its_upgrade(
    tmp_path: Path, up: str, down: str, words: str
) -> None:
    files = second(up, down)

    finding = of(lint(tmp_path, files), "DC301")

    assert finding.message == f"downgrade() {words}."
    lines = files["versions/0002_second.py"].splitlines()
    assert (finding.path, finding.revision) == (tmp_path / "versions/0002_second.py", "0002")
    assert finding.line == lines.index("def downgrade(op):") + 1


def test_the_comment_about_a_downgrade_stands_at_the_downgrade(tmp_path: Path) -> None:
    files = second(DROP, "pass")
    text = files["versions/0002_second.py"]
    files["versions/0002_second.py"] = text.replace(
        "def downgrade(op):", "def downgrade(op):  # deltacheck: ignore[DC301]"
    )

    assert "DC301" not in codes(lint(tmp_path, files))


def test_a_file_that_was_edited_after_it_had_been_applied(tmp_path: Path) -> None:
    files = second(DROP, ADD)
    applied = {
        "0001": checksum(files["versions/0001_first.py"] + "# a comment does not count\n"),
        "0002": checksum(files["versions/0002_second.py"].replace("5", "7")),
    }

    found = lint(tmp_path, files, applied=applied)

    finding = of(found, "DC302")
    assert (finding.revision, finding.severity, finding.line) == ("0002", Severity.ERROR, 1)
    assert failed(found)
    assert "DC302" not in codes(lint(tmp_path, files))


def test_an_edited_file_can_be_let_pass(tmp_path: Path) -> None:
    text = "# deltacheck: ignore[DC302]\n" + migration(ADD, DROP)

    assert lint(tmp_path, {"versions/0001.py": text}, applied={"0001": "another"}) == ()


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD CONSTRAINT x CHECK (a > 0)",
        "alter table t drop constraint x",
        "ALTER TABLE t UNSET TBLPROPERTIES ('delta.constraints.x')",
        "ALTER TABLE t ALTER COLUMN a DROP NOT NULL",
        "CREATE OR REPLACE TABLE t AS SELECT 1 AS a",
        "RESTORE TABLE t TO VERSION AS OF 3",
    ],
)
def test_execute_that_changes_constraints(tmp_path: Path, statement: str) -> None:
    call = f'op.execute("{statement}")'

    assert "DC303" in codes(lint(tmp_path, {"versions/0001.py": migration(call)}))

    silenced = "# deltacheck: ignore\n" + migration(call)
    assert "DC303" not in codes(lint(tmp_path, {"versions/0001.py": silenced}))


def test_execute_that_does_something_else(tmp_path: Path) -> None:
    call = 'op.execute("OPTIMIZE shop.orders ZORDER BY (order_id)")'

    assert lint(tmp_path, {"versions/0001.py": migration(call)}) == ()


def test_what_a_migration_leaves_standing_is_looked_at_like_a_rule(tmp_path: Path) -> None:
    up = (
        'op.add_check("shop.orders", "check_1", "amount = NULL")\n'
        'op.set_not_null("shop.orders", "Id")'
    )
    down = 'op.drop_not_null("shop.orders", "Id")\nop.drop_check("shop.orders", "check_1")'
    files = {"versions/0001.py": migration(up, down)}

    found = lint(tmp_path, files)

    assert [(one.code, one.line, one.rule) for one in found] == [
        ("DC103", 8, "check_1"),
        ("DC201", 8, "check_1"),
        ("DC202", 9, "Id_not_null"),
    ]
    assert {one.revision for one in found} == {"0001"}
    assert lint(tmp_path, files, applied={"0001": checksum(files["versions/0001.py"])}) == ()


def test_a_comment_at_the_call_silences_what_is_said_about_it(tmp_path: Path) -> None:
    up = (
        "# deltacheck: ignore[DC201]\n"
        'op.add_check("shop.orders", "check_1", "amount = NULL")\n'
        "op.add_check(\n"
        '    "shop.orders",\n'
        '    "check_2",  # deltacheck: ignore\n'
        '    "amount = NULL",\n'
        ")"
    )
    down = 'op.drop_check("shop.orders", "check_1")\nop.drop_check("shop.orders", "check_2")'

    assert codes(lint(tmp_path, {"versions/0001.py": migration(up, down)})) == ["DC103"]


def test_what_later_migrations_replaced_or_dropped_is_history(tmp_path: Path) -> None:
    bad = 'op.add_check("shop.orders", "amount_small", "amount = NULL")'
    files = {
        "versions/0001.py": migration(bad, DROP),
        "versions/0002.py": migration(DROP, bad, revision="0002", after="0001"),
    }

    assert lint(tmp_path, files) == ()


def test_a_constraint_is_spoken_of_once_where_it_is_declared(tmp_path: Path) -> None:
    files = {
        "constraints/orders.yml": rule_file("amount < 5", name="amount_small"),
        "versions/0001.py": migration(
            'op.add_check("shop.orders", "amount_small", "(amount<5)")', DROP
        ),
    }

    (finding,) = lint(tmp_path, files)

    assert (finding.code, finding.path) == ("DC101", tmp_path / "constraints/orders.yml")
