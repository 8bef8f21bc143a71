"""Migrations: the graph of revisions, their operations as data, autogenerate, render. No Spark."""
