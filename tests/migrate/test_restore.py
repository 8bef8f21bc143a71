"""Which tables get their rows back when revisions are reverted."""

from __future__ import annotations

from deltacheck.migrate.restore import _tables
from deltacheck.revisions.recorder import Op
from tests.migrate.bench import revision


def test_a_table_is_looked_for_by_the_name_that_it_has_then() -> None:
    """A bug of names: after a renaming was taken back, rows were looked for under the new one."""
    adds = revision(
        "0001",
        None,
        lambda op: op.add_check("shop.orders", "a", "a > 0"),
        lambda op: op.drop_check("shop.orders", "a"),
    )
    renames = revision(
        "0002",
        "0001",
        lambda op: op.rename_table("shop.orders", "shop.sales"),
        lambda op: op.rename_table("shop.sales", "shop.orders"),
    )

    def leaves_out(op: Op) -> None:
        op.add_check("shop.sales", "b", "b > 0")

    last = revision("0003", "0002", leaves_out)

    assert str(_tables([adds, renames])[0]) == "shop.orders"
    assert "shop.sales" in [str(one) for one in _tables([adds, renames, last])]
