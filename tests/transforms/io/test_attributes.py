"""What a message's attributes cost from its source on."""

from collections.abc import Iterator

import pytest

from tests.fakes.kafka import Raw
from uldp.schemas.codec.packed import grouped
from uldp.schemas.records import MAX_VALUE_BYTES, SENDER, Message
from uldp.transforms.io.chunks import ChunkSize
from uldp.transforms.io.kafka.consumers import MAX_HEADERS, attributes

NOW = 1_767_258_000_000


class CountedHeaders(list[tuple[str, bytes]]):
    """Counts the headers that are read."""

    read = 0

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        for header in super().__iter__():
            self.read += 1
            yield header

    def __getitem__(self, at: object) -> "CountedHeaders":  # type: ignore[override]
        assert isinstance(at, slice)
        cut = CountedHeaders(list.__getitem__(self, at))
        self.read += len(cut)
        return cut


def test_of_a_hostile_message_few_headers_are_read() -> None:
    headers = CountedHeaders([(SENDER, b"first"), *[(f"h{n}", b"") for n in range(100_000)], (SENDER, b"x" * 10**6)])
    assert attributes(Raw(named=lambda: headers)) == {SENDER: "x" * MAX_VALUE_BYTES}
    assert headers.read == MAX_HEADERS


@pytest.mark.parametrize(
    "heavy", [Message(bytes(ChunkSize.BYTES), NOW), Message(b"", NOW, {SENDER: "x" * ChunkSize.BYTES})]
)
def test_attributes_count_as_bytes_of_a_chunk(heavy: Message) -> None:
    messages = [heavy] * 3
    assert [len(chunk) for chunk in grouped(messages, ChunkSize.BYTES)] == [1, 1, 1]
    size = ChunkSize()
    size.learn(messages)
    assert size.messages(1000) == 1
