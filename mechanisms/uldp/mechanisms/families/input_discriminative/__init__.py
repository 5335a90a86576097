"""Unary encoding with an epsilon for each group of values."""
