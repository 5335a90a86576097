"""How fast reports are counted: ``Aggregate`` against the graph that Beam's manual suggests, in one run.

    python -m benchmarks.throughput --reports 1000000 --repeat 3

Every graph runs in this process, on one thread of Beam's local runner, from messages that are already in memory; its
time is all that the runner takes, from building the graph to its last result. Runs alternate, so that a slow minute
of the machine slows them all, and the table shows medians. All graphs must give the same counts.
"""

import argparse
import gc
import io
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam as beam
import fastavro
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import PCollection
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.window import FixedWindows, TimestampedValue

from mechanisms.catalog import build_mechanism
from schemas.collection import CollectionSpec, MechanismName
from schemas.durations import milliseconds
from schemas.framing import HEADER_SIZE, load_schema, report_store
from schemas.records import Counts, Message, Report, ReportBatch, SupportCounts
from transforms.aggregate import Aggregate
from transforms.columnar import Layout, decode_columns, report_schema
from transforms.targets import targets

REPORTS, REPEAT = 1_000_000, 3
#: Batches cost so much less per report that a run of as many would measure how fast Beam starts.
REPORTS_IN_BATCHES = 10
BATCH_SIZE = 1000

SIZE, EPSILON = 625, 1.0
WINDOW, WINDOWS = timedelta(hours=1), 10
START = 1_767_225_600_000
COLLECTIONS = (
    "check-ins",
    "page-loads",
    "search-terms",
    "battery-levels",
    "dictation-locales",
    "blocked-third-party",
    "startup-seconds-by-os",
    "crashed-system-library",
    "keyboard-layouts-in-use",
    "emoji-by-keyboard-locale",
)

#: Support counts by (collection, version, start of the window).
Totals = dict[tuple[str, int, int], list[int]]


class Workload(NamedTuple):
    """Messages in memory, and how many reports they hold."""

    specs: tuple[CollectionSpec, ...]
    messages: list[Message]
    reports: int


def collection_specs(mechanism: MechanismName) -> tuple[CollectionSpec, ...]:
    """Ten collections of 625 values each, every tenth of them sensitive, in windows of an hour."""
    return tuple(
        CollectionSpec.parse(
            {
                "collection": name,
                "version": 1,
                "domain": {"size": SIZE},
                "sensitive": list(range(0, SIZE, 10)),
                "mechanism": {"name": mechanism, "epsilon": EPSILON},
                "window": {"size": WINDOW},
            }
        )
        for name in COLLECTIONS
    )


def single_reports(reports: int, rng: np.random.Generator) -> Workload:
    """One message for each report, of a random collection, window and value, under uRR."""
    specs = collection_specs("urr")
    symbols = build_mechanism(specs[0]).perturb(rng.integers(0, SIZE, reports), rng)
    event_times = _event_times(reports, rng).tolist()
    messages = []
    for spec_index, event_time, symbol in zip(
        rng.integers(0, len(specs), reports).tolist(), event_times, symbols.tolist(), strict=True
    ):
        collection, version = specs[int(spec_index)].key
        report = Report(collection, version, rng.bytes(16), event_time, symbol)
        messages.append(Message(report.encode(), event_time))
    return Workload(specs, messages, reports)


