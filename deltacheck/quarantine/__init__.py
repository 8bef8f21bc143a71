"""Quarantine tables: where violators are moved to, listed and released from."""
