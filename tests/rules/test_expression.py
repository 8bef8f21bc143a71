"""What a rule's expression is understood to be, without Spark."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from deltacheck.errors import ExpressionError, IdentifierError
from deltacheck.rules.expression import (
    Expression,
    check_name,
    not_null,
    parse_rule,
    same_rule,
    violator_predicate,
)
from tests.rules import hostile, tricky
from tests.rules.random_rules import Bool, rules


def stored(text: str) -> str:
    """What Delta is given to store."""
    return parse_rule(text).stored


# What is refused


@pytest.mark.parametrize(("text", "words"), hostile.RULES)
def test_a_malformed_or_hostile_rule_is_refused_with_its_reason_and_a_remedy(
    text: str, words: str
) -> None:
    """No text but one boolean expression about one row gets past the parser."""
    with pytest.raises(ExpressionError) as caught:
        parse_rule(text, table="shop.orders", rule="bad")
    error = caught.value
    assert any(word in error.message for word in words.split("|")), error.message
    assert error.message.startswith("The expression of rule bad of shop.orders ")
    assert error.hint
    assert (error.table, error.rule, error.exit_code) == ("shop.orders", "bad", 1)
    assert error.__cause__ is None


@pytest.mark.parametrize(("text", "words"), hostile.COLUMNS)
def test_a_malformed_or_hostile_column_of_a_not_null_rule_is_refused(text: str, words: str) -> None:
    """A not_null rule takes a column's name and nothing else."""
    with pytest.raises((IdentifierError, ExpressionError)) as caught:
        not_null(text, table="shop.orders", rule="bad")
    assert any(word in caught.value.message for word in words.split("|")), caught.value.message
    assert (caught.value.table, caught.value.rule) == ("shop.orders", "bad")
    assert caught.value.hint


@pytest.mark.parametrize(("text", "words"), hostile.NAMES)
def test_a_malformed_or_hostile_name_is_refused(text: str, words: str) -> None:
    """A name that could end the statement it stands in, or that people cannot read, is none."""
    with pytest.raises(IdentifierError) as caught:
        check_name(text, table="shop.orders")
    assert any(word in caught.value.message for word in words.split("|")), caught.value.message
    assert caught.value.message.isascii()
    assert caught.value.table == "shop.orders"


def test_there_are_at_least_150_hostile_inputs_and_no_two_alike() -> None:
    """The tables of hostile inputs stay what they promise to be."""
    inputs = [text for text, _ in (*hostile.RULES, *hostile.COLUMNS, *hostile.NAMES)]
    assert len(inputs) >= 250
    assert len({text for text, _ in hostile.RULES}) == len(hostile.RULES)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_no_text_whatever_gets_through_or_breaks_the_parser(text: str) -> None:
    """Any text is a rule or an ExpressionError, and a rule is spelled anew, on one line."""
    try:
        rule = parse_rule(text)
    except ExpressionError:
        return
    assert rule.stored.isprintable()
    assert stored(rule.stored) == rule.stored


_FRAGMENTS = """
    a b `c` 'x' "y" 1 1.5 ( ) [ ] , . ; -- /* */ \\ ' ` " ${ } -> :: : ? * = < > + - NOT AND OR
    IN IS NULL SELECT FROM CASE WHEN THEN END CAST AS INT f( max( DROP TABLE
"""


@settings(deadline=None)
@given(st.lists(st.sampled_from(_FRAGMENTS.split()), max_size=12).map(" ".join))
def test_fragments_of_sql_in_any_order_are_refused_or_made_harmless(text: str) -> None:
    """What is stored has balanced brackets and neither statement, comment nor variable."""
    try:
        rule = parse_rule(text)
    except ExpressionError:
        return
    bare = re.sub(r"'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`", "", rule.stored)
    assert not re.search(r"--|/\*|;|\$\{|'|\"|`|->|::", bare)
    assert "${" not in rule.stored
    depth = 0
    for char in bare:
        depth += (char == "(") - (char == ")")
        assert depth >= 0
    assert depth == 0


