"""Sets of items, and of strings."""
