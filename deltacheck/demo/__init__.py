"""The worked example: an orders shop with dirty data."""
