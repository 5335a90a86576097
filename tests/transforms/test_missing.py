"""Messages that a source lost, from its chunks to the results: in each window that was open, and once in all."""

from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream as ScriptedStream
from apache_beam.utils.timestamp import Timestamp

from tests import build
from tests.build import MINUTE, START
from uldp.pipelines import ResultsFolder, newest
from uldp.schemas.pane import PaneHeader
from uldp.schemas.records import Message, Missing, missing_messages
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.io.chunks import Chunk, ChunkCoder
from uldp.transforms.io.results.write import WriteResults

FIXED = build.spec(window={"size": "1h", "allowed_lateness": "30m"})
SLIDING = build.spec(collection="sliding", window={"size": "1h", "period": "20m", "allowed_lateness": "30m"})


def at(minute: int) -> int:
    return START + minute * MINUTE


def sent(number: int, minute: int) -> list[Message]:
    times = [(spec, build.report(number, 0, at(minute), spec.key)) for spec in (FIXED, SLIDING)]
    return [build.message(report) for _, report in times]


def lost(count: int, after: int, before: int) -> Missing:
    return Missing("topic/0", 200, 199 + count, at(after), at(before))


def stream(*elements: Chunk | int) -> ScriptedStream:
    """Chunks, and minutes to which the watermark advances."""
    made: ScriptedStream = ScriptedStream(coder=ChunkCoder()).with_output_types(Chunk)
    for element in elements:
        if isinstance(element, Chunk):
            made.add_elements([element])
        else:
            made.advance_watermark_to(Timestamp(micros=at(element) * 1000))
    made.advance_watermark_to_infinity()
    return made


def run(source: Any, out: Path) -> list[PaneHeader]:
    streaming = isinstance(source, ScriptedStream)
    runner, options = ("BundleBasedDirectRunner", ["--streaming"]) if streaming else ("FnApiRunner", [])
    with beam.Pipeline(runner, options=PipelineOptions(options)) as pipeline:
        _ = pipeline | source | Aggregate([FIXED, SLIDING]) | WriteResults(str(out))
    return ResultsFolder(out).panes()


def missing(panes: list[PaneHeader]) -> dict[tuple[str, int], int]:
    """By collection and minute of start, the number of missing messages of each window that lacks any."""
    found = {}
    for pane in newest(panes):
        assert pane.accounting.closes()
        assert ("missing_reports" in pane.flags) == (pane.accounting.missing > 0)
        if pane.accounting.missing:
            found[pane.collection, (pane.window_start - START) // MINUTE] = pane.accounting.missing
    return found


#: Those that were not closed at minute 100, and that had begun at minute 130.
OPEN = {("c", 60): 7, ("c", 120): 7} | {("sliding", start): 7 for start in (20, 40, 60, 80, 100, 120)}


@pytest.mark.parametrize("whole", [False, True])
def test_they_are_missing_in_the_windows_that_were_open(whole: bool, tmp_path: Path) -> None:
    first, behind = [*sent(1, 10), *sent(2, 90)], [*sent(3, 130), *sent(4, 300)]
    chunks = Chunk(first), Chunk(behind[:2], (lost(7, 100, 130),)), Chunk(behind[2:])
    source = beam.Create(chunks) if whole else stream(0, chunks[0], 100, chunks[1], 130, chunks[2])
    panes = run(source, tmp_path)
    assert missing(panes) == OPEN
    assert {pane.collection: pane.n for pane in newest(panes) if pane.window_start == START} == {"c": 1, "sliding": 1}
    assert sum(pane.accounting.received for pane in newest(panes) if pane.collection == "c") == 4
    assert list(ResultsFolder(tmp_path).missing()) == [lost(7, 100, 130)]


def test_losses_add_up_in_a_window_and_count_once_in_all(tmp_path: Path) -> None:
    found_again = Missing("topic/0", 200, 208, at(5), at(70))
    chunks = (
        Chunk((), (lost(7, 5, 10),)),
        Chunk((), (Missing("topic/1", 0, 2, at(5), at(10)),)),
        Chunk((), (found_again,)),
    )
    panes = run(stream(0, *chunks), tmp_path)
    assert missing(panes)["c", 0] == 7 + 3 + 9  # at most so many
    assert missing_messages(ResultsFolder(tmp_path).missing()) == 9 + 3


@pytest.mark.slow  # it writes 20,000 panes
@pytest.mark.parametrize("before", [pytest.param(-(2**63), marks=pytest.mark.nightly), 2**63 - 1])
def test_the_time_of_a_loss_may_be_any(before: int, tmp_path: Path) -> None:
    record = Missing("topic/0", 0, 0, -(2**63), before)
    assert {pane.accounting.missing for pane in run(beam.Create([Chunk((), (record,))]), tmp_path)} == {1}
