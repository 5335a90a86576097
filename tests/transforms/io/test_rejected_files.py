"""Late and rejected reports: the same files however bundles are cut, each message once, few bytes, bounded files."""

import io
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import fastavro
import numpy as np
import pytest

from tests.build import START
from tests.collector.decoding import SYMBOL, report
from uldp.collector.reader import ReportReader
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.codec.container import BLOCK_SIZE, EncodedMessages
from uldp.schemas.records import Message
from uldp.schemas.rejected import Rejected
from uldp.transforms.io.durable_files import container_bytes, encode_record
from uldp.transforms.io.results.filing import MAX_BYTES, MAX_RECORDS
from uldp.transforms.io.results.private import LateFiling, RejectedFiling
from uldp.transforms.io.results.write import write_private

N = 2_000


def decoded(messages: Sequence[Message]) -> list[Rejected]:
    return ReportReader([SYMBOL], judge_lateness=False).decode(messages).rejected


def write(out: Path, messages: Sequence[Message], cuts: Sequence[int]) -> dict[str, bytes]:
    """Write the rejected reports of bundles that begin at each cut, and return the files."""
    for first, end in pairwise(cuts):
        fn = write_private(str(out), RejectedFiling)
        fn.start_bundle()
        for record in decoded(messages[first:end]):
            fn.process(record)
        fn.finish_bundle()
    return {path.name: path.read_bytes() for path in out.rglob("*.avro")}


def garbage(segments: int, of_each: int) -> list[Message]:
    rng = np.random.default_rng(1)
    bodies = [b"", b"junk", report(99), report(time=-1)]
    return [
        Message([*bodies, rng.bytes(40)][row % 5], START, source=f"{segment:012}.avro:{row}")
        for segment in range(segments)
        for row in range(of_each)
    ]


def test_segments_that_are_read_again_in_other_bundles_give_the_same_files(tmp_path: Path) -> None:
    messages = garbage(6, 10)
    files = write(tmp_path / "one", messages, [0, 60])
    assert len(files) == 6
    assert write(tmp_path / "other", messages, [0, 10, 40, 60]) == files


@pytest.mark.parametrize("again", [[0, 35, 100], [10, 90], [5, 6, 7, 80]])
def test_bundles_that_a_runner_cuts_otherwise_count_each_message_once(again: list[int], tmp_path: Path) -> None:
    messages = garbage(1, 100)
    write(tmp_path, messages, [0, 30, 100])
    once = {(record.source, record.reason): record.reports for record in ResultsFolder(tmp_path).rejected()}
    write(tmp_path, messages, again)
    records = list(ResultsFolder(tmp_path).rejected())
    assert sum(once.values()) == sum(record.reports for record in records) == 100
    assert sum(record.messages for record in records) == 100


rng = np.random.default_rng(2)
HOSTILE: dict[str, Callable[[int], bytes]] = {
    "empty": lambda row: b"",
    "one of two": lambda row: [b"", b"x"][rng.integers(2)],
    "counter": lambda row: b"%d" % row,
    "small": lambda row: rng.bytes(3),
    "random": lambda row: rng.bytes(40),
    "zeros": lambda row: bytes(row),
    "equal and large": lambda row: bytes(100_000),
    "cut reports": lambda row: report(id_=rng.bytes(16))[: -1 - row % 8],
    "wrong symbols": lambda row: report(id_=rng.bytes(16), payload=12 + row % 100),
    "wrong times": lambda row: report(id_=rng.bytes(16), time=-1 - row),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_rejected_reports_take_no_more_than_three_times_the_bytes_of_their_messages_when_deflated(
    name: str, tmp_path: Path
) -> None:
    messages = [Message(HOSTILE[name](row), START, source=f"a.avro:{row}") for row in range(N)]
    deflated = zlib.compress(EncodedMessages.of(messages).buffer.tobytes())
    files = write(tmp_path, messages, [0, N])
    assert sum(map(len, files.values())) <= 3 * (len(deflated) + 500)  # the header of a container file
    assert sum(record.reports for record in ResultsFolder(tmp_path).rejected()) == N


def test_late_messages_are_deflated_under_a_name_of_their_source(tmp_path: Path) -> None:
    messages = [Message(bytes(1000), START, source=f"{segment:012}.avro:{n}") for segment in (1, 2) for n in range(50)]
    for name, order in (("one", messages), ("other", messages[::-1])):
        fn = write_private(str(tmp_path / name), LateFiling)
        fn.start_bundle()
        for message in order:
            fn.process(message)
        fn.finish_bundle()
    files = {path.name: path.read_bytes() for path in (tmp_path / "one").rglob("*.avro")}
    assert len(files) == 2
    assert sum(map(len, files.values())) < 3000
    assert {path.name: path.read_bytes() for path in (tmp_path / "other").rglob("*.avro")} == files


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