# What is rewritten


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("amount>0", "amount > 0"),
        ("  amount\n>\t0  ", "amount > 0"),
        ("amount > 0 -- always", "amount > 0"),
        ("/* why */ amount > /* x */ 0", "amount > 0"),
        ("not(a)or b and c", "NOT (a) OR b AND c"),
        ("a == 1 or a <> 2 or a !> 3 or a !< 4", "a = 1 OR a != 2 OR a <= 3 OR a >= 4"),
        ("!a", "NOT a"),
        ("a::int > 1", "CAST(a AS INT) > 1"),
        ("a?::int > 1", "TRY_CAST(a AS INT) > 1"),
        ("-1::string = s", "CAST(-1 AS STRING) = s"),
        ("-a::string = s", "-CAST(a AS STRING) = s"),
        ("s.t::array<array<int>> is null", "CAST(s.t AS ARRAY<ARRAY<INT > >) IS NULL"),
        ("a << 1 > 0", "shiftleft(a, 1) > 0"),
        ("a + 1 >> b & 3 > 0", "shiftright(a + 1, b) & 3 > 0"),
        ("a >>> 1 > 0", "shiftrightunsigned(a, 1) > 0"),
        ("x > 1.5f", "x > CAST('1.5' AS FLOAT)"),
        ("x > -1e-3F", "x > CAST('-1E-3' AS FLOAT)"),
        ("s = r'\\d'", "s = '\\\\d'"),
        ("s = 'It''s'", "s = 'It\\'s'"),
        ("s = 'It' 's'", "s = 'Its'"),
        ('s = "it\'s"', "s = 'it\\'s'"),
        ('s = "say ""x"""', "s = 'say \"x\"'"),
        ("s = 'a\nb\t'", "s = 'a\\nb\\t'"),
        ("s = '\\101\\u00e9'", "s = 'Aé'"),
        ("s LIKE 'a\\_%'", "s LIKE 'a\\\\_%'"),
        ("s = '${x}'", "s = '\\u0024{x}'"),
        ("s = '\u202e'", "s = '\\u202e'"),
        ("s REGEXP 'a'", "s RLIKE 'a'"),
        ("d > current_date", "d > current_date()"),
        ("user = 'x'", "`user` = 'x'"),
        ("order > 1", "`order` > 1"),
        ("größe > 1", "`größe` > 1"),
        ("2nd > 1", "`2nd` > 1"),
        ("end > start", "`end` > start"),
        ("ſelect = 1", "`ſelect` = 1"),
        ("a - -1 > - - b", "a - -1 > - -b"),
        ("f ( a , 'x' ) [ 0 ] . b", "f(a, 'x')[0].b"),
        ("d > date'2020-01-01'", "d > DATE '2020-01-01'"),
        ("raw = x'1f'", "raw = X'1f'"),
        ("d > now() - interval 1 day 2 hours", "d > now() - INTERVAL 1 DAY 2 HOURS"),
        ("a=1E3 or a=1l or a=1.0bd", "a = 1E3 OR a = 1L OR a = 1.0BD"),
        ("cast(a as integer)=1", "CAST(a AS INT) = 1"),
    ],
)
def test_a_rule_is_respelled_so_that_delta_stores_what_was_meant(text: str, expected: str) -> None:
    """Tokens are kept; what Delta would misread is said in other words."""
    assert stored(text) == expected


@pytest.mark.parametrize("text", tricky.RULES)
def test_what_is_stored_is_stable_and_the_same_rule(text: str) -> None:
    """Reading the stored text again changes nothing, and lint can read it too."""
    rule = parse_rule(text)
    again = parse_rule(rule.stored)
    assert again.stored == rule.stored
    assert again.canonical == rule.canonical
    assert again.columns == rule.columns
    assert again.conjuncts == rule.conjuncts
    assert isinstance(rule.tree, exp.Expression)


