"""A guard for every change: ratios of rates in one run must not fall below a margin. Never times.

    python -m benchmarks --guard

The margins leave room for the noise of a shared machine, about half of what is measured: they catch a fast path that
is lost, and not a few percent. So one turn is enough for a margin that is kept. The others are measured again, and
medians decide.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from benchmarks import merging, rejects, restart, sliding
from benchmarks.kernels import unpacked
from benchmarks.rows import in_turn, timed
from benchmarks.throughput import MEASUREMENTS, measure
from benchmarks.workloads import singles
from uldp.mechanisms.randomizers.packed_bits import count_bits
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.codec.stored import decode_messages
from uldp.schemas.reasons import Reason

#: How often that is measured whose margin one turn has not kept.
REPEAT = 3
#: Of the reports of the benchmark: the fewer, the more of what is measured is how Beam starts.
SHARE = 0.25


class Margin(NamedTuple):
    """The rate of one measurement must be at least ``least`` times that of another."""

    fast: str
    slow: str
    least: float

    def judge(self, measured: Mapping[str, float]) -> tuple[bool, str]:
        """Say whether the margin is kept, and in one line by how much."""
        ratio = measured[self.fast] / measured[self.slow]
        kept = ratio >= self.least
        verdict = "ok" if kept else "TOO SLOW"
        return kept, f"{verdict}: {self.fast} / {self.slow} = {ratio:.2f}, must be {self.least:g} or more"


MARGINS = (
    Margin("symbols, no deduplication", "symbols, naive graph", 8),
    Margin("symbols", "symbols, naive graph", 6),
    Margin("symbols", "symbols, naive graph, window in key", 3),
    Margin("symbols, windows of a day every 5 min", "symbols, windows of a day", 0.35),
    Margin("bits, no deduplication", "bits, naive graph", 5),
    Margin("bits", "bits, naive graph", 3),
    Margin("uRR batches, no deduplication", "symbols, no deduplication", 5),
    Margin("uRR batches", "symbols", 2),
    Margin("uRAP batches", "bits, naive graph", 12),
    # Each pane and each collection has its price, and a quarter of the reports has as many; but no more than that.
    Margin("symbols of 1,000 collections", "symbols", 0.25),
    Margin("uRR batches of 1,000 collections", "uRR batches", 0.35),
    Margin("symbols in 10,000 windows, no deduplication", "symbols in 100 windows, no deduplication", 0.25),
    # A sender of reports that cannot be counted takes no more of a core than three who send others.
    Margin("uRR batches, forged", "uRR batches", 0.33),
)


#: Among the kernels, on so many reports of so many bits, or messages of one report each.
KERNEL_MARGINS = (Margin("count_bits", "unpacked", 2), Margin("a block as columns", "a block by fastavro", 8))
KERNEL_SHAPE = 8192, 625
KERNEL_REPEAT = 31


#: A stream is read again in a time that its reports decide: ten times the segments take less than four times as long.
RESTART_MARGINS = (Margin("1,000 segments that wait", "100 segments that wait", 0.25),)
RESTART_REPORTS = 2_000


def restart_rates() -> dict[str, float]:
    """Measure how fast a stream is read again whose reports are in more segments, or in fewer."""
    runs = {f"{n:,} segments that wait": partial(restart.run, n, RESTART_REPORTS) for n in (100, 1_000)}
    return {name: RESTART_REPORTS / taken for name, taken in in_turn(runs, REPEAT).items()}


#: A report that is in 1,440 windows of a stream costs its bundle as much as one in a single window.
SLIDING_MARGINS = (Margin("sliding 24 h / 1 min", "fixed 1 h", 0.67),)
SLIDING_SEGMENTS = 60


def sliding_rates() -> dict[str, float]:
    """Measure how fast a stream is counted in sliding windows, and in fixed ones."""
    runs = {name: partial(sliding.run, window, 1, SLIDING_SEGMENTS) for name, window in sliding.WINDOWS.items()}
    return {name: 1 / taken for name, taken in in_turn(runs, REPEAT).items()}


#: The watermark passes 1,440 windows at the close of a stream; one by one, they take 45 times as long as 24.
CLOSE_MARGINS = (Margin("sliding 24 h / 1 min", "fixed 1 h", 0.15),)


def close_rates() -> dict[str, float]:
    """Measure how fast a stream of a day closes, in sliding windows and in fixed ones."""

    def seconds(window: dict[str, str]) -> float:
        return sliding.close(window)[0]

    runs = {name: partial(seconds, window) for name, window in sliding.WINDOWS.items()}
    return {name: 1 / taken for name, taken in in_turn(runs, REPEAT).items()}


#: A merge by ids takes no longer than the backfills whose results it joins; to sort ids as bytes, it takes four times.
MERGE_MARGINS = (Margin("their merge", "two backfills that keep ids", 0.8),)


def merge_rates() -> dict[str, float]:
    """Measure how fast the results of two backfills are merged."""
    return {row.label: row.rate or 0.0 for row in merging.rows(quick=True)}


#: A rejected report takes less than ten times as long as one that is counted; if each had a record, it would take 60.
REJECT_MARGINS = (Margin(Reason.TOO_EARLY, "counted", 0.1),)
REJECTS = 8_000


def reject_rates() -> dict[str, float]:
    """Measure how fast reports are counted, and how fast they are rejected."""
    makers = {"counted": rejects.COUNTED, Reason.TOO_EARLY: rejects.MAKERS[Reason.TOO_EARLY]}
    return {name: 1 / taken for name, taken in rejects.costs(makers, REJECTS, REPEAT).items()}


def kernel_rates() -> dict[str, float]:
    """Measure the kernel that counts bits, the one that reads the messages of a block, and the plain ways to do it."""
    n, size = KERNEL_SHAPE
    packed = np.random.default_rng(3).integers(0, 256, (n, -(-size // 8)), dtype=np.uint8)
    stored = EncodedMessages.of(islice(singles("urr", n).messages(), n))
    block = stored.buffer.tobytes()
    of_bits: dict[str, Callable[[], object]] = {
        "count_bits": partial(count_bits, [packed], size),
        "unpacked": partial(unpacked, packed, size),
    }
    of_blocks: dict[str, Callable[[], object]] = {
        "a block as columns": lambda: list(decode_messages(n, block, "", 0)),
        "a block by fastavro": lambda: list(stored.decode()),
    }
    # Each pair alone: fastavro leaves nothing in the caches, which decide how fast bits are counted.
    seconds = {
        name: taken
        for pair in (of_bits, of_blocks)
        for name, taken in in_turn({name: partial(timed, each) for name, each in pair.items()}, KERNEL_REPEAT).items()
    }
    return {name: n / taken for name, taken in seconds.items()}


def graph_rates(margins: Sequence[Margin], repeat: int) -> dict[str, float]:
    """Measure how fast the graphs count that the margins name."""
    named = {label for margin in margins for label in (margin.fast, margin.slow)}
    graphs = measure([measurement for measurement in MEASUREMENTS if measurement.label in named], SHARE, repeat)
    return {label: graph.rate for label, graph in graphs.items()}


def guard() -> Iterator[tuple[bool, str]]:
    """Measure what the margins name, and judge each."""
    parts = (
        (KERNEL_MARGINS, kernel_rates),
        (RESTART_MARGINS, restart_rates),
        (SLIDING_MARGINS, sliding_rates),
        (CLOSE_MARGINS, close_rates),
        (MERGE_MARGINS, merge_rates),
        (REJECT_MARGINS, reject_rates),
    )
    for margins, rates in parts:
        measured = rates()
        for margin in margins:
            yield margin.judge(measured)
    once = graph_rates(MARGINS, 1)
    missed = [margin for margin in MARGINS if not margin.judge(once)[0]]
    again = graph_rates(missed, REPEAT) if missed else {}
    for margin in MARGINS:
        yield margin.judge(again if margin in missed else once)
