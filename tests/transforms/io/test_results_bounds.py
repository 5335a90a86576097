"""Late and rejected reports are written in files of bounded size, whatever clients send."""

import io
from pathlib import Path

import fastavro
import pytest

from uldp.schemas.codec.container import BLOCK_SIZE
from uldp.schemas.records import Message
from uldp.transforms.io.durable_files import container_bytes, encode_record
from uldp.transforms.io.results.filing import MAX_BYTES, MAX_RECORDS
from uldp.transforms.io.results.private import LateFiling
from uldp.transforms.io.results.write import write_private

MEGABYTE = 1 << 20


def written(out: Path, messages: list[Message]) -> list[list[object]]:
    """Return the records of each file that a bundle of messages leaves."""
    fn = write_private(str(out), LateFiling)
    fn.start_bundle()
    for message in messages:
        fn.process(message)
    fn.finish_bundle()
    return [list(fastavro.reader(io.BytesIO(path.read_bytes()))) for path in sorted(out.glob("late/*.avro"))]


@pytest.mark.parametrize(
    "message",
    [Message(b"x" * MEGABYTE, 1), Message(b"x", 1, {"k": "v" * MEGABYTE}), Message(b"x", 1, {"k" * MEGABYTE: "v"})],
    ids=["data", "value", "name"],
)
def test_a_file_ends_with_the_record_that_reaches_the_bound(tmp_path: Path, message: Message) -> None:
    files = written(tmp_path, [message._replace(publish_time=time) for time in range(20)])
    assert sorted(map(len, files)) == [4, 8, 8]
    assert sorted(record["publish_time"] for file in files for record in file) == list(range(20))  # type: ignore[index]
    assert max(path.stat().st_size for path in tmp_path.glob("late/*")) < MAX_BYTES + 2 * MEGABYTE


def test_a_record_above_the_bound_is_a_file_of_its_own(tmp_path: Path) -> None:
    large = Message(b"x" * (MAX_BYTES + 1), 1)
    assert sorted(map(len, written(tmp_path, [large, large._replace(publish_time=2), Message(b"x", 3)]))) == [1, 1, 1]


def test_small_records_are_bounded_by_number(tmp_path: Path) -> None:
    files = written(tmp_path, [Message(b"", time) for time in range(MAX_RECORDS + 1)])
    assert sorted(map(len, files)) == [1, MAX_RECORDS]


def test_a_container_is_of_blocks_that_a_reader_can_hold() -> None:
    records = [encode_record("message", Message(b"x" * size, 1).to_avro()) for size in [1000] * 200 + [BLOCK_SIZE * 3]]
    content = container_bytes("message", records)
    blocks = list(fastavro.block_reader(io.BytesIO(content)))
    assert sum(block.num_records for block in blocks) == 201
    assert max(block.size for block in blocks[:-1]) < BLOCK_SIZE + 2000
