"""What tests of several modules need."""

from collections.abc import Iterator

import pytest

from tests.fakes.bigquery import Service
from tests.fakes.kafka import Broker, serving
from tests.fakes.pubsub import Client
from uldp.transforms.clock import clock_of_test_stream
from uldp.transforms.io.pubsub import client as pubsubclient
from uldp.transforms.io.pubsub import subscription as pubsubname


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A Kafka broker, and the client library that knows it alone."""
    with serving(Broker({0: []})) as made:
        yield made


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    """Pub/Sub's client library, which answers what it is told to."""
    client = Client()
    monkeypatch.setattr(pubsubname, "library", lambda: client)
    monkeypatch.setattr(pubsubclient, "library", lambda: client)
    for module in (pubsubname, pubsubclient):
        monkeypatch.setattr(module, "pull_method", lambda client: client.pull)
    monkeypatch.delenv("PUBSUB_EMULATOR_HOST", raising=False)
    return client


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A BigQuery on this machine, for a client without credentials."""
    pytest.importorskip("google.cloud.bigquery", reason="pip install '.[gcp]'")
    auth, credentials = pytest.importorskip("google.auth"), pytest.importorskip("google.auth.credentials")
    monkeypatch.setattr(auth, "default", lambda *_, **__: (credentials.AnonymousCredentials(), "project"))
    made = Service()
    with made.serve() as url:
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", url)
        yield made


@pytest.fixture(autouse=True)
def _clock() -> Iterator[None]:
    """Timers of steps follow the clock of a ``TestStream``."""
    with clock_of_test_stream():
        yield