def as_delta_respaces(text: str) -> str:
    """The text as Delta's own lexer stores it: its tokens, joined with single spaces."""
    tokens = re.findall(
        r"<=>|<=|>=|<>|!=|==|\|\||'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`"
        r"|(?:\d+\.\d*|\.\d+|\d+)(?:E[+-]?\d+)?(?:BD|[DLSY])?(?!\w)|\w+|\S",
        text,
    )
    return " ".join(tokens)


@pytest.mark.parametrize("text", tricky.RULES)
def test_text_that_delta_has_respaced_is_the_same_rule(text: str) -> None:
    """``status`` reports no drift only because Delta spells a rule its own way."""
    assert same_rule(as_delta_respaces(stored(text)), text)


# What is understood


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("amount > 0", [("amount",)]),
        ("b > a AND A < B", [("b",), ("a",)]),
        ("address.zip = '1' AND Address.`Zip` = '2'", [("address", "zip")]),
        ("`a.b` = 1 AND a.b = 1", [("a.b",), ("a", "b")]),
        ("`a``b` = 1", [("a`b",)]),
        ("arr[i].x.y > 0", [("arr",), ("i",)]),
        ("m['k'] > 0 AND m.k > 0", [("m",), ("m", "k")]),
        ("lower(name) = 'x' AND f(a.b).c > 1", [("name",), ("a", "b")]),
        ("größe > 1 AND `order id` = 2", [("größe",), ("order id",)]),
        ("date_add(day, 1) > d AND date_add(DAY, 1, d) > d", [("day",), ("d",)]),
        ("extract(year FROM d) = year", [("d",), ("year",)]),
        ("trim(both FROM s) = both", [("s",), ("both",)]),
        ("interval > 1 AND interval 1 day > x", [("interval",), ("x",)]),
        ("date > date '2020-01-01' AND timestamp > 1", [("date",), ("timestamp",)]),
        ("current_date > d", [("d",)]),
        ("CASE WHEN a THEN b ELSE c END", [("a",), ("b",), ("c",)]),
        ("struct(a AS b).b = 1", [("a",)]),
        ("1 = 1", []),
    ],
)
def test_the_columns_a_rule_reads(text: str, columns: list[tuple[str, ...]]) -> None:
    """Paths in order of first use, as written, without regard to case."""
    assert list(parse_rule(text).columns) == columns


@pytest.mark.parametrize(
    ("text", "conjuncts"),
    [
        ("a > 0", ["a > 0"]),
        ("a > 0 AND b > 0 AND c", ["a > 0", "b > 0", "c"]),
        ("((a > 0 AND (b AND c)) AND NOT d)", ["a > 0", "b", "c", "NOT d"]),
        ("a OR b AND c", ["a OR b AND c"]),
        ("(a OR b) AND c", ["a OR b", "c"]),
        ("a BETWEEN 1 AND 2 AND b", ["a BETWEEN 1 AND 2", "b"]),
        ("NOT (a AND b)", ["NOT (a AND b)"]),
        ("CASE WHEN a AND b THEN c END", ["CASE WHEN a AND b THEN c END"]),
    ],
)
def test_a_top_level_and_is_taken_apart(text: str, conjuncts: list[str]) -> None:
    """Each part of a top-level AND can let Delta skip files on its own."""
    assert list(parse_rule(text).conjuncts) == conjuncts


def test_functions_are_listed_for_the_check_against_spark() -> None:
    """Operators that became functions are functions; what only looks like one is not."""
    rule = parse_rule(
        "Lower(a) = `TRIM`(b) AND c >> 1 = 0 AND my_own(d) AND timestampadd(DAY, 1, t) > t"
    )
    assert rule.functions == {"lower", "trim", "shiftright", "my_own"}


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        ("d <= current_date", True),
        ("ts <= NOW()", True),
        ("ts <= current_timestamp()", True),
        ("t <= unix_timestamp()", True),
        ("t <= unix_timestamp(ts)", False),
        ("`current_date` > d", False),
        ("now > d", False),
        ("d <= date '2020-01-01'", False),
    ],
)
def test_a_rule_that_reads_the_clock_says_so(text: str, clock: bool) -> None:
    """The clock is allowed, and lint warns about it."""
    assert parse_rule(text).uses_clock is clock


