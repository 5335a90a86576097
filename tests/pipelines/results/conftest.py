"""Fixtures for tests of results."""

import pytest

from uldp.transforms.io.results import pane_files


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few panes are in a block."""
    monkeypatch.setattr(pane_files, "_BLOCK_SIZE", 300)
