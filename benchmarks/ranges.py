"""How far the share of a range of values is from the truth, as the sum of the shares of its values, by estimator.

    python -m benchmarks.ranges --windows 20

The values are in an order, with shares as of Beta(2, 5); epsilon is 1. Counts are drawn without reports. An error is
the root of the mean square over all ranges of one length and all windows, in points of share. ``block`` with ``ems``
measures the same numbers in as many bins.
"""

from collections.abc import Mapping

import numpy as np
from scipy import stats

from benchmarks.coverage import print_heading
from benchmarks.options import read_options
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.estimators.by_name import estimate_intermediate
from uldp.mechanisms.families.block.distribution import Distribution
from uldp.mechanisms.families.block.randomizer import Block
from uldp.mechanisms.inference.forecast import draw_counts
from uldp.schemas.arrays import Floats
from uldp.schemas.specs.collection import CollectionSpec

SIZE, EPSILON, WINDOWS = 1024, 1.0, 20
USERS, LENGTHS = (20_000, 200_000, 2_000_000), (16, 128, 512)
ESTIMATORS = ("empirical", "wls", "auto")


def shares() -> Floats:
    """Return the shares of the values."""
    below: Floats = stats.beta(2, 5).cdf(np.linspace(0, 1, SIZE + 1))
    return np.diff(below)


def errors_of_ranges(estimate: Floats, truth: Floats) -> Floats:
    """Return the mean square errors of the sums over all ranges of each length, shape (lengths,)."""
    error = np.concatenate([[0], np.cumsum(estimate - truth)])
    return np.array([((error[length:] - error[:-length]) ** 2).mean() for length in LENGTHS])


def measure(n: int, windows: int = WINDOWS) -> Mapping[str, Floats]:
    """Return the errors of each estimator, in points of share, in windows of n users."""
    spec = {
        "collection": "ranges",
        "version": 1,
        "domain": {"size": SIZE},
        "mechanism": {"name": "oue", "epsilon": EPSILON},
        "window": {"size": "1d"},
    }
    decoder = build_protocol(CollectionSpec.parse(spec)).decoder
    assert isinstance(decoder, PureDecoder)
    truth, block, rng = shares(), Block(EPSILON, SIZE), np.random.default_rng(n)
    points = np.concatenate([truth, [0.0]]) / 2 + np.concatenate([[0.0], truth]) / 2
    law = block.law(points)
    squares: dict[str, list[Floats]] = {name: [] for name in (*ESTIMATORS, "block, ems")}
    for _ in range(windows):
        counts = draw_counts(decoder.channel, truth, n, rng)
        for name in ESTIMATORS:
            estimate = estimate_intermediate(name, decoder.channel, counts, n, 0)
            squares[name].append(errors_of_ranges(estimate, truth))
        numbers = Distribution(block, rng.multinomial(n, law / law.sum()), n).shares().values
        squares["block, ems"].append(errors_of_ranges(numbers, truth))
    return {name: 100 * np.sqrt(np.mean(each, axis=0)) for name, each in squares.items()}


def main() -> None:
    """Print a Markdown table."""
    windows = read_options(__doc__, windows=WINDOWS).windows
    print_heading("points of share", "n", *(f"{length} of {SIZE:,} values" for length in LENGTHS))
    for n in USERS:
        for name, errors in measure(n, windows).items():
            print(f"| {name} | {n:,} |", " | ".join(f"{error:.2f}" for error in errors), "|", flush=True)


if __name__ == "__main__":
    main()
