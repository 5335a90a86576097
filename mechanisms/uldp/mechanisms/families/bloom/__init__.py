"""Bloom filters of strings."""
