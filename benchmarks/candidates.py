"""Strings that nobody lists: how many of the most frequent are found, how well intervals cover, and what is left over.

python -m benchmarks.candidates
python -m benchmarks.candidates --runs 5 --reports 10000

Users hold one of 2,000 strings, whose shares fall as those of Zipf's law with the exponent 1.1. The candidates are the
100 most frequent of them, which three quarters of the users hold, and 100 that nobody holds. In each run, all strings
are new, and so are their hashes.

Reports are drawn by their law and not one by one: given the users of each string in each cohort, the supports of the
positions are sums of binomial numbers.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.strings.candidate_decoder import CandidateDecoder
from uldp.mechanisms.strings.cohort_channel import CohortChannel
from uldp.mechanisms.strings.cohorts import hash_positions, string_symbol
from uldp.schemas.arrays import Counts, Floats, Symbols
from uldp.schemas.specs.collection import CollectionSpec

HELD, ASKED, NOT_HELD, TOP, EXPONENT = 2000, 100, 100, 16, 1.1
EPSILONS, REPORTS, RUNS = (1.0, 2.0, 4.0), (10_000, 100_000, 1_000_000), 20
MECHANISMS = ("cohort-olh", "bloom")
_LONGEST = 16


def shares() -> Floats:
    """Return the shares of the strings, the most frequent first."""
    falling = np.asarray(np.arange(1, HELD + 1) ** -EXPONENT, dtype=np.float64)
    return np.asarray(falling / falling.sum(), dtype=np.float64)


def decoder_of(mechanism: str, epsilon: float, candidates: Sequence[str]) -> CandidateDecoder:
    """Return the decoder of a mechanism with its defaults."""
    data = {
        "collection": "strings",
        "version": 1,
        "domain": {"strings": {"longest": _LONGEST}},
        "mechanism": {"name": mechanism, "epsilon": epsilon},
        "candidates": list(candidates),
        "window": {"size": "1h"},
    }
    decoder = build_protocol(CollectionSpec.parse(data)).decoder
    assert isinstance(decoder, CandidateDecoder)
    return decoder


def draw_cells(channel: CohortChannel, symbols: Symbols, p: Floats, n: int, rng: np.random.Generator) -> Counts:
    """Draw the cells of n reports of users who hold strings with these symbols, with probabilities p."""
    users, cohorts = rng.choice(len(p), n, p=p), rng.integers(0, channel.cohorts, n)
    found = np.sort(hash_positions(cohorts, symbols[users], channel.hashes, channel.positions), axis=1)
    rows = (found + cohorts[:, np.newaxis] * channel.positions)[np.diff(found, axis=1, prepend=-1) > 0]
    own = np.bincount(rows, minlength=channel.cohorts * channel.positions).reshape(channel.cohorts, -1)
    sizes = np.bincount(cohorts, minlength=channel.cohorts)
    if channel.one_position:
        kept = rng.binomial(own, channel.p - channel.q)
        even = np.full(channel.positions, 1 / channel.positions)
        cells: Counts = kept + rng.multinomial(sizes - kept.sum(axis=1), even)
        return cells.ravel()
    supports = rng.binomial(own, channel.p) + rng.binomial(sizes[:, np.newaxis] - own, channel.q)
    return np.column_stack([sizes, supports]).ravel()


@dataclass(frozen=True)
class Measured:
    """The means over runs.

    Attributes:
        found: How many of the ``TOP`` most frequent strings are found.
        false: In how many runs a string is found that nobody holds, as a share.
        covered: The share of the candidates' intervals that cover.
        unexplained: The root mean squared error of the share that no candidate explains.
        rest_covered: The share of its intervals that cover.
        seconds: Processor time of an estimate, without the matrix that all windows share.
    """

    found: float
    false: float
    covered: float
    unexplained: float
    rest_covered: float
    seconds: float


def measure(mechanism: str, epsilon: float, n: int, runs: int) -> Measured:
    """Simulate windows, each with strings of its own."""
    p = shares()
    truth, rest = np.append(p[:ASKED], np.zeros(NOT_HELD)), 1 - p[:ASKED].sum()
    rows = []
    for run in range(runs):
        rng = np.random.default_rng([run, n])
        names = [f"{run}/{i}" for i in range(HELD + NOT_HELD)]
        symbols = np.array([string_symbol(name, _LONGEST) for name in names])
        decoder = decoder_of(mechanism, epsilon, names[:ASKED] + names[HELD:])
        cells = draw_cells(decoder.channel, symbols[:HELD], p, n, rng)
        decoder.estimate(cells, n)
        began = time.process_time()
        share, unexplained, _, found = decoder.tables(cells, n, "empirical")
        seconds = time.process_time() - began
        assert share.low is not None
        assert share.high is not None
        assert unexplained.low is not None
        assert unexplained.high is not None
        covered = (share.low <= truth) & (truth <= share.high)
        rows.append(
            [
                found.values[:TOP].sum(),
                found.values[ASKED:].any(),
                covered.mean(),
                (unexplained.values[0] - rest) ** 2,
                unexplained.low[0] <= rest <= unexplained.high[0],
                seconds,
            ]
        )
    found_of_top, false, covers, squared, rest_covered, took = np.mean(rows, axis=0).tolist()
    return Measured(found_of_top, false, covers, squared**0.5, rest_covered, took)


def lines(runs: int, reports: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield f"| mechanism | ε | n | of the top {TOP} found | falsely found | covered | unexplained ± | covered | ms |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for mechanism in MECHANISMS:
        for epsilon in EPSILONS:
            for n in reports:
                got = measure(mechanism, epsilon, n, runs)
                yield (
                    f"| `{mechanism}` | {epsilon:g} | {n:,} | {got.found:.1f} | {got.false:.2f} | {got.covered:.3f} |"
                    f" {got.unexplained:.3f} | {got.rest_covered:.2f} | {1000 * got.seconds:.0f} |"
                )


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--reports", type=int, nargs="+", default=REPORTS)
    arguments = parser.parse_args()
    for line in lines(arguments.runs, arguments.reports):
        print(line, flush=True)


if __name__ == "__main__":
    main()
