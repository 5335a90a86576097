"""What tests of several modules need."""

import sys
from collections.abc import Iterator

import pytest

from tests.transforms.fakekafka import Broker
from transforms.kafkaconsumers import CONSUMERS


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    """A Kafka broker, and the client library that knows it alone."""
    made = Broker({0: []})
    for name, module in made.client_modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    yield made
    CONSUMERS.close()
