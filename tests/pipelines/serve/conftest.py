"""Results of three hours, and a server of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
from tests.pipelines.serve.serving import Serving


@pytest.fixture(scope="session")
def results(backfilled: Path) -> Path:
    return backfilled


@pytest.fixture(scope="session")
def site(results: Path) -> Iterator[Serving]:
    with Serving(results) as serving:
        yield serving
