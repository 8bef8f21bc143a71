"""Findings about rules and migrations. No Spark."""
