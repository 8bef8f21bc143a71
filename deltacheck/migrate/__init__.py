"""Plan, run and resume migrations; compare the applied ones with the tables."""
