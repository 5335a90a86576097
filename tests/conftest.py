"""Settings of all tests."""

from hypothesis import settings

# The same examples in every run, and no deadline: a loaded machine is no failure.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
