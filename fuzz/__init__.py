"""Fuzzing of what reads untrusted bytes; see README.md."""
