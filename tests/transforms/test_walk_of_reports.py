"""How many functions a reader of the code follows from the step that decodes to what becomes of a report."""

import sys
from types import FrameType
from typing import Any

import pytest

from tests import build
from tests.build import HOUR, START
from uldp.collector import batch, judge, reader
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.records import Message
from uldp.transforms import decode
from uldp.transforms.decode import _DecodeFn
from uldp.transforms.io.chunks import Chunk

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
