"""Settings of all tests."""

import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

# The same examples in every run, and no deadline: a loaded machine is no failure.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True, scope="session")
def _temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep temporary files where pytest removes them: Beam leaves a folder for each pipeline that never runs."""
    before, tempfile.tempdir = tempfile.tempdir, str(tmp_path_factory.getbasetemp())
    yield
    tempfile.tempdir = before
