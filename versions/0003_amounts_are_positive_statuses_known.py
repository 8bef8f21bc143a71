"""amounts are positive, statuses known"""

revision = "0003"
down_revision = "0002"


def upgrade(op):
    op.add_check("shop.orders", "amount_positive", "amount > 0")
    op.add_check(
        "shop.orders",
        "status_known",
        "status IN ('placed', 'paid', 'shipped', 'cancelled')",
    )


def downgrade(op):
    op.drop_check("shop.orders", "status_known")
    op.drop_check("shop.orders", "amount_positive")
