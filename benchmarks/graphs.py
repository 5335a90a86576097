"""The graphs that are compared: this project's, two of Beam's manual, the best by messages, and one that does nothing.

Each runs in this process, on one thread of Beam's local runner. Its time is all that the runner takes, from building
the graph to its last result, without what it takes to make the messages.
"""

import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import apache_beam as beam
import fastavro
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import PCollection
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.window import FixedWindows, GlobalWindow, TimestampedValue
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from apache_beam.utils.windowed_value import WindowedValue

from benchmarks.rows import clock
from benchmarks.workloads import WINDOW, Workload
from uldp.pipelines.jobs.aggregate import JobAggregate
from uldp.schemas.arrays import Counts
from uldp.schemas.codec.packed import grouped
from uldp.schemas.framing import HEADER_SIZE, load_schema
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import milliseconds
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.chunks import Chunk, ChunkSize

#: Support counts, as the bytes of their int64, by (collection, version, start of the window).
Totals = dict[tuple[str, int, int], bytes]
_WINDOW = milliseconds(WINDOW)
Graph = Callable[[PCollection[Chunk], Sequence[CollectionSpec]], PCollection[Any]]


class Histogram(beam.CombineFn):
    """Counts the reports of one key, one at a time: symbols of a domain, or packed bits."""

    def __init__(self, size: int) -> None:
        self._size = size

    def create_accumulator(self) -> Counts:
        """Return no counts."""
        return np.zeros(self._size, dtype=np.int64)

    def add_input(self, mutable_accumulator: Counts, element: int | bytes) -> Counts:
        """Count one report."""
        if isinstance(element, bytes):
            mutable_accumulator += np.unpackbits(np.frombuffer(element, np.uint8), count=self._size)
        else:
            mutable_accumulator[element] += 1
        return mutable_accumulator

    def merge_accumulators(self, accumulators: Iterable[Counts]) -> Counts:
        """Add counts."""
        return sum(accumulators, self.create_accumulator())

    def extract_output(self, accumulator: Counts) -> bytes:
        """Return the counts."""
        return accumulator.tobytes()


def naive(chunks: PCollection[Chunk], specs: Sequence[CollectionSpec]) -> PCollection[Any]:
    """Decode each report, give it its event time, window it, count it.

    Of the two natural ways to count, this is the faster: a vector for each collection. ``Count.PerElement`` by
    (collection, version, symbol) takes more than twice as long.
    """
    counts: PCollection[Any] = (
        _one_by_one(chunks)
        | "Decode" >> beam.Map(_decode_body)
        | "TakeTime" >> beam.Map(_timestamped)
        | "Window" >> beam.WindowInto(FixedWindows(WINDOW.total_seconds()))
        | "Count" >> beam.CombinePerKey(Histogram(specs[0].size))
        | "Name" >> beam.Map(_named)
    )
    return counts


def keyed(chunks: PCollection[Chunk], specs: Sequence[CollectionSpec]) -> PCollection[Any]:
    """Count as ``naive``, with the start of the window in the key: no times, and no windows of Beam's.

    It is what a reader of Beam's manual may come to who knows that each time and window takes as long as the rest. It
    counts the same, but only of bounded input: nothing says when a window has closed.
    """
    counts: PCollection[Any] = (
        _one_by_one(chunks)
        | "Decode" >> beam.Map(_decode_body)
        | "TakeWindow" >> beam.Map(_with_window)
        | "Count" >> beam.CombinePerKey(Histogram(specs[0].size))
    )
    return counts


def presummed(chunks: PCollection[Chunk], specs: Sequence[CollectionSpec]) -> PCollection[Any]:
    """Count as ``keyed``, but add up each bundle before anything is grouped: the best that we know by messages.

    Only sums leave a bundle, so windows, keys and combiners cost nothing for each report. Decoding is what is left.
    """
    counts: PCollection[Any] = (
        _one_by_one(chunks)
        | "Sum" >> beam.ParDo(_PreSum(specs[0].size))
        | "Count" >> beam.CombinePerKey(_add_up)
        | "Pack" >> beam.MapTuple(lambda key, counts: (key, counts.tobytes()))
    )
    return counts


