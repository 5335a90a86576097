"""Local hashing by linear functions."""
