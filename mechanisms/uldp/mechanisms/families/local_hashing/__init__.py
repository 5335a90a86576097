"""Randomized response on a hash of the value."""
