"""Noise by distance."""