class _PreSum(beam.DoFn):
    """Sums the reports of a bundle by (collection, version, start of the window)."""

    def __init__(self, size: int) -> None:
        self._size = size

    def start_bundle(self) -> None:
        self._payloads: defaultdict[tuple[str, int, int], list[int | bytes]] = defaultdict(list)

    def process(self, element: Message, *_: Any, **__: Any) -> None:
        key, payload = _with_window(_decode_body(element))
        self._payloads[key].append(payload)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for key, payloads in self._payloads.items():
            if isinstance(payloads[0], int):
                counts = np.bincount(np.array(payloads), minlength=self._size)
            else:
                rows = np.frombuffer(b"".join(cast(list[bytes], payloads)), np.uint8).reshape(len(payloads), -1)
                counts = np.unpackbits(rows, axis=1, count=self._size).sum(axis=0, dtype=np.int64)
            yield WindowedValue((key, counts), MIN_TIMESTAMP, (GlobalWindow(),))


def _add_up(counts: Iterable[Counts]) -> Counts:
    summed: Counts = np.sum(np.array(list(counts)), axis=0)
    return summed


def _with_window(report: Any) -> Any:
    time = report["event_time"]
    return (report["collection"], report["version"], time - time % _WINDOW), report["payload"]


def _decode_body(message: Message) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(message.data[HEADER_SIZE:]), load_schema("report"), None)


def _timestamped(report: Any) -> Any:
    key = report["collection"], report["version"]
    return TimestampedValue((key, report["payload"]), report["event_time"] / 1000)


def _named(element: Any, window: Any = beam.DoFn.WindowParam) -> Any:
    key, counts = element
    return (*key, window.start.micros // 1000), counts


def source(chunks: PCollection[Chunk], specs: Sequence[CollectionSpec]) -> PCollection[Any]:
    """Do nothing with each message: what Beam takes to hand it over."""
    nothing: PCollection[Any] = _one_by_one(chunks) | "Drop" >> beam.FlatMap(_nothing)
    return nothing


def _one_by_one(chunks: PCollection[Chunk]) -> PCollection[Message]:
    messages: PCollection[Message] = chunks | "Messages" >> beam.FlatMap(_messages).with_output_types(Message)
    return messages


def _messages(chunk: Chunk) -> Sequence[Message]:
    return chunk.messages


def _nothing(message: Message) -> tuple[()]:
    return ()


def aggregate(
    chunks: PCollection[Chunk], specs: Sequence[CollectionSpec], *, deduplicate: bool, one_by_one: bool = False
) -> PCollection[Any]:
    """Take the support counts of this project's graph; from chunks, as its sources give them, or ``one_by_one``.

    Deduplication has one shard, and the heap is frozen, as in a job of one worker.
    """
    messages = _one_by_one(chunks) if one_by_one else chunks
    aggregated = messages | "Aggregate" >> JobAggregate(specs, deduplicate=deduplicate, shards=1)
    counts: PCollection[Any] = aggregated.counts | "Name" >> beam.Map(_named_support)
    return counts


def _named_support(support: Statistic) -> Any:
    return (support.collection, support.version, support.window_start), support.cells.tobytes()


class Run(NamedTuple):
    """What a graph counts, and the seconds that it takes."""

    totals: Totals
    seconds: float


class _Feed:
    """Makes messages inside of the graph, and sums up how long that takes."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.seconds = 0.0
        self.totals: Totals = {}

    def read(self, index: int) -> list[Chunk]:
        began = clock()
        chunks = list(map(Chunk, grouped(self.workload.chunk(index), ChunkSize.BYTES)))
        self.seconds += clock() - began
        return chunks


#: The local runner's worker is a thread of this process, so messages and results need not pass through the graph.
_feed: _Feed


def run_graph(graph: Graph, workload: Workload) -> Run:
    """Run a graph over the messages of a workload."""
    global _feed
    _feed = _Feed(workload)
    options = PipelineOptions(["--direct_running_mode=in_memory", "--direct_num_workers=1"])
    began = clock()
    with beam.Pipeline(FnApiRunner(), options=options) as pipeline:
        indices = pipeline | "Indices" >> beam.Create(range(workload.chunks), reshuffle=False)
        chunks = indices | "Read" >> beam.FlatMap(_read).with_output_types(Chunk)
        _ = graph(chunks, workload.specs) | "Keep" >> beam.Map(_keep)
    return Run(_feed.totals, clock() - began - _feed.seconds)


def _read(index: int) -> list[Chunk]:
    return _feed.read(index)


def _keep(total: Any) -> None:
    key, counts = total
    _feed.totals[key] = counts