@pytest.mark.parametrize(
    ("column", "expected", "path"),
    [
        ("order_id", "order_id IS NOT NULL", ("order_id",)),
        ("address.zip", "address.zip IS NOT NULL", ("address", "zip")),
        ("`a.b`.c", "`a.b`.c IS NOT NULL", ("a.b", "c")),
        ("order", "`order` IS NOT NULL", ("order",)),
        ("case", "`case` IS NOT NULL", ("case",)),
        ("null", "`null` IS NOT NULL", ("null",)),
        ("current_date", "`current_date` IS NOT NULL", ("current_date",)),
        ("größe", "`größe` IS NOT NULL", ("größe",)),
        ("`order id`", "`order id` IS NOT NULL", ("order id",)),
        ("`it``s`", "`it``s` IS NOT NULL", ("it`s",)),
        ("2nd", "`2nd` IS NOT NULL", ("2nd",)),
        ("order-id", "`order-id` IS NOT NULL", ("order-id",)),
    ],
)
def test_a_not_null_rule_is_its_columns_is_not_null(
    column: str, expected: str, path: tuple[str, ...]
) -> None:
    """Quotes are added where a name needs them."""
    rule = not_null(column)
    assert (rule.stored, rule.columns, rule.conjuncts) == (expected, (path,), (expected,))


@pytest.mark.parametrize(
    "name",
    ["amount_positive", "Amount Positive", "größe-ok", "1st", "check", "a.b", "x" * 255, "金額"],
)
def test_a_name_that_people_can_read_is_kept_as_it_is(name: str) -> None:
    """Spaces, dots, dashes and letters of any script are fine."""
    assert check_name(name) == name


def test_the_violator_predicate_has_one_pair_for_each_comparison() -> None:
    """False and NULL are told apart for each part, so that Delta can push both down."""
    assert violator_predicate(parse_rule("a > 0 AND (b OR c IS NULL)")) == (
        "(NOT (a > 0) OR (a > 0) IS NULL) OR (NOT (b OR c IS NULL) OR (b OR c IS NULL) IS NULL)"
    )


@pytest.mark.parametrize(
    "part",
    ["a / b > 1", "arr[0] > 1", "s::int > 1", "f(a)", "-a > 1", "s LIKE 'a%'", "s RLIKE 'a|b'"],
)
def test_what_no_statistics_tell_is_named_only_once_in_the_violator_predicate(part: str) -> None:
    """No file could be skipped, and Spark would evaluate it first, before what guards it."""
    rule, other = parse_rule(f"b > 0 AND (c = 0 OR {part})"), parse_rule("d > 0")
    assert violator_predicate(rule) == f"({rule.stored}) IS NOT TRUE"
    assert violator_predicate(other, rule) == f"(d > 0) IS NOT TRUE OR ({rule.stored}) IS NOT TRUE"


def test_the_violator_predicate_of_rules_that_statistics_can_prove_has_all_their_pairs() -> None:
    """So that a file is skipped that is clean by all of them."""
    rules = parse_rule("a > 0 AND b IS NOT NULL"), parse_rule("c IN (1, 2)")
    assert violator_predicate(*rules) == " OR ".join(map(violator_predicate, rules))


@pytest.mark.parametrize(
    "text",
    [
        " + ".join(["a"] * 199) + " > 0",
        " || ".join(["s"] * 199) + " = 'x'",
        "a" + " & b | c + d" * 60 + " > 0",
        " AND ".join(["a > 1"] * 1500),
        " OR ".join(["a > 1"] * 1500),
        f"a IN ({', '.join(map(str, range(3000)))})",
        "arr" + "[0]" * 198 + " > 0",
        "(" * 23 + "a" + ")" * 23 + " > 0",
        "f(" * 23 + "a" + ")" * 23 + " > 0",
        "CASE WHEN " * 23 + "a" + " THEN b END" * 23,
        "a" + "::int" * 24 + " > 0",
    ],
    ids=lambda text: text[:20],
)
def test_long_rules_are_read_to_the_end(text: str) -> None:
    """What is within the limits is read by the parser and by sqlglot."""
    rule = parse_rule(text)
    assert same_rule(rule.stored, text)
    assert rule.tree.find(exp.Column) is not None


