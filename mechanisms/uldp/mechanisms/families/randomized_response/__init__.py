"""Randomized response, and its utility-optimized form."""
