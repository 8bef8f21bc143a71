"""A quarantine table's columns and its name follow from its source's."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from deltacheck.config import Environment
from deltacheck.errors import ConfigError, QuarantineError
from deltacheck.names import TableName
from deltacheck.quarantine.layout import (
    OWN,
    check_apart,
    columns_ddl,
    is_whole,
    layout,
    needs_mapping,
    origin,
    plain,
    quarantine_name,
    value_of,
)

ORDERS = TableName.parse("shop.orders")


def struct(**columns: object) -> StructType:
    """A schema, from column names to types."""
    return StructType([StructField(name, dtype) for name, dtype in columns.items()])  # type: ignore[arg-type]


def grown(held: StructType, *sources: StructType) -> StructType:
    """What a quarantine's columns become as its source takes on one schema after the other."""
    for source in sources:
        held = StructType([*held.fields, *layout(source, held, ORDERS).missing])
    return held


def test_a_new_quarantine_has_the_columns_of_its_source() -> None:
    """Nothing is there yet, so all is missing, under its own names."""
    fit = layout(struct(id=LongType(), status=StringType()), StructType([]), ORDERS)

    assert fit.columns == {"id": "id", "status": "status"}
    assert [one.name for one in fit.missing] == ["id", "status"]
    assert fit.foreign == ()


def test_columns_are_nullable_and_plain() -> None:
    """Neither NOT NULL nor a default of the source reaches its quarantine, at any depth."""
    inner = StructType([StructField("x", LongType(), False, {"comment": "c"})])
    source = StructType(
        [
            StructField("a", ArrayType(inner, False), False, {"CURRENT_DEFAULT": "array()"}),
            StructField("b", inner, False),
        ]
    )

    missing = layout(source, StructType([]), ORDERS).missing

    assert all(one.nullable and not one.metadata for one in missing)
    assert missing[0].dataType == ArrayType(struct(x=LongType()), True)
    assert missing[1].dataType == plain(inner)


def test_a_column_that_the_source_gained_is_missing_and_one_that_it_lost_is_foreign() -> None:
    """The quarantine keeps what it has."""
    fit = layout(struct(ID=LongType(), b=StringType()), struct(id=LongType(), a=LongType()), ORDERS)

    assert fit.columns == {"ID": "id", "b": "b"}
    assert [one.name for one in fit.missing] == ["b"]
    assert fit.foreign == ("a",)


def test_a_changed_type_goes_on_beside_the_old_one_and_comes_back_to_it() -> None:
    """Each type keeps its column, whatever the source does."""
    first, second = struct(a=StringType()), struct(a=DoubleType())
    held = grown(StructType([]), first, second)

    assert held.names == ["a", "a_double"]
    assert layout(second, held, ORDERS).columns == {"a": "a_double"}
    assert layout(first, held, ORDERS).columns == {"a": "a"}
    assert layout(second, held, ORDERS).missing == ()
    assert [origin(one) for one in held.fields] == ["a", "a"]


def test_two_columns_never_share_one_of_the_quarantine() -> None:
    """A source column that has the name of another one's second column gets one of its own, and
    both keep theirs."""
    both = struct(a=DoubleType(), a_double=DoubleType())
    held = grown(StructType([]), struct(a=StringType()), struct(a=DoubleType()), both)

    fit = layout(both, held, ORDERS)

    assert fit.columns == {"a": "a_double", "a_double": "a_double_double"}
    assert fit.missing == ()
    reverse = grown(StructType([]), struct(a=StringType(), a_double=DoubleType()), both)
    assert layout(both, reverse, ORDERS).columns == {"a": "a_double_2", "a_double": "a_double"}


@pytest.mark.parametrize("name", ["_deltacheck_rules", "_DELTACHECK_State"])
def test_a_column_with_a_name_of_our_own_is_refused(name: str) -> None:
    """In any case of its letters."""
    with pytest.raises(QuarantineError, match=name):
        layout(struct(**{name: StringType()}), StructType([]), ORDERS)


def test_any_other_name_of_that_beginning_is_an_ordinary_one() -> None:
    """Only the names that a quarantine has are kept for it."""
    assert layout(struct(_deltacheck_x=LongType()), StructType([]), ORDERS).columns


def test_a_value_of_another_type_is_read_where_spark_casts_it() -> None:
    """It counts as the row's value only if nothing is lost by the cast."""
    held = grown(StructType([]), struct(a=StringType()), struct(a=DoubleType()))
    source = struct(a=DoubleType()).fields[0]
    fit = layout(struct(a=DoubleType()), held, ORDERS)

    assert value_of(fit, source) == "coalesce(`a_double`, try_cast(`a` AS double))"
    assert is_whole(fit, source) == (
        "(`a` IS NULL OR try_cast(try_cast(`a` AS double) AS string) <=> `a`)"
    )


