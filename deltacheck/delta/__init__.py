"""A Delta table as deltacheck needs it, and the one door through which every write goes."""
