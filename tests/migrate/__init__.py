"""Upgrades on running tables: what they move, what they leave, and what a death leaves."""
