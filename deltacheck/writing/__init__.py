"""Writing a batch through the table's rules."""
