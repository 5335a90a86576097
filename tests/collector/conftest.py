"""The two paths of the decoder."""

import math

import pytest

from tests.collector.decoding import take_path


@pytest.fixture(params=["columnar", "plain"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send even a single message by the fast paths, or all through the plain decoder."""
    take_path(monkeypatch, 1 if request.param == "columnar" else math.inf)
