"""Rules are read from ``constraints/``, and what is wrong there is named by file and line."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltacheck.errors import (
    DeclarationError,
    ExpressionError,
    IdentifierError,
    RuleFileError,
)
from deltacheck.names import TableName
from deltacheck.rules.files import read_rules, survey_rules
from deltacheck.rules.model import Action, Gate, Kind, Origin

ORDERS = """\
table: shop.orders
description: One row per order.
owner: sales
tags: [core, money]
gate: 5%
rules:
  order_id_present:
    not_null: order_id
  amount_positive:
    check: amount > 0
    description: An order amount is always greater than zero.
    tags: [money]
    owner: finance
    gate: 1/3
    on_violation: fail
  amount_plausible:
    check: amount < 50000
    on_violation: warn
    renamed_from: amount_small
"""


def written(folder: Path, files: dict[str, str | bytes]) -> Path:
    """A constraints folder with these files."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def table(name: str) -> TableName:
    return TableName.parse(name)


def refused(folder: Path, environ: dict[str, str] | None = None) -> DeclarationError:
    """The error that reading a folder raises."""
    with pytest.raises(DeclarationError) as raised:
        read_rules(folder, environ=environ or {})
    return raised.value


def test_a_table_is_read_with_everything_that_is_said_about_it(tmp_path: Path) -> None:
    rules = read_rules(written(tmp_path, {"orders.yml": ORDERS}))

    orders = rules[table("shop.orders")]
    assert (orders.description, orders.owner) == ("One row per order.", "sales")
    assert orders.tags == ("core", "money")
    assert orders.gate is not None
    assert orders.gate.limit == Fraction(1, 20)
    assert orders.origin == Origin(tmp_path / "orders.yml", 1, 1)

    present, positive, plausible = orders.rules
    assert (present.kind, present.column) == (Kind.NOT_NULL, "order_id")
    assert present.expression == "order_id IS NOT NULL"
    assert present.on_violation is Action.QUARANTINE
    assert (positive.kind, positive.expression) == (Kind.CHECK, "amount > 0")
    assert positive.description == "An order amount is always greater than zero."
    assert (positive.tags, positive.owner) == (("money",), "finance")
    assert positive.gate == Gate(Fraction(1, 3), "1/3")
    assert positive.on_violation is Action.FAIL
    assert (plausible.on_violation, plausible.enforced) == (Action.WARN, False)
    assert plausible.renamed_from == "amount_small"


def test_a_rule_knows_the_line_and_column_of_its_name(tmp_path: Path) -> None:
    rules = read_rules(written(tmp_path, {"orders.yml": ORDERS}))

    positive = rules[table("shop.orders")].rule("AMOUNT_POSITIVE")
    assert positive is not None
    assert positive.origin == Origin(tmp_path / "orders.yml", 9, 3)


def test_rules_keep_the_order_of_the_file(tmp_path: Path) -> None:
    names = ["zeta_ok", "alpha_ok", "mid_ok"]
    text = "table: t\nrules:\n" + "".join(f"  {name}: {{check: a > 1}}\n" for name in names)

    rules = read_rules(written(tmp_path, {"t.yml": text}))

    assert [rule.name for rule in rules[table("t")].rules] == names


def test_the_text_that_a_person_wrote_is_kept_beside_what_is_stored(tmp_path: Path) -> None:
    rules = read_rules(
        written(tmp_path, {"t.yml": "table: t\nrules: {a_ok: {check: 'a::int==1'}}\n"})
    )

    (rule,) = rules[table("t")].rules
    assert rule.declared == "a::int==1"
    assert rule.expression == "CAST(a AS INT) = 1"


def test_not_null_takes_nested_fields_and_quoted_names(tmp_path: Path) -> None:
    text = """\
table: t
rules:
  zip_present:
    not_null: address.zip
  odd_present:
    not_null: "`order id`"
"""

    zip_present, odd_present = read_rules(written(tmp_path, {"t.yml": text}))[table("t")].rules

    assert (zip_present.column, zip_present.expression) == (
        "address.zip",
        "address.zip IS NOT NULL",
    )
    assert odd_present.expression == "`order id` IS NOT NULL"


