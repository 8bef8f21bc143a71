"""What lint says about the names of rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.projects import codes, lint, migration, rule_file

CHECK = "amount IS NULL OR amount < 5"


def named(folder: Path, name: str, comment: str = "") -> list[str]:
    text = rule_file(CHECK, name=name, comment=comment)
    return codes(lint(folder, {"constraints/orders.yml": text}))


@pytest.mark.parametrize(
    "name",
    ["check_1", "rule2", "CheckConstraint", "my_new_test", "x", "c1", "_", "123", "the_old_rule"],
)
def test_a_name_that_says_nothing(tmp_path: Path, name: str) -> None:
    assert "DC201" in named(tmp_path, name)
    assert "DC201" not in named(tmp_path, name, "deltacheck: ignore[DC201]")


@pytest.mark.parametrize(
    "name", ["amount_positive", "check_amount", "id_present", "größe_ok", "valid_zip", "no_refunds"]
)
def test_a_name_that_says_something(tmp_path: Path, name: str) -> None:
    assert "DC201" not in named(tmp_path, name)


def test_a_name_that_delta_lower_cases(tmp_path: Path) -> None:
    assert named(tmp_path, "Amount_Small") == ["DC202"]
    assert named(tmp_path, "Amount_Small", "deltacheck: ignore[DC202]") == []
    assert named(tmp_path, "amount_small") == []


@pytest.mark.parametrize("name", ["amount-small", "amount small", "betrag_größe", "amount.small"])
def test_a_name_that_needs_quoting(tmp_path: Path, name: str) -> None:
    assert named(tmp_path, name) == ["DC203"]
    assert named(tmp_path, name, "deltacheck: ignore[DC203]") == []


def test_one_constraint_under_two_spellings(tmp_path: Path) -> None:
    def found(name: str, comment: str = "") -> list[str]:
        call = f'op.add_check("shop.orders", "Amount_Small", "{CHECK}")'
        files = {
            "constraints/orders.yml": rule_file(CHECK, name=name, comment=comment),
            "versions/0001.py": migration(call, 'op.drop_check("shop.orders", "amount_small")'),
        }
        return codes(lint(tmp_path, files))

    assert found("amount_small") == ["DC204"]
    assert found("amount_small", "deltacheck: ignore[DC204]") == []
    assert found("Amount_Small") == ["DC202"]


def test_two_names_that_differ_in_case_only_are_an_error(tmp_path: Path) -> None:
    text = "table: t\nrules:\n  A_small: {check: a < 1}\n  a_SMALL: {check: a < 2}\n"

    (finding,) = lint(tmp_path, {"constraints/t.yml": text})

    assert (finding.code, finding.line) == ("DC001", 4)
    assert "without regard to case" in finding.remedy
