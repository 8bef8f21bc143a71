"""Specification of ``deltacheck.writing``: batches, streams and guarded writes."""