@pytest.mark.parametrize(
    ("written_as", "limit"),
    [
        ("100", 100),
        ("0", 0),
        ("5%", Fraction(1, 20)),
        ("0.5%", Fraction(1, 200)),
        ("1/3", Fraction(1, 3)),
        ("100%", 1),
    ],
)
def test_a_gate_is_a_number_a_percentage_or_a_fraction(
    tmp_path: Path, written_as: str, limit: int | Fraction
) -> None:
    text = f"table: t\ngate: {written_as}\nrules: {{}}\n"

    gate = read_rules(written(tmp_path, {"t.yml": text}))[table("t")].gate

    assert gate is not None
    assert gate.limit == limit


@pytest.mark.parametrize("word", ["on", "yes", "no", "1e3", "2024-01-01", "0x1F", "1_000", "12:30"])
def test_nothing_that_yaml_takes_for_a_number_or_a_truth_is_changed(
    tmp_path: Path, word: str
) -> None:
    text = (
        f"table: t\nrules:\n  a_ok:\n    check: a = 1\n    description: {word}\n    owner: {word}\n"
    )

    (rule,) = read_rules(written(tmp_path, {"t.yml": text}))[table("t")].rules

    assert (rule.description, rule.owner) == (word, word)


def test_a_long_expression_may_be_folded_over_lines(tmp_path: Path) -> None:
    text = "table: t\nrules:\n  a_ok:\n    check: >-\n      `order id` > 0\n      AND b: c\n"

    problem = refused(written(tmp_path, {"t.yml": text}))
    assert problem.line == 4

    text = text.replace("b: c", "b = 'c: d'")
    (rule,) = read_rules(written(tmp_path, {"t.yml": text}))[table("t")].rules
    assert rule.expression == "`order id` > 0 AND b = 'c: d'"


def test_several_tables_share_a_file_as_documents(tmp_path: Path) -> None:
    text = "table: a\nrules: {x_ok: {check: x > 0}}\n---\ntable: b\nrules: {}\n---\n"

    rules = read_rules(written(tmp_path, {"both.yml": text}))

    assert list(rules) == [table("a"), table("b")]
    assert rules[table("b")].rules == ()


def test_yml_and_yaml_are_read_in_sub_folders_too_and_everything_else_is_left_alone(
    tmp_path: Path,
) -> None:
    files: dict[str, str | bytes] = {
        "a.yml": "table: a\nrules: {}\n",
        "b.YAML": "table: b\nrules: {}\n",
        "shop/c.yml": "table: c\nrules: {}\n",
        ".hidden.yml": "nonsense",
        ".git/d.yml": "nonsense",
        "README.md": "nonsense",
        "e.yml.orig": "nonsense",
        "folder.yml/.keep": "",
    }

    assert set(read_rules(written(tmp_path, files))) == {table("a"), table("b"), table("c")}


def test_an_empty_folder_has_no_rules(tmp_path: Path) -> None:
    assert read_rules(tmp_path) == {}


def test_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    problem = refused(tmp_path / "constraints")

    assert "no folder" in problem.message
    assert problem.path == tmp_path / "constraints"


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + ORDERS.replace("\n", "\r\n").encode()

    rules = read_rules(written(tmp_path, {"orders.yml": content}))

    assert len(rules[table("shop.orders")].rules) == 3


def test_environment_variables_stand_in_for_parts_of_a_tables_name(tmp_path: Path) -> None:
    text = "table: ${CATALOG:-dev}.${SCHEMA}.orders\nrenamed_from: ${CATALOG:-dev}.old\nrules: {}\n"
    folder = written(tmp_path, {"t.yml": text})

    assert list(read_rules(folder, environ={"SCHEMA": "shop"})) == [table("dev.shop.orders")]
    (declared,) = read_rules(folder, environ={"SCHEMA": "s", "CATALOG": "prod"}).values()
    assert declared.table == table("prod.s.orders")
    assert declared.renamed_from == table("prod.old")


