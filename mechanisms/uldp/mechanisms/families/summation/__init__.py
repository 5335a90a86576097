"""Histogram encoding that is summed."""
