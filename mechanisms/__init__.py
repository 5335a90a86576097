"""The mathematics: how a device obfuscates, what a report supports, what the counts say.

NumPy and special functions, never Beam. Imports nothing of ours but ``schemas``.
"""
