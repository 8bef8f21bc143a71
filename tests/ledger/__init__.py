"""The journal, the lock and what is recorded on tables."""
