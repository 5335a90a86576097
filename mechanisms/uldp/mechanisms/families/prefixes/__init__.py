"""Strings that nobody lists beforehand, found by their prefixes in one round."""
