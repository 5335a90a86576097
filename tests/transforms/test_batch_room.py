"""How many messages are decoded at once: their data and attributes are bounded."""

from collections.abc import Sequence

import pytest

from tests import build
from uldp.collector.reader import Decoded, ReportReader
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.codec.packed import message_bytes
from uldp.schemas.records import Message
from uldp.transforms.decode import _DecodeFn
from uldp.transforms.io.chunks import Chunk


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Message]]:
    """The messages that the decoder gets, batch by batch."""
    found: list[Sequence[Message]] = []
    decode = ReportReader.decode

    def noted(self: ReportReader, messages: Sequence[Message]) -> Decoded:
        found.append(messages)
        return decode(self, messages)

    monkeypatch.setattr(ReportReader, "decode", noted)
    return found


@pytest.mark.parametrize("chunk", [0, 1, 8])
def test_attributes_need_room(chunk: int, batches: list[Sequence[Message]]) -> None:
    """A program's own messages may have any attributes; the project's sources drop those without a meaning."""
    messages = [Message(b"", 0, {"note": "n" * (_DecodeFn.ROOM // 10)})] * 64
    fn = _DecodeFn(SharedSpecs([build.spec()]), 1, 0, judge_lateness=False, freeze_heap=False)
    fn.setup()
    fn.start_bundle()
    elements = [Chunk(messages[at : at + chunk]) for at in range(0, 64, chunk)] if chunk else messages
    for element in elements:
        list(fn.process(element) or ())
    list(fn.finish_bundle())
    assert sum(map(len, batches)) == 64
    last = max(1, chunk) * message_bytes(messages[0])
    assert max(sum(map(message_bytes, batch)) for batch in batches) <= _DecodeFn.ROOM + last
