"""The report: one page that says what came in, what was rejected, and what is wrong."""
