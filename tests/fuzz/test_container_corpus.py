"""Every container of the corpus, without a fuzzer; and that both the corpus and the check are good for something."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.fuzz.container import CODECS, LAYOUTS, NAMES, TEXTS, check, write
from tests.fuzz.container_seeds import FOLDER, RECORDS, encoded, seeds
from uldp.schemas.codec.packed import PackedMessages
from uldp.schemas.codec.stored import decode_messages

CORPUS = {path.name: path.read_bytes() for path in sorted(FOLDER.iterdir())}
WHOLE = b"\0" * 6 + write({b"avro.schema": TEXTS[0]}, [(len(RECORDS["message"]), encoded("message"))])


@pytest.mark.parametrize("name", CORPUS)
def test_input_breaks_nothing(name: str) -> None:
    check(CORPUS[name])


def test_seeds_are_in_the_corpus() -> None:
    assert dict(seeds()).items() <= CORPUS.items()


def test_containers_of_each_schema_and_codec_are_read() -> None:
    read = [name for name, data in CORPUS.items() if check(data)]
    for schema in NAMES:
        for codec in (0, 1):
            assert f"{schema}-{codec}" in read
    assert CODECS[:2] == (b"null", b"deflate")
    assert all(f"{layout}-null" in read for layout in LAYOUTS)


# The check fails when it should.


def test_a_message_that_is_lost_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(records: int, block: bytes, file: str, first: int) -> Iterator[PackedMessages]:
        return (part.take(np.arange(1, len(part))) for part in decode_messages(records, block, file, first))

    assert check(WHOLE)
    monkeypatch.setattr("tests.fuzz.container.decode_messages", careless)
    with pytest.raises(AssertionError, match="!="):
        check(WHOLE)
