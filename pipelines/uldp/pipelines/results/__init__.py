"""Directories of results: reading, choosing, checking, writing them as text, sending rejected reports again."""
