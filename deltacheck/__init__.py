"""deltacheck: the constraints of Delta Lake tables, managed the way Alembic manages schemas."""
