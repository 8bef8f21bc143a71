"""customers can be reached"""

revision = "0002"
down_revision = "0001"


def upgrade(op):
    op.add_check("shop.customers", "email_has_at", "email IS NOT NULL AND email LIKE '%_@_%'")


def downgrade(op):
    op.drop_check("shop.customers", "email_has_at")
