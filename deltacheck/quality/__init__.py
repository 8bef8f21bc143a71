"""Quality: what passed and what failed, of tables and of batches as a whole."""
