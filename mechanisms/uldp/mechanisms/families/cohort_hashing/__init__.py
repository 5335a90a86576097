"""Local hashing and Bloom filters of strings, by cohorts."""
