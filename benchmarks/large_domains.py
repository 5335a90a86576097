"""The mechanisms for large domains: how fast they are counted beside uRR, and what a window costs.

    python -m benchmarks.large_domains

Batches go through the counting graph without deduplication, in one process; so does uRR. Any-seed OLH hashes each value
for each report, in memory, as pure-ldp and multi-freq-ldpy do, which need the extra ``bench``. The counts of a pane are
tested as the graph does it, and a window is decoded from cells to the unbiased estimate of every value.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.graphs import aggregate, run_graph
from benchmarks.peer_estimates import multi_freq, oracle, shares
from benchmarks.peers import INSTALL
from benchmarks.rows import Row, in_turn, print_table, timed
from benchmarks.workloads import EPSILON, SIZE, Workload, batches, collection_specs
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.estimators.by_name import empirical
from uldp.mechanisms.families.folds.randomizer import HadamardResponse, LinearHashing, ProjectiveGeometryResponse
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.kernels.hashing import default_buckets
from uldp.mechanisms.randomizers.fold import FoldedMechanism
from uldp.schemas.arrays import Counts, Floats

REPORTS, REPEAT = 5_000_000, 5
#: Reports under any-seed OLH, here and of the libraries.
HASHED, HASHED_BY_PEERS = 100_000, 1_000
MECHANISMS: tuple[str, ...] = ("urr", "hrr", "linear-olh", "uhr", "pgr")
#: The mechanisms whose test of a pane is timed, and the reports of a pane.
TESTED: tuple[str, ...] = (*MECHANISMS, "ubd", "uss")
IN_PANE = 50_000
SIZES = (SIZE, 1_000_000)


def counted(workload: Workload) -> float:
    """Return the seconds in which the graph counts the reports."""
    return run_graph(partial(aggregate, deduplicate=False), workload).seconds


def decoded(mechanism: FoldedMechanism, cells: Counts) -> Floats:
    """Estimate every value without bias."""
    return empirical(mechanism.channel, mechanism.fold(cells), int(cells.sum()))


def servers_of_peers(rng: np.random.Generator) -> dict[str, Callable[[], Floats]]:
    """Return the servers of the libraries with ``HASHED_BY_PEERS`` reports of any-seed OLH.

    ``benchmarks.peer_estimates`` shows that they estimate as uldp-stream does. What they take depends on no value, so
    these reports are of none.

    Raises:
        ImportError: if a library is not installed.
    """
    buckets = default_buckets(EPSILON)
    sent, seeds = (rng.integers(0, end, HASHED_BY_PEERS).tolist() for end in (buckets, 1 << 32))
    reports = list(zip(sent, seeds, strict=True))
    server = oracle("local_hashing").LHServer(EPSILON, SIZE, g=buckets, use_olh=True)
    aggregator = multi_freq("pure_frequency_oracles.LH").LH_Aggregator_MI
    return {
        "pure-ldp": shares(server, reports, SIZE),
        "multi-freq-ldpy": partial(aggregator, reports, SIZE, EPSILON, True),
    }


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
    servers: dict[str, Callable[[], object]] = {"uldp-stream": partial(olh.statistic, payloads)}
    try:
        servers |= servers_of_peers(rng)
        remark = ""
    except ImportError:
        remark = f"peers: {INSTALL}"
    seconds = in_turn({name: partial(timed, server) for name, server in servers.items()}, REPEAT)
    label, taken = f"olh, any seed, {SIZE} values, in memory", seconds.pop("uldp-stream")
    yield Row("counting", label, hashed, taken, remark=remark)
    for name, theirs in seconds.items():
        faster = theirs / HASHED_BY_PEERS / (taken / hashed)
        remark = f"uldp-stream: {faster:.0f} times as fast"
        yield Row("counting", f"{label}, {name}", HASHED_BY_PEERS, theirs, remark=remark)
    for name in TESTED:
        (spec,) = collection_specs(name, 1, SIZE)
        protocol = build_protocol(spec)
        cells = protocol.mechanism.statistic(protocol.mechanism.perturb(rng.integers(0, SIZE, IN_PANE), rng))
        tested = partial(protocol.decoder.p_values, cells, IN_PANE)
        tested()
        yield Row("testing", f"a pane of {name}, {SIZE} values", 1, in_turn({"": partial(timed, tested)}, REPEAT)[""])
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
