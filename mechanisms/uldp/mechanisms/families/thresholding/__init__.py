"""Histogram encoding with a threshold."""
