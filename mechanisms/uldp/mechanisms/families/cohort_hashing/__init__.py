"""Local hashing of strings, by cohorts."""