def test_environment_variables_stand_in_for_nothing_else(tmp_path: Path) -> None:
    text = "table: t\nrules: {a_ok: {check: \"a = '${SECRET}'\"}}\n"

    (rule,) = read_rules(written(tmp_path, {"t.yml": text}), environ={"SECRET": "x"})[
        table("t")
    ].rules

    assert "${SECRET}" in rule.declared


def test_a_path_table_keeps_its_path(tmp_path: Path) -> None:
    rules = read_rules(written(tmp_path, {"t.yml": "table: delta.`/data/orders`\nrules: {}\n"}))

    assert [name.path for name in rules] == ["/data/orders"]


def test_a_rule_set_comes_before_the_tables_own_rules(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "common_ids.yml": "description: ids\nrules:\n  id_present: {not_null: id}\n",
        "z.yml": "table: t\nuse: [common_ids]\nrules:\n  a_ok: {check: a > 0}\n",
        "a.yml": "table: u\nuse: [Common_IDs]\n",
    }

    rules = read_rules(written(tmp_path, files))

    assert [rule.name for rule in rules[table("t")].rules] == ["id_present", "a_ok"]
    assert [rule.name for rule in rules[table("u")].rules] == ["id_present"]
    assert rules[table("t")].rules[0].origin == Origin(tmp_path / "common_ids.yml", 3, 3)


@dataclass(frozen=True)
class Malformed:
    """A file and what must be said about it."""

    name: str
    content: str | bytes
    line: int | None
    words: tuple[str, ...]
    error: type[DeclarationError] = RuleFileError


def rule(*lines: str) -> str:
    """A table ``t`` with one rule ``a_ok``, whose entries are ``lines``; they start on line 4."""
    return "table: t\nrules:\n  a_ok:\n" + "".join(f"    {line}\n" for line in lines)


