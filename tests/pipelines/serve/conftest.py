"""Results of three hours, and a server of them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
from tests.pipelines.serve.serving import Serving


@pytest.fixture(scope="session")
def results(backfilled: Path) -> Path:
    """Results that were written long ago: as long as they are fresh, each look takes them for changed."""
    for path in backfilled.rglob("*"):
        if path.is_dir():
            os.utime(path, (0, 0))
    return backfilled


@pytest.fixture(scope="session")
def site(results: Path) -> Iterator[Serving]:
    with Serving(results) as serving:
        yield serving
