"""The interfaces that every family implements."""