MALFORMED = [
    # Not a text in UTF-8.
    Malformed("latin 1", b"table: t\ndescription: caf\xe9\nrules: {}\n", 2, ("0xe9", "UTF-8")),
    Malformed(
        "utf-16", "table: t\nrules: {}\n".encode("utf-16"), 1, ("UTF-16", "Save it as UTF-8")
    ),
    Malformed("nul", b"table: t\nrules: {}\n\x00", 3, ("U+0000",)),
    Malformed("escape", b"table: t\nowner: \x1b[31mred\nrules: {}\n", 2, ("U+001B",)),
    Malformed("right to left", rule("check: 'a\u202e > 0'"), 4, ("U+202E", "invisible")),
    Malformed("isolates", rule("check: a \u2066> 0"), 4, ("U+2066",)),
    Malformed("second byte order mark", "table: t\n\ufeffrules: {}\n", 2, ("U+FEFF",)),
    Malformed("surrogate", b"table: \xed\xa0\x80\nrules: {}\n", 1, ("UTF-8",)),
    Malformed("binary", bytes(range(256)), 2, ("0x80", "UTF-8")),
    # Not YAML, or too much of it.
    Malformed("empty", "", 1, ("empty",)),
    Malformed("only a comment", "# rules to come\n", 1, ("empty",)),
    Malformed("only marks", "---\n---\n", 1, ("empty",)),
    Malformed(
        "tab", "table: t\nrules:\n\ta_ok:\n\t\tcheck: a > 0\n", 3, ("spaces, not with tabs",)
    ),
    Malformed("tab after spaces", "table: t\nrules:\n  a_ok:\n  \tcheck: a > 0\n", 4, ("tabs",)),
    Malformed(
        "open bracket", "table: t\nrules: {a_ok: {check: a > 0}\n", 3, ("not readable YAML",)
    ),
    Malformed("open quote", rule('check: "a > 0'), None, ("not readable YAML",)),
    Malformed("indentation", "table: t\n  rules: {}\n", 2, ("not readable YAML",)),
    Malformed("quoted first word", rule("check: 'a' = b"), 4, ("otherwise than SQL", ">-")),
    Malformed("back-quote first", rule("check: `order id` > 0"), 4, ("otherwise than SQL", ">-")),
    Malformed("colon within", rule("check: a = b: c"), 4, ("otherwise than SQL",)),
    Malformed("a future version", "%YAML 9.9\n---\ntable: t\n", 1, ("not readable YAML",)),
    Malformed("anchor", "table: t\nrules: &all {}\n", 2, ("anchor &all", "use:")),
    Malformed("alias", "table: t\nrules: *all\n", 2, ("alias *all",)),
    Malformed("merge key", "table: t\n<<: {rules: {}}\n", 2, ("unknown key '<<'",)),
    Malformed("laughs", "a: &a [x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n", 1, ("anchor",)),
    Malformed(
        "python object", "table: !!python/object/apply:os.system [ls]\n", 1, ("tag", "os.system")
    ),
    Malformed("local tag", rule("check: !sql a > 0"), 4, ("tag !sql",)),
    Malformed("binary tag", "table: !!binary dGFibGU=\nrules: {}\n", 1, ("tag",)),
    Malformed("nested", "a: " * 1 + "{b: " * 20 + "1" + "}" * 20, 1, ("nested more than",)),
    Malformed("ten thousand brackets", "table: " + "[" * 10_000, 1, ()),
    Malformed("list as a key", "? [a]\n: b\n", 1, ("key is not a text",)),
    Malformed("no key", "~: b\n", 1, ("key is not a text",)),
    # Not what rules look like.
    Malformed("a list", "- table: t\n  rules: {}\n", 1, ("a list", "table: shop.orders")),
    Malformed("a text", "amount > 0\n", 1, ("a single text",)),
    Malformed("no rules", "table: t\n", 1, ("declares no rules", "use")),
    Malformed("rules without value", "table: t\nrules:\n", 2, ("'rules' has no value",)),
    Malformed("table without value", "table:\nrules: {}\n", 1, ("'table' has no value",)),
    Malformed("table is null", "table: null\nrules: {}\n", 1, ("'table' has no value",)),
    Malformed("table is a list", "table: [a, b]\nrules: {}\n", 1, ("'table' must be a text",)),
    Malformed("table in capitals", "Table: t\nrules: {}\n", 1, ("'Table'", "Did you mean 'table'")),
    Malformed("a set with a gate", "gate: 5%\nrules: {}\n", 1, ("'gate' belongs to a table",)),
    Malformed("a set with a set", "use: [a]\nrules: {}\n", 1, ("may not use others",)),
    Malformed("a set without rules", "description: later\n", 1, ("'rules' is missing",)),
    Malformed("unknown key of a table", "table: t\nrulez: {}\n", 2, ("Did you mean 'rules'",)),
    Malformed("unknown key of a rule", rule("chek: a > 0"), 4, ("'chek'", "Did you mean 'check'")),
    Malformed("another tool's key", rule("expression: a > 0"), 4, ("Did you mean 'check'",)),
    Malformed("twice", "table: t\nrules: {}\ntable: u\n", 3, ("stands twice", "line 1")),
    Malformed(
        "twice but for case",
        "table: t\nrules:\n  Amount_OK: {check: a > 0}\n  amount_ok: {check: a > 1}\n",
        4,
        ("'amount_ok' stands twice", "line 3", "without regard to case"),
    ),
    Malformed("check twice", rule("check: a > 0", "Check: a > 1"), 5, ("stands twice", "line 4")),
    Malformed("rules as a list", "table: t\nrules:\n  - a_ok\n", 3, ("'rules' must be a mapping",)),
    Malformed("a bare rule", "table: t\nrules:\n  a_ok: a > 0\n", 3, ("'a_ok'", "check: ...")),
    Malformed("a rule without value", "table: t\nrules:\n  a_ok:\n", 3, ("'a_ok' has no value",)),
    Malformed("neither", rule("description: says nothing"), 3, ("neither check nor not_null",)),
    Malformed("both", rule("check: a > 0", "not_null: a"), 3, ("both check and not_null",)),
    Malformed("check without value", rule("check:"), 4, ("'check' has no value",)),
    Malformed("check is empty", rule("check: ''"), 4, ("'check' is empty",)),
    Malformed("check is blank", rule("check: '   '"), 4, ("'check' is empty",)),
    Malformed("check is a mapping", rule("check: {a: 1}"), 4, ("'check' must be a text",)),
    Malformed("not_null: true", rule("not_null: true"), 4, ("takes the column's name",)),
    Malformed("not_null with a list", rule("not_null: [a, b]"), 4, ("must be a text",)),
    Malformed("not_null with dots", rule("not_null: a..b"), 4, ("is not a column",)),
    Malformed("action", rule("check: a > 0", "on_violation: warning"), 5, ("Did you mean 'warn'",)),
    Malformed("no action", rule("check: a > 0", "on_violation: explode"), 5, ("quarantine, fail",)),
    Malformed("capital action", rule("check: a > 0", "on_violation: WARN"), 5, ("mean 'warn'",)),
    Malformed("gate above all", "table: t\ngate: 101%\nrules: {}\n", 2, ("'101%' is not a gate",)),
    Malformed("negative gate", "table: t\ngate: -1\nrules: {}\n", 2, ("'-1' is not a gate",)),
    Malformed("gate of nothing", "table: t\ngate: 1/0\nrules: {}\n", 2, ("'1/0' is not a gate",)),
    Malformed("gate in words", rule("check: a > 0", "gate: few"), 5, ("percentage", "1/3")),
    Malformed("gate is a list", rule("check: a > 0", "gate: [1]"), 5, ("is not a gate",)),
    Malformed("tags as text", rule("check: a > 0", "tags: money"), 5, ("must be a list",)),
    Malformed("tag of two words", rule("check: a > 0", "tags: [a b]"), 5, ("'a b'", "one word")),
    Malformed("tag without value", rule("check: a > 0", "tags: [a, ~]"), 5, ("empty item",)),
    Malformed("tag is a list", rule("check: a > 0", "tags: [[a]]"), 5, ("must be a text",)),
    Malformed("use as text", "table: t\nuse: ids\nrules: {}\n", 2, ("must be a list",)),
    Malformed(
        "unknown set", "table: t\nuse: [ids]\n", 2, ("no rule set 'ids'", "without `table:`")
    ),
    # Names and expressions.
    Malformed("four parts", "table: a.b.c.d\nrules: {}\n", 1, ("4 parts",), IdentifierError),
    Malformed("empty part", "table: a..b\nrules: {}\n", 1, ("not the name of a table",)),
    Malformed("statement in a table", "table: t; DROP TABLE u\nrules: {}\n", 1, ("not the name",)),
    Malformed(
        "comment in a table", "table: t--\nrules: {}\n---\ntable: 't -- x'\n", 4, ("not the",)
    ),
    Malformed("quote in a table", "table: t'\nrules: {}\n", 1, ("not the name of a table",)),
    Malformed("open back-quote", "table: shop.`orders\nrules: {}\n", 1, ("not the name",)),
    Malformed(
        "half a variable", "table: ${CATALOG.t\nrules: {}\n", 1, ("not the name of a table",)
    ),
    Malformed("variable not set", "table: ${NOWHERE}.t\nrules: {}\n", 1, ("NOWHERE", ":-default")),
    Malformed("hostile variable", "table: ${HOSTILE}.t\nrules: {}\n", 1, ("not the name",)),
    Malformed(
        "statement in a name",
        "table: t\nrules:\n  'x` CHECK (true); DROP TABLE t; --': {check: a > 0}\n",
        3,
        ("not a name for a rule",),
        IdentifierError,
    ),
    Malformed("blank name", "table: t\nrules:\n  ' ': {check: a > 0}\n", 3, (), IdentifierError),
    Malformed(
        "old name",
        rule("check: a > 0", "renamed_from: 'a;b'"),
        3,
        ("not a name for a rule",),
        IdentifierError,
    ),
    Malformed("no expression", rule("check: a >"), 4, (), ExpressionError),
    Malformed("statement", rule("check: a > 0; DROP TABLE t"), 4, (), ExpressionError),
    Malformed("sub-query", rule("check: a IN (SELECT 1)"), 4, (), ExpressionError),
    Malformed("swallowed", rule("check: a <> ' #1'"), 4, (), ExpressionError),
    # Renaming.
    Malformed(
        "renamed from a rule that is there",
        "table: t\nrules:\n  a_ok: {check: a > 0}\n  b_ok: {check: b > 0, renamed_from: A_OK}\n",
        4,
        ("'A_OK' is still declared",),
    ),
    Malformed(
        "renamed from itself", rule("check: a > 0", "renamed_from: a_ok"), 5, ("still declared",)
    ),
    Malformed(
        "table renamed from itself",
        "table: t\nrenamed_from: T\nrules: {}\n",
        2,
        ("still declared",),
    ),
    Malformed(
        "documents without a table",
        "table: t\nrules: {}\n---\nrules: {}\n",
        4,
        ("documents has no `table:`",),
    ),
    Malformed(
        "documents with a misspelled table",
        "table: t\nrules: {}\n---\ntabel: u\nrules: {}\n",
        4,
        ("Did you mean 'table'",),
    ),
    Malformed(
        "one table twice in a file",
        "table: shop.t\nrules: {}\n---\ntable: SHOP.T\nrules: {}\n",
        4,
        ("line 1, declares the same table",),
    ),
]


