"""The whole transform: panes, windows and accounting on a stream that the test writes event by event."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream as ScriptedStream
from apache_beam.utils.timestamp import Timestamp

from tests import build
from tests.build import MINUTE, START
from uldp.collector.shared_specs import SharedSpecs
from uldp.pipelines.jobs.aggregate import JobAggregate
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.coders import MessageCoder
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.io.results.write import WriteResults


def make_spec(collection: str = "plain", **changes: Any) -> CollectionSpec:
    window = {"size": "1h", "early_every": "10s", "allowed_lateness": "30m"}
    base = {"domain": {"size": 4}, "mechanism": {"name": "rr", "epsilon": 2.0}, "window": window}
    return build.spec(collection=collection, **base | changes)


PLAIN = make_spec()


def report(number: int, minute: float, *, published: float | None = None, spec: CollectionSpec = PLAIN) -> Message:
    """Report ``number`` names its own symbol, so that a double count shows."""
    sent = build.report(number, number % spec.size, START + int(minute * MINUTE), spec.key)
    return build.message(sent, None if published is None else START + int(published * MINUTE))


def at(minute: float) -> Timestamp:
    return Timestamp(micros=(START + int(minute * MINUTE)) * 1000)


def new_stream() -> ScriptedStream:
    stream: ScriptedStream = ScriptedStream(coder=MessageCoder()).advance_watermark_to(at(0)).with_output_types(Message)
    return stream


def run(stream: ScriptedStream, specs: Sequence[CollectionSpec], out: Path, **settings: Any) -> list[Statistic]:
    with beam.Pipeline("BundleBasedDirectRunner", options=PipelineOptions(["--streaming"])) as pipeline:
        _ = pipeline | stream | JobAggregate(specs, **settings) | WriteResults(str(out))
    panes = ResultsFolder(out, private=out).statistics()
    return sorted(panes, key=lambda pane: (pane.collection, pane.window_start, pane.pane.revision))


def kinds(panes: Sequence[Statistic]) -> list[tuple[str, int, int]]:
    return [(pane.pane.kind.value, pane.pane.revision, pane.n) for pane in panes]


def test_a_window_has_its_on_time_pane_though_nothing_came_since_the_early_one(tmp_path: Path) -> None:
    stream = new_stream().add_elements([report(0, 5)]).advance_processing_time(11).advance_watermark_to_infinity()
    assert kinds(run(stream, [PLAIN], tmp_path)) == [("early", 0, 1), ("on_time", 1, 1)]


def wrong(number: int, spec: CollectionSpec = PLAIN) -> Message:
    """A report of a symbol that there is not."""
    return build.message(build.report(number, 4, START + MINUTE, spec.key))


def test_an_estimate_supersedes_no_counts_of_which_there_was_no_estimate(tmp_path: Path) -> None:
    spec = make_spec(limits={"min_reports": 2})
    stream = (
        new_stream()
        .add_elements([report(0, 5)])
        .advance_watermark_to(at(60))
        .add_elements([report(1, 6, published=61)])
        .advance_watermark_to(at(62))
        .add_elements([report(2, 7, published=63), report(3, 8, published=63)])
        .advance_watermark_to_infinity()
    )
    panes = run(stream, [spec], tmp_path)
    assert [pane.supersedes and pane.supersedes.n for pane in panes] == [None, 1, 2]
    assert [estimate.supersedes and estimate.supersedes.n for estimate in ResultsFolder(tmp_path).estimates()] == [
        None,
        2,
    ]


@pytest.mark.parametrize(("simulated", "flags"), [(False, ("incomplete",)), (True, ())])
def test_a_window_that_a_drain_fires_before_its_end_is_incomplete(
    simulated: bool, flags: tuple[str, ...], tmp_path: Path
) -> None:
    """A drain moves the watermark to its end at once. It can be told from the passing of time by the clock alone."""
    year = 2100 * 365 * 24 * 60
    stream = new_stream().add_elements([report(0, 5), report(1, year, published=year)]).advance_watermark_to_infinity()
    ended, open_still = run(stream, [PLAIN], tmp_path, simulated_clock=simulated)
    assert (ended.flags, open_still.flags) == ((), flags)


def test_messages_are_counted_the_same_whether_they_come_one_by_one_or_in_chunks(tmp_path: Path) -> None:
    sent = [report(n % 300, n % 180) for n in range(600)] + [Message(b"no report", START)]
    for name, elements in (("one", sent), ("chunks", [Chunk(sent[:7]), Chunk(()), Chunk(tuple(sent[7:]))])):
        with beam.Pipeline("FnApiRunner") as pipeline:
            _ = pipeline | beam.Create(elements) | Aggregate([PLAIN]) | WriteResults(str(tmp_path / name))
    one, chunks = (
        (
            [pane.to_avro() for pane in ResultsFolder(out).statistics()],
            [record.to_avro() for record in ResultsFolder(out).rejected()],
        )
        for out in (tmp_path / "one", tmp_path / "chunks")
    )
    assert one == chunks
    assert (len(one[0]), len(one[1])) == (3, 1)


def test_collections_that_share_blocks_have_the_panes_of_each_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = [make_spec(f"c{number}", window={"size": "1h"}) for number in range(30)]
    sent = [report(n % 500, n * 7 % 700, spec=specs[n * n % 30]) for n in range(600)]
    sent += [wrong(n, specs[n % 29]) for n in range(100)]
    for fewest in (1, 3, 30):
        monkeypatch.setattr("uldp.collector.groups._FEWEST", fewest)
        assert len(SharedSpecs(specs).groups.members) == fewest
        with beam.Pipeline("FnApiRunner") as pipeline:
            _ = pipeline | beam.Create([Chunk(sent)]) | Aggregate(specs) | WriteResults(str(tmp_path / str(fewest)))
    shared, some, alone = (
        sorted((pane.to_avro() for pane in ResultsFolder(tmp_path / str(fewest)).statistics()), key=str)
        for fewest in (1, 3, 30)
    )
    assert shared == some == alone
    assert len(alone) > 100