def batches(mechanism: MechanismName, reports: int, rng: np.random.Generator) -> Workload:
    """Messages of ``BATCH_SIZE`` reports each, of one collection and of random windows and values."""
    specs = collection_specs(mechanism)
    # To obfuscate bits takes longer than to count them: batches draw their payloads from a pool.
    pool = build_mechanism(specs[0]).perturb(rng.integers(0, SIZE, 20_000), rng)
    messages = []
    for index in range(reports // BATCH_SIZE):
        collection, version = specs[index % len(specs)].key
        event_times = _event_times(BATCH_SIZE, rng)
        payloads = pool[rng.integers(0, len(pool), BATCH_SIZE)].tobytes()
        batch = ReportBatch(
            collection,
            version,
            rng.bytes(16 * BATCH_SIZE),
            event_times.tobytes(),
            symbols=payloads if pool.ndim == 1 else None,
            bits=payloads if pool.ndim == 2 else None,
        )
        messages.append(Message(batch.encode(), int(event_times.max())))
    return Workload(specs, messages, BATCH_SIZE * len(messages))


def _event_times(n: int, rng: np.random.Generator) -> Counts:
    return START + rng.integers(0, WINDOWS * milliseconds(WINDOW), n)


class Histogram(beam.CombineFn):
    """Counts each symbol of a domain, one at a time."""

    def create_accumulator(self) -> Counts:
        """Return no counts."""
        return np.zeros(SIZE, dtype=np.int64)

    def add_input(self, mutable_accumulator: Counts, element: int) -> Counts:
        """Count one symbol."""
        mutable_accumulator[element] += 1
        return mutable_accumulator

    def merge_accumulators(self, accumulators: Iterable[Counts]) -> Counts:
        """Add counts."""
        return sum(accumulators, self.create_accumulator())

    def extract_output(self, accumulator: Counts) -> list[int]:
        """Return the counts."""
        counts: list[int] = accumulator.tolist()
        return counts


def naive(messages: PCollection[Message], specs: Sequence[CollectionSpec]) -> PCollection[Any]:
    """Decode each report, give it its event time, window it, count it.

    Of the two natural ways to count, this is the faster: a vector for each collection. ``Count.PerElement`` by
    (collection, version, symbol) takes more than twice as long.
    """
    counts: PCollection[Any] = (
        messages
        | "Decode" >> beam.Map(_decode_body)
        | "TakeTime" >> beam.Map(_timestamped)
        | "Window" >> beam.WindowInto(FixedWindows(WINDOW.total_seconds()))
        | "Count" >> beam.CombinePerKey(Histogram())  # type: ignore[no-untyped-call]
        | "Name" >> beam.Map(_named)
    )
    return counts


def _decode_body(message: Message) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(message.data[HEADER_SIZE:]), load_schema("report"), None)


def _timestamped(report: Any) -> Any:
    key = report["collection"], report["version"]
    return TimestampedValue((key, report["payload"]), report["event_time"] / 1000)