@pytest.mark.parametrize("case", MALFORMED, ids=lambda case: case.name)
def test_a_malformed_file_is_refused_with_its_line_and_what_to_do(
    tmp_path: Path, case: Malformed
) -> None:
    folder = written(tmp_path, {"the_file.yml": case.content})

    problem = refused(folder, {"HOSTILE": "x; DROP TABLE t"})

    assert type(problem) is case.error
    assert problem.path == tmp_path / "the_file.yml"
    if case.line is not None:
        assert problem.line == case.line
    assert problem.column is not None or case.line == 1
    for word in case.words:
        assert word in str(problem)
    assert "nothing was done" in problem.message
    assert "\n" not in problem.message


def test_the_column_of_a_key_and_of_a_value_are_told_apart(tmp_path: Path) -> None:
    assert refused(written(tmp_path, {"a.yml": rule("chek: a > 0")})).column == 5
    assert refused(written(tmp_path, {"a.yml": rule("check: a >")})).column == 12


def test_the_error_names_table_and_rule(tmp_path: Path) -> None:
    problem = refused(written(tmp_path, {"a.yml": rule("check: a > 0", "gate: few")}))

    assert (problem.table, problem.rule) == ("t", "a_ok")
    assert "Table t, rule 'a_ok'" in problem.message