def test_a_struct_is_never_cast_to_another() -> None:
    """Spark would match their fields by position."""
    old, new = struct(s=struct(x=LongType())), struct(s=struct(y=LongType()))
    held = grown(StructType([]), old, new)
    fit = layout(new, held, ORDERS)

    assert value_of(fit, new.fields[0]) == "`s_struct_y_bigint`"
    assert is_whole(fit, new.fields[0]) == "(`s` IS NULL)"


def test_own_columns_come_first_and_comments_are_told() -> None:
    """Delta keeps statistics for the first columns; a second column says whose it is."""
    held = grown(StructType([]), struct(a=StringType()), struct(a=IntegerType()))

    assert OWN.names[0] == "_deltacheck_rules"
    assert columns_ddl((held.fields[1],)) == "`a_int` int COMMENT 'deltacheck: values of a'"


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        (struct(a=LongType()), False),
        (struct(**{"a b": LongType()}), True),
        (struct(s=struct(**{"x,y": LongType()})), True),
        (struct(s=ArrayType(struct(**{"x=y": LongType()}))), True),
        (struct(**{"größe.m": LongType()}), False),
    ],
)
def test_column_mapping_is_on_where_a_name_needs_it(schema: StructType, wanted: bool) -> None:
    """At any depth."""
    assert needs_mapping(schema) is wanted


@pytest.mark.parametrize(
    ("table", "pattern", "wanted"),
    [
        ("shop.orders", None, "shop.orders_quarantine"),
        ("orders", None, "orders_quarantine"),
        ("main.shop.`my orders`", None, "main.shop.`my orders_quarantine`"),
        ("delta.`/data/orders`", None, "delta.`/data/orders_quarantine`"),
        ("shop.orders", "{schema}_bad.{table}", "shop_bad.orders"),
        ("main.shop.orders", "{catalog}.{schema}_bad.{table}", "main.shop_bad.orders"),
        ("main.shop.orders", "pii.bad.{schema}_{table}", "pii.bad.shop_orders"),
        ("shop.orders", "{table}", "orders"),
        ("shop.`a.b`", "bad.{table}", "bad.`a.b`"),
        ("shop.`a``b`", "bad.{table}", "bad.`a``b`"),
        ("shop.orders", "delta.`/bad/{schema}/{table}`", "delta.`/bad/shop/orders`"),
        ("delta.`/data/orders`", "delta.`{path}/_bad`", "delta.`/data/orders/_bad`"),
        ("delta.`s3://b/orders`", "delta.`{path}_bad`", "delta.`s3://b/orders_bad`"),
    ],
)
def test_a_pattern_leads_to_another_schema_catalog_or_folder(
    table: str, pattern: str | None, wanted: str
) -> None:
    """Each placeholder stands for a part of the table's name."""
    assert str(quarantine_name(TableName.parse(table), pattern)) == wanted


@pytest.mark.parametrize(
    ("table", "pattern", "words"),
    [
        ("shop.orders", "{schema}_bad.rows", "one place"),
        ("shop.orders", "bad.everything", "one place"),
        ("shop.orders", "{schema}.{table}", "itself"),
        ("SHOP.orders", "shop.{table}", "itself"),
        ("orders", "{schema}_bad.{table}", "schema"),
        ("shop.orders", "{catalog}.{schema}.{table}", "catalog"),
        ("delta.`/data/orders`", "bad.{table}", "table"),
        ("shop.orders", "delta.`{path}_bad`", "path"),
        ("shop.orders", "/bad/{table}", "no name"),
        ("shop.orders", "a.b.c.{table}", "no name"),
    ],
)
def test_a_pattern_that_leads_nowhere_is_refused(table: str, pattern: str, words: str) -> None:
    """Before anything is done."""
    with pytest.raises(ConfigError, match=words):
        quarantine_name(TableName.parse(table), pattern)


def test_two_sources_never_share_one_quarantine() -> None:
    """Found from the names alone, before anything is done."""
    tables = [TableName.parse(name) for name in ("shop.orders", "web.orders")]

    check_apart(tables, Environment("e", quarantine="{schema}_bad.{table}"))
    with pytest.raises(ConfigError, match="share"):
        check_apart(tables, Environment("e", quarantine="bad.{table}"))
    check_apart([tables[0], TableName.parse("SHOP.Orders")], Environment("e"))


def test_a_quarantine_is_not_a_table_with_rules() -> None:
    """A table that is named like another's quarantine is not taken for one."""
    tables = [TableName.parse(name) for name in ("shop.orders", "shop.Orders_Quarantine")]

    with pytest.raises(ConfigError, match="rules of its own"):
        check_apart(tables, Environment("e"))
