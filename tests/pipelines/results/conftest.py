"""What several modules of these tests set up."""

import pytest

from uldp.transforms.io import window_index


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two panes of counts fill a block of a file of several collections."""
    monkeypatch.setattr(window_index, "BLOCK_SIZE_OF_SEVERAL", 100)