def test_an_expression_is_equal_to_another_of_the_same_text() -> None:
    """Expressions are values."""
    assert parse_rule("a > 0") == parse_rule("a > 0")
    assert isinstance(hash(parse_rule("a > 0")), int)
    assert parse_rule("a > 0") != parse_rule("a > 1")


# What is the same

SAME = [
    ("amount > 0", "AMOUNT>0"),
    ("amount > 0", "((amount)) > (0)"),
    ("a != 1", "a <> 1"),
    ("a = 1", "a == 1"),
    ("a-1 > 0", "a - 1 > 0"),
    ("a > -1", "a > - 1"),
    ("a AND (b AND c)", "(a AND b) AND c"),
    ("(a OR b) OR c", "a OR b OR c"),
    ("a OR b AND c", "a OR (b AND c)"),
    ("NOT a = b", "NOT (a = b)"),
    ("! a", "NOT a"),
    ("a = b IS NULL", "(a = b) IS NULL"),
    ("a NOT IN (1)", "NOT a IN (1)"),
    ("`amount` > 0", "amount > 0"),
    ("length(a) < 5", "LENGTH ( `A` ) < 5"),
    ("a::int = 1", "CAST(a AS INTEGER) = 1"),
    ("a >> 1 = 1", "shiftright(a, 1) = 1"),
    ("s = 'it\\'s'", 's = "it\'s"'),
    ("s = 'it\\'s'", "s = 'it''s'"),
    ("s = 'ab'", "s = 'a' 'b'"),
    ("s = 'A'", "s = '\\101'"),
    ("s RLIKE '\\\\d'", "s regexp r'\\d'"),
    ("d < current_date", "d < CURRENT_DATE()"),
    ("a > 1 -- x", "a > 1"),
    ("a = 1l", "a = 1L"),
    ("order > 1", "`ORDER` > 1"),
    ("a !> 1", "a <= 1"),
]

DIFFERENT = [
    ("a > 0", "a >= 0"),
    ("a > 0", "b > 0"),
    ("a > 1", "a > 1.0"),
    ("a > 1", "a > 1L"),
    ("a > 1.0", "a > 1.00"),
    ("a > 1", "a > -1"),
    ("s = 'a'", "s = 'A'"),
    ("s = 'a'", "s = 'a '"),
    ("s = 'a'", "s = `a`"),
    ("s = 'a b'", "s = 'a  b'"),
    ("s = 'It\\'s'", "s = 'It' 's'"),
    ("s = 'a--b'", "s = 'a'"),
    ("a AND b", "a OR b"),
    ("a AND b", "b AND a"),
    ("(a OR b) AND c", "a OR b AND c"),
    ("NOT (a AND b)", "NOT a AND b"),
    ("(NOT a) = b", "NOT a = b"),
    ("a = (b IS NULL)", "a = b IS NULL"),
    ("a - (b - c) > 0", "a - b - c > 0"),
    ("a - 1 > 0", "a + -1 > 0"),
    ("`a.b` > 0", "a.b > 0"),
    ("`current_date` > d", "current_date > d"),
    ("`user` = 'x'", "user.x = 'x'"),
    ("a = b", "a <=> b"),
    ("a LIKE 'x'", "a ILIKE 'x'"),
    ("a LIKE 'x!%' ESCAPE '!'", "a LIKE 'x!%'"),
    ("a IS NOT TRUE", "a IS NOT FALSE"),
    ("CAST(a AS INT) = 1", "TRY_CAST(a AS INT) = 1"),
    ("CAST(a AS INT) = 1", "CAST(a AS BIGINT) = 1"),
    ("arr[0] = 1", "arr[1] = 1"),
    ("d > DATE '2020-01-01'", "d > TIMESTAMP '2020-01-01'"),
    ("d > DATE '2020-01-01'", "d > '2020-01-01'"),
    ("a BETWEEN 1 AND 2", "a NOT BETWEEN 1 AND 2"),
    ("a IN (1, 2)", "a IN (2, 1)"),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_two_spellings_of_one_rule_are_the_same(left: str, right: str) -> None:
    """No false drift."""
    assert same_rule(left, right)
    assert same_rule(right, left)


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_two_rules_are_not_the_same(left: str, right: str) -> None:
    """No missed change."""
    assert not same_rule(left, right)
    assert not same_rule(right, left)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("exists(a, x -> x > 0)", "EXISTS ( A , X->X>0 )", False),
        ("a IN (SELECT 1)", "a  in (select 1)", True),
        ("rand() > 0.5", "RAND ( ) > 0.5", True),
        ("rand() > 0.5", "rand() > 0.6", False),
        ("rand() > a", "rand() > 'a'", False),
        ("exists(a, x -> x > 0)", "exists(a,  x -> x > 0)", True),
        ("'broken", "'broken", True),
        ("'broken", "'Broken", False),
        ("", "", True),
        ("a > 0", "", False),
    ],
)
def test_texts_that_are_no_rules_compare_by_their_tokens(left: str, right: str, same: bool) -> None:
    """A table can hold what deltacheck would not declare; comparing it never fails."""
    assert same_rule(left, right) is same


