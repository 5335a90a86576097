"""Levels of privacy that users choose from."""
