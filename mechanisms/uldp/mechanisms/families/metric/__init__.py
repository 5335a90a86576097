"""The exponential mechanism for a distance."""
