"""The tables of docs/beam.md: each call of a source makes the steps that it says, and each output has its row."""

import sys
from pathlib import Path

import apache_beam as beam
import pytest

import uldp.transforms
from tests.build import START
from tests.docs.test_documents import table
from tests.fakes.kafka import Broker
from uldp.schemas.records import Message
from uldp.transforms import Aggregated, Chunk
from uldp.transforms.io.local.stream import LocalStream

CALLS = [call.strip("`") for call, _ in table("beam.md", "Source").values()]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.partition("(")[0])
def test_the_call_of_each_source_builds_a_graph(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, fake in Broker({0: []}).client_modules().items():
        monkeypatch.setitem(sys.modules, module, fake)
    monkeypatch.chdir(tmp_path)
    LocalStream.create(Path("stream")).append([Message(b"report", START)])
    source = eval(call, {each: getattr(uldp.transforms, each) for each in uldp.transforms.__all__})
    read = beam.Pipeline() | source
    assert read.element_type is Chunk


def test_each_output_has_its_row() -> None:
    assert tuple(table("beam.md", "Output")) == Aggregated._fields
