"""Strings that nobody lists beforehand: their mechanisms by cohorts, and the shares of candidates."""