def test_two_files_for_one_table_are_an_error_that_names_both(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a.yml": "# one\ntable: shop.orders\nrules: {}\n",
        "b.yml": "table: Shop.Orders\nrules: {}\n",
    }

    problem = refused(written(tmp_path, files))

    assert problem.path == tmp_path / "b.yml"
    assert f"{tmp_path / 'a.yml'}, line 2, declares the same table" in problem.message


def test_two_rule_sets_of_one_name_are_an_error(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"ids.yml": "rules: {}\n", "sub/IDs.yaml": "rules: {}\n"}

    assert "rule set of the same name" in refused(written(tmp_path, files)).message


def test_an_unknown_rule_set_is_an_error_with_a_suggestion(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "common_ids.yml": "rules: {}\n",
        "t.yml": "table: t\nuse:\n  - common_id\n",
    }

    problem = refused(written(tmp_path, files))

    assert (problem.line, problem.column) == (3, 5)
    assert problem.hint == "Did you mean 'common_ids'?"


def test_a_table_may_not_redefine_a_rule_of_its_rule_set(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "ids.yml": "rules:\n  id_present: {not_null: id}\n",
        "t.yml": "table: t\nuse: [ids]\nrules:\n  ID_present: {check: id > 0}\n",
    }

    problem = refused(written(tmp_path, files))

    assert (problem.path, problem.line) == (tmp_path / "t.yml", 4)
    assert f"{tmp_path / 'ids.yml'}, line 2" in problem.message


