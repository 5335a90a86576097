"""The mechanisms for large domains: how fast they are counted beside uRR, and what a window costs.

    python -m benchmarks.large_domains

Batches go through the counting graph without deduplication, in one process; so does uRR. Any-seed OLH hashes each value
for each report, in memory, as the libraries do, which do 4,600 reports a second with 625 values. A window is decoded
from cells to the unbiased estimate of every value.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.graphs import aggregate, run_graph
from benchmarks.rows import Row, in_turn, print_table, timed
from benchmarks.workloads import EPSILON, SIZE, Workload, batches
from uldp.mechanisms.estimators.by_name import empirical
from uldp.mechanisms.randomizers.fold import FoldedMechanism
from uldp.mechanisms.randomizers.hadamard_response import HadamardResponse
from uldp.mechanisms.randomizers.linear_hashing import LinearHashing
from uldp.mechanisms.randomizers.local_hashing import LocalHashing
from uldp.mechanisms.randomizers.projective_geometry import ProjectiveGeometryResponse
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.specs.mechanism_names import MechanismName

REPORTS, HASHED, REPEAT = 5_000_000, 100_000, 5
MECHANISMS: tuple[MechanismName, ...] = ("urr", "hrr", "linear-olh", "pgr")
#: Reports a second that the libraries count with ``SIZE`` values and any-seed OLH.
LIBRARIES = 4_600
SIZES = (SIZE, 1_000_000)


def counted(workload: Workload) -> float:
    """Return the seconds in which the graph counts the reports."""
    return run_graph(partial(aggregate, deduplicate=False), workload).seconds


def decoded(mechanism: FoldedMechanism, cells: Counts) -> Floats:
    """Estimate every value without bias."""
    return empirical(mechanism.channel, mechanism.fold.supports(cells), int(cells.sum()))


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure everything; ``quick`` takes a tenth of the reports, and the smaller domain."""
    reports, hashed, sizes = (REPORTS // 10, HASHED // 10, SIZES[:1]) if quick else (REPORTS, HASHED, SIZES)
    runs: dict[str, Callable[[], float]] = {name: partial(counted, batches(name, reports)) for name in MECHANISMS}
    seconds = in_turn(runs, REPEAT)
    for name, taken in seconds.items():
        yield Row("counting", name, reports, taken, remark=f"{taken / seconds['urr']:.2f} times the time of urr")
    rng = np.random.default_rng(1)
    olh = LocalHashing(SIZE, EPSILON)
    payloads = olh.perturb(rng.integers(0, SIZE, hashed), rng)
    taken = in_turn({"olh": partial(timed, partial(olh.statistic, payloads))}, REPEAT)["olh"]
    remark = f"{hashed / taken / LIBRARIES:.0f} times the {LIBRARIES:,} reports/s of libraries"
    yield Row("counting", f"olh, any seed, {SIZE} values, in memory", hashed, taken, remark=remark)
    for size in sizes:
        for kind in (HadamardResponse, LinearHashing, ProjectiveGeometryResponse):
            mechanism = kind(size, EPSILON)
            cells = rng.integers(0, 1000, mechanism.statistic_size)
            decoded(mechanism, cells)  # tables of the space are made once
            seconds = in_turn({"": partial(timed, partial(decoded, mechanism, cells))}, REPEAT)
            label = f"{kind.__name__}, {size:,} values, {mechanism.statistic_size:,} cells"
            yield Row("decoding", label, 1, seconds[""])


if __name__ == "__main__":
    print_table(rows())
