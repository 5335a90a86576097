"""What tests of deploy/ share."""

import sys

import pytest

from tests.deploy.dockerfile import Image


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the lock is for Python 3.11")
    return Image(tmp_path_factory.mktemp("image"))
