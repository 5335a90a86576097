"""Local hashing for sets of items."""
