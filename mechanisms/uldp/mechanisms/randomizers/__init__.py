"""The mechanisms for values: each perturbs a symbol on the device, and tallies payloads at the collector."""
