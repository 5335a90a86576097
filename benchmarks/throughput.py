"""How fast reports are counted: ``Aggregate`` against the graphs that Beam's manual suggests, in one run.

    python -m benchmarks.throughput

Runs alternate, and the table shows the means of two. Graphs that count the same messages must give the same counts.
Memory is that of a process that runs the graph alone, of which Python, Beam and the messages under way are the
source's.
"""

import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from benchmarks.graphs import Run, Totals, aggregate, keyed, naive, presummed, run_graph, source
from benchmarks.rows import Row, alone, clock, print_table
from benchmarks.workloads import CHUNK, Workload, batches, singles
from uldp.collector.collections import serve
from uldp.mechanisms.catalog import build_protocol
from uldp.schemas.codec.columnar import Layout, decode_columns, report_schema
from uldp.schemas.codec.packed import Bodies

REPEAT = 2
#: How many messages the graph decodes at once.
AT_ONCE = 8192


def decode_alone(workload: Workload) -> Run:
    """Decode single reports as columns, and do nothing with them."""
    schema = report_schema()
    layouts = [Layout.of(schema, *each.spec.key, each.mechanism.form.width) for each in serve(workload.specs).values()]
    seconds = 0.0
    for index in range(workload.chunks):
        data = [message.data for message in workload.chunk(index)]
        began = clock()
        for start in range(0, len(data), AT_ONCE):
            decode_columns(Bodies.of(data[start : start + AT_ONCE]), layouts)
        seconds += clock() - began
    return Run({}, seconds)