@settings(deadline=None)
@given(rules, st.integers())
def test_however_a_rule_is_spelled_it_is_the_same(rule: Bool, seed: int) -> None:
    """Spaces, comments, case, quotes, signs and redundant parentheses change nothing."""
    plain, other = rule.plain(), rule.spelled(random.Random(seed))
    assert parse_rule(plain).canonical == parse_rule(other).canonical
    assert parse_rule(plain).columns == tuple(
        tuple(part.lower() for part in path) for path in parse_rule(other).columns
    )


@settings(deadline=None)
@given(rules, st.data())
def test_a_rule_in_which_one_token_changes_is_another(rule: Bool, data: st.DataObject) -> None:
    """Whatever is changed is seen."""
    words = rule.words()
    index = data.draw(st.integers(0, len(words) - 1))
    changed = {
        "column": "another",
        "function": "another",
        "AND": "OR",
        "OR": "AND",
        "operator": "<=>" if words[index].text != "<=>" else "=",
    }
    word = words[index]
    change = changed.get(word.kind) or changed.get(word.text)
    if change is None or "BETWEEN" in rule.plain():
        return
    texts = [word.text for word in words]
    texts[index] = change
    try:
        other = parse_rule(" ".join(texts))
    except ExpressionError:
        return
    assert other.canonical != parse_rule(rule.plain()).canonical


@settings(deadline=None)
@given(rules)
def test_what_random_rules_store_is_stable(rule: Bool) -> None:
    """Storing what was stored changes nothing, and sqlglot reads it."""
    first = parse_rule(rule.plain())
    assert parse_rule(first.stored).stored == first.stored
    assert same_rule(as_delta_respaces(first.stored), rule.plain())
    assert isinstance(first.tree, exp.Expression)


def test_an_expression_says_what_it_is() -> None:
    """All of it at once, as the parts of deltacheck use it."""
    rule: Expression = parse_rule("Amount::int>0 AND status<>'it''s'")
    assert rule.text == "Amount::int>0 AND status<>'it''s'"
    assert rule.stored == "CAST(Amount AS INT) > 0 AND status != 'it\\'s'"
    assert rule.columns == (("Amount",), ("status",))
    assert rule.conjuncts == ("CAST(Amount AS INT) > 0", "status != 'it\\'s'")
    assert rule.functions == frozenset()
    assert not rule.uses_clock
    assert isinstance(rule.tree, exp.And)
