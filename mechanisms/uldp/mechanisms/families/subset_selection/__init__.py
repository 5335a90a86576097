"""A set of values."""
