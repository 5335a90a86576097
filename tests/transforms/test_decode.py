"""The times of what a bundle of messages becomes: none later than a window that needs it, and none that Beam lacks."""

from typing import Any

import pytest
from apache_beam.pvalue import TaggedOutput

from tests import build
from tests.build import HOUR, MINUTE, START
from uldp.collector.collections import YEAR_9000
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.records import Message, Missing
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
