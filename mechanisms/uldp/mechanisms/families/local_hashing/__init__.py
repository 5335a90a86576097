"""Randomized response on a hash of the value, and Bloom filters of strings."""
