"""Beam transforms, thin: decode, deduplicate, count, window, estimate, read and write.

Each holds as little logic as it can: a public pure function first, a PTransform over it. Imports nothing of ours but
``schemas`` and ``mechanisms``.
"""
