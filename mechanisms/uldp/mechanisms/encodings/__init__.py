"""Encodings that any family of mechanisms may use."""
