"""The mathematics: how a device obfuscates, what a report supports, what the counts say. NumPy only, never Beam.

Imports nothing of ours but ``schemas``.
"""
