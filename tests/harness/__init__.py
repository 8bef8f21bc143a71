"""Helpers of the tests: servers and processes that they start for themselves."""
