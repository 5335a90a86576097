"""The step that decodes: the times of what it gives, how much it takes at once, and its walk through the code."""

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import pytest
from apache_beam.pvalue import TaggedOutput

from tests import build
from tests.build import HOUR, MINUTE, START
from uldp.collector import batch, judge, reader
from uldp.collector.collections import YEAR_9000
from uldp.collector.reader import Decoded, ReportReader
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.codec.packed import message_bytes
from uldp.schemas.records import Message, Missing
from uldp.transforms import decode
from uldp.transforms.decode import _DecodeFn
from uldp.transforms.io.chunks import Chunk

SPECS = [build.spec(), build.spec(collection="d", window={"size": "1h", "period": "15m"})]


def decoded(*chunks: Chunk, judge_lateness: bool = False) -> list[tuple[str, int, Any]]:
    """The outputs of a bundle in which each chunk is decoded alone: their tags, times in milliseconds, and elements."""
    fn = _DecodeFn(SharedSpecs(SPECS), 4, 0, judge_lateness=judge_lateness, freeze_heap=False)
    fn.setup()
    fn.ROOM = 1
    fn.start_bundle()
    outputs = [output for chunk in chunks for output in fn.process(chunk) or ()] + [*fn.finish_bundle()]
    tagged = [(each.tag, each.value) if isinstance(each, TaggedOutput) else ("columns", each) for each in outputs]
    return [(tag, each.timestamp.micros // 1000, each.value) for tag, each in tagged]


@pytest.mark.parametrize(("collections", "size"), [("c", HOUR), ("d", 15 * MINUTE), ("cd", 15 * MINUTE)])
def test_columns_have_the_last_moment_of_their_oldest_slice(collections: str, size: int) -> None:
    """Until then, no window that holds one of the reports may close."""
    reports = [
        build.report(10 * number + hours, 0, START + hours * HOUR, (collection, 1))
        for number, collection in enumerate(collections)
        for hours in (2, 0, 1)
    ]
    outputs = decoded(*(Chunk([build.message(report, START + 2 * HOUR)]) for report in reports))
    columns = [(time, sum(map(len, element[1]))) for tag, time, element in outputs if tag == "columns"]
    assert {time for time, _ in columns} == {START + size - 1}
    assert sum(n for _, n in columns) == len(reports)


@pytest.mark.parametrize("time", [-(2**63), -1, 0, START, YEAR_9000 - 1, YEAR_9000, 2**63 - 1])
def test_times_that_beam_lacks_become_the_nearest(time: int) -> None:
    outputs = decoded(Chunk([Message(b"", time)], [Missing("source", 0, 4, time, time)]))
    nearest = min(max(time, 0), YEAR_9000 - 1)
    assert {(tag, at) for tag, at, _ in outputs if tag != "accounting"} == {("rejected", nearest), ("missing", nearest)}


def test_a_late_message_is_given_out_at_the_time_at_which_it_was_published() -> None:
    late = build.message(build.report(1, 0, START), START + 30 * HOUR)
    outputs = decoded(Chunk([late, build.message(build.report(2, 0, START))]), judge_lateness=True)
    ((at, message),) = [(time, element) for tag, time, element in outputs if tag == "late"]
    assert (at, message.data) == (START + 30 * HOUR, late.data)


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


#: The modules that decide what becomes of a report.
FILES = [module.__file__ for module in (decode, reader, judge, batch)]
N = 200  # enough for the decoder of columns
DAY = 24 * HOUR
SENT = {
    "counted": [build.message(build.report(number, 1), START) for number in range(N)],
    "late": [build.message(build.report(number, 1), START + DAY) for number in range(N)],
    "rejected": [build.message(build.report(number, 99), START) for number in range(N)],
}
SENT["mixed"] = [message for messages in SENT.values() for message in messages]


def walk(messages: list[Message]) -> list[tuple[str, str]]:
    """The file and the name of each function that decodes messages, in the order in which they are entered first."""
    fn = _DecodeFn(SharedSpecs([build.spec()]), None, 0, judge_lateness=True, freeze_heap=False)
    fn.setup()
    fn.start_bundle()
    found: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename in FILES and not code.co_name.startswith("<"):
            found[code.co_filename, code.co_qualname] = None

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        list(fn.process(Chunk(messages)) or ())
        list(fn.finish_bundle())
    finally:
        sys.setprofile(before)
    return [*found]


@pytest.mark.parametrize(("kind", "most"), [("counted", 13), ("late", 15), ("rejected", 16), ("mixed", 16)])
def test_few_functions_decide_what_becomes_of_a_report(kind: str, most: int) -> None:
    steps = walk(SENT[kind])
    files = [file for file, _ in steps]
    stays = [file for file, before in zip(files, [None, *files], strict=False) if file != before]
    assert {*files} == {*FILES}
    assert len(steps) <= most
    assert len(stays) - len({*stays}) <= 4  # comes back to a module that it has left
