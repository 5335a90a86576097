"""Simulated fleets: their true values, their reports, the faults in transport, and the demonstration."""
