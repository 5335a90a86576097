"""Subset selection for sets of items."""
