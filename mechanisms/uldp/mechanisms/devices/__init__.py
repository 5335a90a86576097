"""The code on a user's device: its reports, its randomness, and its memory of what it has spent."""
