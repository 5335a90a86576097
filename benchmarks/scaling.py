"""How cost and memory grow: with the reports, the values of a domain, the collections, and the ids to remember.

    python -m benchmarks.scaling

Batches of 1,000 uRR reports in ten windows, each row in a process of its own. The messages are made on the way, and
the time that takes is left out; the memory is all that the process ever had.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from benchmarks.graphs import aggregate, run_graph
from benchmarks.rows import Row, alone, print_table
from benchmarks.workloads import SIZE, batches

REPORTS = (1_000_000, 10_000_000, 100_000_000)
SIZES = (SIZE, 12_800, 1 << 20)
COLLECTIONS = (10, 100, 1000)


class Scale(NamedTuple):
    """How much there is of everything."""

    reports: int
    size: int = SIZE
    collections: int = 1
    deduplicate: bool = False

    def __str__(self) -> str:
        collections = "1 collection" if self.collections == 1 else f"{self.collections:,} collections"
        return f"|X| = {self.size:,}, {collections}{'' if self.deduplicate else ', no deduplication'}"


def scales(*, quick: bool) -> list[Scale]:
    """List what is measured: each quantity grows on its own."""
    reports, sizes = (REPORTS[:1], SIZES[:2]) if quick else (REPORTS, SIZES)
    middle = reports[len(reports) // 2]
    return [
        *(Scale(n) for n in reports),
        *(Scale(middle, size) for size in sizes[1:]),
        *(Scale(middle, collections=collections) for collections in COLLECTIONS[: 1 if quick else None]),
        *(Scale(n, deduplicate=True) for n in reports if n <= middle),
    ]


def run(scale: Scale) -> float:
    """Aggregate once; returns the seconds that it took."""
    workload = batches("urr", scale.reports, collections=scale.collections, size=scale.size)
    return run_graph(partial(aggregate, deduplicate=scale.deduplicate), workload).seconds


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure everything; ``quick`` leaves out what is large."""
    for scale in scales(quick=quick):
        seconds, megabytes = alone(run, scale)
        yield Row("scaling", str(scale), scale.reports, seconds, megabytes=megabytes)


if __name__ == "__main__":
    print_table(rows())