def test_two_rule_sets_may_not_bring_the_same_rule(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "ids.yml": "rules:\n  id_present: {not_null: id}\n",
        "keys.yml": "rules:\n  id_present: {not_null: id}\n",
        "t.yml": "table: t\nuse: [ids, keys]\n",
    }

    assert "was taken in before" in refused(written(tmp_path, files)).message


def test_a_table_renamed_from_one_that_is_declared_is_an_error(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a.yml": "table: new\nrenamed_from: old\nrules: {}\n",
        "b.yml": "table: old\nrules: {}\n",
    }

    problem = refused(written(tmp_path, files))

    assert (problem.path, problem.line) == (tmp_path / "a.yml", 2)
    assert "old is still declared" in problem.message


def test_a_file_that_is_not_there_any_more_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "gone.yml").symlink_to(tmp_path / "nowhere")

    assert "cannot be read" in refused(tmp_path).message


def test_all_problems_are_surveyed_and_what_is_sound_is_still_read(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a.yml": "table: a\nrules:\n  x_ok: {check: x >}\n  y_ok: {check: y}\n  z_ok: {chek: z}\n",
        "b.yml": "table: b\nrules:\n  x_ok: {check: x >}\n  y_ok: {check: y > 0}\n",
        "c.yml": "table: [\n",
        "d.yml": "table: d\nuse: [c]\n",
    }

    rules, problems = survey_rules(written(tmp_path, files), environ={})

    assert [rule.name for rule in rules[table("b")].rules] == ["y_ok"]
    places = [(problem.path.name if problem.path else "", problem.line) for problem in problems]
    assert places == [("a.yml", 5), ("b.yml", 3), ("c.yml", 2)]


def test_an_error_says_how_many_more_there_are(tmp_path: Path) -> None:
    text = "table: t\nrules:\n  a_ok: {check: a >}\n  b_ok: {check: b >}\n  c_ok: {check: c >}\n"

    assert (
        "2 more: `deltacheck lint` lists them" in refused(written(tmp_path, {"t.yml": text})).hint
    )


@st.composite
def mangled(draw: st.DrawFn) -> bytes:
    """The file of orders with a few pieces cut out, doubled or replaced."""
    content = ORDERS.encode()
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 40)))
        piece = draw(
            st.one_of(
                st.sampled_from([b"", b"\t", b"\n", b"- ", b": ", b"{", b"[", b"'", b"&a ", b"*a"]),
                st.binary(max_size=4),
                st.just(content[start:end] * 2),
            )
        )
        content = content[:start] + piece + content[end:]
    return content


@settings(max_examples=300, deadline=None)
@given(st.one_of(mangled(), st.binary(max_size=60)))
def test_no_file_whatever_gives_anything_but_rules_or_errors_with_their_place(
    content: bytes,
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "orders.yml"
        path.write_bytes(content)

        rules, problems = survey_rules(folder, environ={})

    assert rules or problems
    for problem in problems:
        assert problem.path == path
        assert problem.message
        assert "\n" not in problem.message


def test_a_name_with_a_variable_is_remembered_as_written(tmp_path: Path) -> None:
    """A new migration can name the table as the file does, whatever this environment has."""
    text = 'table: "${CATALOG:-dev}.shop.orders"\nrules: {}\n'
    (tmp_path / "orders.yml").write_text(text, encoding="utf-8")
    (name,) = read_rules(tmp_path, environ={"CATALOG": "prod"})
    assert str(name) == "prod.shop.orders"
    assert name.template == "${CATALOG:-dev}.shop.orders"
