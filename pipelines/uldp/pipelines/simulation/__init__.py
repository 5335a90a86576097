"""Simulated fleets: what they hold, what they report, what goes wrong on the way, and the demonstration."""
