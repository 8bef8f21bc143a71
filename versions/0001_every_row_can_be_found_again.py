"""every row can be found again"""

revision = "0001"
down_revision = None


def upgrade(op):
    op.set_not_null("shop.customers", "customer_id", name="customer_id_present")
    op.set_not_null("shop.orders", "order_id", name="order_id_present")


def downgrade(op):
    op.drop_not_null("shop.orders", "order_id", name="order_id_present")
    op.drop_not_null("shop.customers", "customer_id", name="customer_id_present")
