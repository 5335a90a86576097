"""What a test needs of the installed Beam."""

from importlib.util import find_spec

import pytest

needs_sources = pytest.mark.skipif(
    find_spec("apache_beam.io.unbounded_source") is None, reason="Beam has sources in Python since 2.76"
)
