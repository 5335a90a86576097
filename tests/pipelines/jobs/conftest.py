"""Fixtures of jobs."""

import apache_beam as beam
import pytest

from tests.fakes import memory
from uldp.transforms.io.kafka.endpoint import KafkaEndpoint
from uldp.transforms.io.kafka.topic import KafkaTopic


@pytest.fixture
def far_away(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The files of ``mem://``, which are none, and are forgotten after the test."""
    files: dict[str, bytes] = {}
    monkeypatch.setattr(memory, "FILES", files)
    return files


class SubmittedError(Exception):
    """The job would run now."""


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker with the topic, and a cluster that takes the job."""

    def submit(*_: object, **__: object) -> None:
        raise SubmittedError

    monkeypatch.setattr(KafkaTopic, "check", lambda *_: [0])
    monkeypatch.setattr(KafkaEndpoint, "identity", lambda _: "topic")
    monkeypatch.setattr(beam.Pipeline, "run", submit)