def count_alone(workload: Workload) -> Run:
    """Count as many payloads as there are reports, and do nothing else."""
    mechanism = build_protocol(workload.specs[0]).mechanism
    began = clock()
    for _ in range(workload.reports // len(workload.pool)):
        mechanism.statistic(workload.pool)
    return Run({}, clock() - began)


class Measurement(NamedTuple):
    """What is run on which workload, and the labels of what it is compared with."""

    label: str
    workload: str
    run: Callable[[Workload], Run]
    naive: str | None = None
    keyed: str | None = None
    limit: str | None = None


START = "start of a job"
_COUNT = partial(run_graph, partial(aggregate, deduplicate=False))
_COUNT_ONE_BY_ONE = partial(run_graph, partial(aggregate, deduplicate=False, one_by_one=True))
_COUNT_ONCE = partial(run_graph, partial(aggregate, deduplicate=True))
_COUNT_ONCE_ONE_BY_ONE = partial(run_graph, partial(aggregate, deduplicate=True, one_by_one=True))
_DAYS, _SLIDING = "symbols, windows of a day", "symbols, windows of a day every 5 min"


def days(reports: int, **sliding: timedelta) -> Workload:
    """Single reports under uRR, to be counted in windows of a day."""
    return singles("urr", reports).windowed(size=timedelta(days=1), **sliding)


def spans(reports: int, window: timedelta) -> Workload:
    """Single reports of one collection in ten hours, to be counted in windows of this size."""
    return singles("urr", reports, collections=1).windowed(size=window)


#: How many reports a workload has, and how it is made. The naive graphs are slow, and have fewer.
WORKLOADS: dict[str, tuple[int, Callable[[int], Workload]]] = {
    "first symbols": (CHUNK, partial(singles, "urr")),
    "symbols": (2_000_000, partial(singles, "urr")),
    "few symbols": (200_000, partial(singles, "urr")),
    # Enough that counting them costs more than publishing 4,000 windows, which is the same for any number of reports.
    "days": (4_000_000, days),
    "sliding": (4_000_000, partial(days, period=timedelta(minutes=5))),
    "symbols of 1,000 collections": (2_000_000, partial(singles, "urr", collections=1000)),
    "100 windows": (2_000_000, partial(spans, window=timedelta(minutes=6))),
    "10,000 windows": (2_000_000, partial(spans, window=timedelta(seconds=3.6))),
    "bits": (1_000_000, partial(singles, "urap")),
    "few bits": (200_000, partial(singles, "urap")),
    "uRR": (40_000_000, partial(batches, "urr")),
    "uRAP": (20_000_000, partial(batches, "urap")),
    "mixed uRR": (6_000_000, partial(batches, "urr", mixed=True)),
    "mixed uRAP": (6_000_000, partial(batches, "urap", mixed=True)),
    # To deduplicate takes longer for each report, above all of bits, and memory: fewer must do.
    "fewer uRR": (20_000_000, partial(batches, "urr")),
    "fewer uRR of 1,000 collections": (20_000_000, partial(batches, "urr", collections=1000)),
    "forged uRR": (20_000_000, partial(batches, "urr", forged=True)),
    "fewer uRAP": (6_000_000, partial(batches, "urap")),
}


def naive_graphs(kind: str) -> tuple[str, str]:
    """Return the labels of both naive graphs on single reports of a kind."""
    return f"{kind}, naive graph", f"{kind}, naive graph, window in key"


def _of_singles(kind: str) -> tuple[Measurement, ...]:
    """Compare graphs on single reports with the naive ones, and with decoding alone."""
    to = *naive_graphs(kind), f"{kind}, decoded alone"
    slow, faster, limit = to
    return (
        Measurement(slow, f"few {kind}", partial(run_graph, naive), *to),
        Measurement(faster, f"few {kind}", partial(run_graph, keyed), *to),
        Measurement(f"{kind}, best graph by messages", kind, partial(run_graph, presummed), *to),
        Measurement(limit, kind, decode_alone, *to),
        Measurement(f"{kind} one by one, no deduplication", kind, _COUNT_ONE_BY_ONE, *to),
        Measurement(f"{kind} one by one", kind, _COUNT_ONCE_ONE_BY_ONE, *to),
        Measurement(f"{kind}, no deduplication", kind, _COUNT, *to),
        Measurement(kind, kind, _COUNT_ONCE, *to),
    )


def _of_batches(mechanism: str, kind: str, deduplicated: str) -> tuple[Measurement, ...]:
    """Compare graphs on batches with the naive ones on single reports, and with counting alone."""
    limit = f"{mechanism}, counted alone"
    to = *naive_graphs(kind), limit
    return (
        Measurement(limit, mechanism, count_alone, *to),
        Measurement(f"{mechanism} batches, no deduplication", mechanism, _COUNT, *to),
        Measurement(f"{mechanism} batches of mixed windows, no deduplication", f"mixed {mechanism}", _COUNT, *to),
        Measurement(f"{mechanism} batches", deduplicated, _COUNT_ONCE, *to),
    )


MEASUREMENTS = (
    Measurement(START, "first symbols", _COUNT),
    Measurement("source alone", "symbols", partial(run_graph, source)),
    *_of_singles("symbols"),
    Measurement(_DAYS, "days", _COUNT_ONCE, *naive_graphs("symbols"), "symbols, decoded alone"),
    Measurement(_SLIDING, "sliding", _COUNT_ONCE, *naive_graphs("symbols"), "symbols, decoded alone"),
    Measurement("symbols of 1,000 collections, no deduplication", "symbols of 1,000 collections", _COUNT),
    Measurement("symbols of 1,000 collections", "symbols of 1,000 collections", _COUNT_ONCE),
    Measurement("symbols in 100 windows, no deduplication", "100 windows", _COUNT),
    Measurement("symbols in 10,000 windows, no deduplication", "10,000 windows", _COUNT),
    *_of_singles("bits"),
    *_of_batches("uRR", "symbols", "fewer uRR"),
    Measurement("uRR batches, forged", "forged uRR", _COUNT_ONCE, *naive_graphs("symbols"), "uRR, counted alone"),
    Measurement("uRR batches of 1,000 collections", "fewer uRR of 1,000 collections", _COUNT_ONCE),
    *_of_batches("uRAP", "bits", "fewer uRAP"),
)


class Measured(NamedTuple):
    """How many reports took how long, the median; and the peak of the resident memory, if it was asked for."""

    reports: int
    seconds: float
    megabytes: float | None = None

    @property
    def rate(self) -> float:
        """Reports per second."""
        return self.reports / self.seconds


def measure(
    measurements: Sequence[Measurement], share: float, repeat: int, *, memory: bool = False
) -> dict[str, Measured]:
    """Run every measurement ``repeat`` times, in turn.

    Args:
        measurements: What to run.
        share: Of the reports of each workload.
        repeat: How often.
        memory: Whether the last turn of each but the limits is in a process of its own, to see what memory that takes.

    Returns:
        What was measured, by label.

    Raises:
        AssertionError: if two graphs count one workload differently.
    """
    workloads = {name: build(name, share) for name in {measurement.workload for measurement in measurements}}
    limits = {measurement.limit for measurement in measurements}
    seconds: dict[str, list[float]] = defaultdict(list)
    megabytes: dict[str, float] = {}
    counted: dict[str, Totals] = {}
    for left in reversed(range(repeat)):
        for measurement in measurements:
            label, name = measurement.label, measurement.workload
            if memory and not left and label not in limits:
                run, megabytes[label] = alone(run_alone, label, share)
            else:
                run = measurement.run(workloads[name])
            if run.totals:
                assert counted.setdefault(name, run.totals) == run.totals, f"{label} counts differently"
            print(f"        {label}: {run.seconds:.2f} s", file=sys.stderr, flush=True)
            seconds[label].append(run.seconds)
    return {
        label: Measured(workloads[name].reports, statistics.median(seconds[label]), megabytes.get(label))
        for label, name, *_ in measurements
    }


def build(name: str, share: float) -> Workload:
    """Build a workload by its name, with a ``share`` of its reports."""
    reports, make = WORKLOADS[name]
    return make(round(share * reports))


def run_alone(label: str, share: float) -> Run:
    """Run a measurement in a process that has run nothing else but a small job: the first one has more to load."""
    by_label = {measurement.label: measurement for measurement in MEASUREMENTS}
    for measurement in (by_label[START], by_label[label]):
        run = measurement.run(build(measurement.workload, share))
    return run


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure everything; ``quick`` takes a tenth of the reports, once."""
    share, repeat = (0.1, 1) if quick else (1.0, REPEAT)
    measured = measure(MEASUREMENTS, share, repeat, memory=True)
    for label, _, _, naive_label, keyed_label, limit_label in MEASUREMENTS:
        it = measured[label]
        yield Row(
            "throughput",
            label,
            it.reports,
            it.seconds,
            it.rate / measured[naive_label].rate if naive_label else None,
            it.rate / measured[keyed_label].rate if keyed_label else None,
            it.rate / measured[limit_label].rate if limit_label else None,
            it.megabytes,
            f"{measured[_DAYS].rate / it.rate:.2f} times the cost of windows of a day" if label == _SLIDING else "",
        )


if __name__ == "__main__":
    print_table(rows())