def _named(element: Any, window: Any = beam.DoFn.WindowParam) -> Any:
    key, counts = element
    return (*key, window.start.micros // 1000), counts


def source(messages: PCollection[Message], specs: Sequence[CollectionSpec]) -> PCollection[Any]:
    """Do nothing with each message: what Beam takes to hand it over."""
    nothing: PCollection[Any] = messages | "Drop" >> beam.FlatMap(_nothing)
    return nothing


def _nothing(message: Message) -> tuple[()]:
    return ()


def aggregate(
    messages: PCollection[Message], specs: Sequence[CollectionSpec], *, deduplicate: bool
) -> PCollection[Any]:
    """Take the support counts of this project's graph."""
    aggregated = messages | "Aggregate" >> Aggregate(specs, deduplicate=deduplicate)
    counts: PCollection[Any] = aggregated.counts | "Name" >> beam.Map(_named_support)
    return counts


def _named_support(support: SupportCounts) -> Any:
    return (support.collection, support.version, support.window_start), support.counts.tolist()


Graph = Callable[[PCollection[Message], Sequence[CollectionSpec]], PCollection[Any]]

#: The local runner's worker is a thread of this process, so messages and results need not pass through the graph.
_messages: list[Message] = []
_totals: Totals = {}
_CHUNK = 10_000


def run_graph(graph: Graph, workload: Workload) -> Totals:
    """Run a graph over the messages of a workload, and return the counts that it gives."""
    global _messages
    _messages = workload.messages
    _totals.clear()
    options = PipelineOptions(["--direct_running_mode=in_memory", "--direct_num_workers=1"])
    with beam.Pipeline(FnApiRunner(), options=options) as pipeline:
        chunks = pipeline | "Chunks" >> beam.Create(range(0, len(_messages), _CHUNK), reshuffle=False)
        messages = chunks | "Messages" >> beam.FlatMap(_chunk).with_output_types(Message)
        _ = graph(messages, workload.specs) | "Keep" >> beam.Map(_keep)
    return dict(_totals)


def _chunk(start: int) -> list[Message]:
    return _messages[start : start + _CHUNK]


def _keep(total: Any) -> None:
    key, counts = total
    _totals[key] = counts


def run_decode_columns(workload: Workload) -> None:
    """Decode single reports as columns, as many at a time as the graph does."""
    schema = report_schema()
    layouts = [Layout.of(schema, *target.spec.key, target.bits_width) for target in targets(workload.specs).values()]
    for start in range(0, len(workload.messages), 8192):
        decode_columns([message.data for message in workload.messages[start : start + 8192]], layouts)


def run_plain_decoder(workload: Workload) -> None:
    """Decode messages one by one, as the reference does."""
    decode = report_store().decode
    for message in workload.messages:
        decode(message.data)


class Measurement(NamedTuple):
    """A row of the table."""

    label: str
    workload: str
    run: Callable[[Workload], Totals | None]


MEASUREMENTS = (
    Measurement("source alone", "single", partial(run_graph, source)),
    Measurement("naive graph", "single", partial(run_graph, naive)),
    Measurement("Aggregate, no deduplication", "single", partial(run_graph, partial(aggregate, deduplicate=False))),
    Measurement("Aggregate", "single", partial(run_graph, partial(aggregate, deduplicate=True))),
    Measurement("columnar decoder alone", "single", run_decode_columns),
    Measurement("plain decoder alone", "single", run_plain_decoder),
    Measurement("uRR batches, no deduplication", "urr", partial(run_graph, partial(aggregate, deduplicate=False))),
    Measurement("uRR batches", "urr", partial(run_graph, partial(aggregate, deduplicate=True))),
    Measurement("uRAP batches, no deduplication", "urap", partial(run_graph, partial(aggregate, deduplicate=False))),
    Measurement("uRAP batches", "urap", partial(run_graph, partial(aggregate, deduplicate=True))),
)


def measure(workloads: Mapping[str, Workload], repeat: int) -> dict[str, float]:
    """Run every measurement ``repeat`` times, in turn.

    Returns:
        The median rate of each, in reports per second.

    Raises:
        AssertionError: if two graphs count one workload differently.
    """
    seconds: dict[str, list[float]] = {measurement.label: [] for measurement in MEASUREMENTS}
    counted: dict[str, Totals] = {}
    for _ in range(repeat):
        for label, name, run in MEASUREMENTS:
            start = time.perf_counter()
            totals = run(workloads[name])
            seconds[label].append(time.perf_counter() - start)
            if totals:
                assert counted.setdefault(name, totals) == totals, f"{label} counts differently"
    return {label: workloads[name].reports / statistics.median(seconds[label]) for label, name, _ in MEASUREMENTS}


def table(rates: Mapping[str, float]) -> Iterator[str]:
    """Write the rates as lines of a Markdown table."""
    yield "| | reports/s | to naive graph | to source alone |"
    yield "| --- | ---: | ---: | ---: |"
    for label, rate in rates.items():
        yield (f"| {label} | {rate:,.0f} | {rate / rates['naive graph']:.1f}x | {rate / rates['source alone']:.2f}x |")


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, default=REPORTS, help="single reports; batches hold ten times as many")
    parser.add_argument("--repeat", type=int, default=REPEAT, help="runs of each, of which the median is shown")
    parser.add_argument("--out", type=Path, help="write the table to this file too")
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    workloads = {
        "single": single_reports(arguments.reports, rng),
        "urr": batches("urr", REPORTS_IN_BATCHES * arguments.reports, rng),
        "urap": batches("urap", REPORTS_IN_BATCHES * arguments.reports, rng),
    }
    gc.collect()
    gc.freeze()  # a stream does not hold a million messages, which the collector would visit again and again
    lines = "\n".join(table(measure(workloads, arguments.repeat)))
    print(lines)
    if arguments.out is not None:
        arguments.out.write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    # Beam pickles what stands in __main__ by value, with the messages; the module by its name goes by reference.
    from benchmarks import throughput

    throughput.main()
