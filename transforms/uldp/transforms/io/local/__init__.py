"""The embedded local stream: a directory of segments."""
