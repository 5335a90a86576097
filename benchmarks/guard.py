"""A guard for every change: ratios of rates in one run must not fall below a margin. Never times.

    python -m benchmarks --guard

The margins leave room for the noise of a shared machine, about half of what is measured: they catch a fast path that
is lost, and not a few percent.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.kernels import unpacked
from benchmarks.rows import in_turn, timed
from benchmarks.throughput import MEASUREMENTS, measure
from uldp.mechanisms.packed_bits import count_bits

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
    Margin("symbols, windows of a day every 5 min", "symbols, windows of a day", 0.35),
    Margin("bits, no deduplication", "bits, naive graph", 5),
    Margin("bits", "bits, naive graph", 3),
    Margin("uRR batches, no deduplication", "symbols, no deduplication", 5),
    Margin("uRR batches", "symbols", 2),
    Margin("uRAP batches", "bits, naive graph", 12),
    # A sender of reports that cannot be counted takes no more of a core than three who send others.
    Margin("uRR batches, forged", "uRR batches", 0.33),
)


#: Among the kernels, on so many reports of so many bits.
KERNEL_MARGINS = (Margin("count_bits", "unpacked", 2),)
KERNEL_SHAPE = 8192, 625
KERNEL_REPEAT = 31


def kernel_rates() -> dict[str, float]:
    """Measure the kernel that counts bits, and the plain way to do it."""
    n, size = KERNEL_SHAPE
    packed = np.random.default_rng(3).integers(0, 256, (n, -(-size // 8)), dtype=np.uint8)
    kernels = {"count_bits": partial(count_bits, [packed], size), "unpacked": partial(unpacked, packed, size)}
    seconds = in_turn({name: partial(timed, kernel) for name, kernel in kernels.items()}, KERNEL_REPEAT)
    return {name: n / taken for name, taken in seconds.items()}


def guard() -> Iterator[tuple[bool, str]]:
    """Measure what the margins name, and judge each."""
    measured = kernel_rates()
    for margin in KERNEL_MARGINS:
        yield margin.judge(measured)
    named = {label for margin in MARGINS for label in (margin.fast, margin.slow)}
    graphs = measure([measurement for measurement in MEASUREMENTS if measurement.label in named], SHARE, REPEAT)
    measured = {label: graph.rate for label, graph in graphs.items()}
    for margin in MARGINS:
        yield margin.judge(measured)
