"""A bit for each value."""
