"""Rules: declared in files or from Python, parsed, validated and normalised. No Spark."""
