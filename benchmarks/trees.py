"""How far ranges are from the truth if devices report levels of a tree, by estimator.

    python -m benchmarks.trees --windows 10

The first table is of 1,000,000 users who hold one of 1,024 values. Their shares are those of a smooth shape with a long
tail (Beta(2, 5)), of a shape with spikes, and falling as 1, 1/2, 1/3, ... in random order. Counts are drawn without
reports. Errors are mean squares x 10^-6 over ranges with random ends, and over those of fewer than 32 values; ``l1`` is
the sum of the absolute errors of all values, of ``auto`` to that of ``empirical``.

The second table is of ``auto`` and its candidates, with reports of devices, in 48 settings: mean squares over ranges
with random ends, of ``auto`` to those of the nearest shares, and to those of the best candidate; the root mean square
of the error of the 90 % quantile, in parts of the range, and the mean error of the share of the upper half, of the
nearest shares and of ``auto``. The last line has the means of both ratios, and their largest.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.random import default_rng

from benchmarks.coverage import print_heading
from benchmarks.options import read_options
from benchmarks.ranges import SIZE
from benchmarks.ranges import shares as smooth
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.estimators.ordered import candidates
from uldp.mechanisms.families.tree.decoder import TreeDecoder
from uldp.mechanisms.families.tree.linear import fit_of
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Floats, Symbols
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import TableName

USERS, WINDOWS, RANGES, SHORT = 1_000_000, 10, 1_000, 32
EPSILONS = 0.5, 1.0, 2.0, 4.0
#: The candidates of ``auto``, in the order of ``ordered.candidates``.
CANDIDATES = "nearest", "smooth", "blocks"
#: The settings of the second table: numbers of bins; epsilon and users; and names of ``truths``.
SIZES = 256, 1000
REPORTS = (1.0, 20_000), (3.0, 20_000), (0.5, 100_000), (1.0, 200_000)
_DRAWN, _QUANTILE = 2_000_000, 0.9


class Setting(NamedTuple):
    """Users whose numbers are reported by a tree: the number of bins, epsilon, how many users, and their shape."""

    bins: int
    epsilon: float
    users: int
    shape: str


class Errors(NamedTuple):
    """Errors over the windows of a setting.

    Attributes:
        ranges: The mean squares over ranges with random ends, of each candidate and of ``auto``.
        quantile: The root mean squares of the 90 % quantile, in parts of the range; likewise.
        upper_half: The mean errors of the share of the upper half; likewise.
    """

    ranges: Mapping[str, float]
    quantile: Mapping[str, float]
    upper_half: Mapping[str, float]

    @property
    def to_nearest(self) -> float:
        """The squared error of ``auto`` in ranges, to that of the nearest shares."""
        return self.ranges["auto"] / self.ranges["nearest"]

    @property
    def to_best(self) -> float:
        """The squared error of ``auto`` in ranges, to that of the best candidate."""
        return self.ranges["auto"] / min(self.ranges[name] for name in CANDIDATES)


def shapes() -> Mapping[str, Floats]:
    """Return the shares of the values, by shape."""
    rng = np.random.default_rng(7)
    spikes = smooth() / 2
    falling = rng.permutation(1 / np.arange(1, SIZE + 1))
    spikes[rng.choice(SIZE, 16, replace=False)] += 1 / 32
    return {"smooth": smooth(), "spikes": spikes, "falling": falling / falling.sum()}


@cache
def truths(bins: int) -> Mapping[str, Floats]:
    """Return the shares of the bins of numbers, by shape: of smooth ones with long tails, and of few frequent bins."""
    x, rng = (np.arange(bins) + 0.5) / bins, default_rng(9)
    durations = default_rng(1).lognormal(2.5, 0.7, _DRAWN).clip(0, 99.999)
    weights = {
        "durations": np.histogram(durations, bins, (0, 100))[0].astype(np.float64),
        "beta": x * (1 - x) ** 4,
        "two modes": np.exp(-(((x - 0.25) / 0.03) ** 2) / 2) + 0.3 * np.exp(-(((x - 0.7) / 0.1) ** 2) / 2),
        "falling, in random order": rng.permutation(1 / np.arange(1, bins + 1)),
        "spikes": rng.dirichlet(np.full(bins, 0.05)),
        "falling": 1 / np.arange(1, bins + 1),
    }
    return {name: each / each.sum() for name, each in weights.items()}


def settings() -> list[Setting]:
    """Return the 48 settings."""
    return [Setting(bins, *reports, shape) for bins, reports in product(SIZES, REPORTS) for shape in truths(bins)]


def ends() -> Iterator[tuple[Symbols, Symbols]]:
    """Yield where ranges with random ends begin and end, and where short ones do."""
    rng = np.random.default_rng(11)
    both = np.sort(np.stack([rng.permutation(SIZE + 1)[:2] for _ in range(RANGES)]), axis=1)
    yield both[:, 0], both[:, 1]
    first = rng.integers(0, SIZE - SHORT, RANGES)
    yield first, first + rng.integers(1, SHORT, RANGES)


def protocol(epsilon: float, bins: int | None = None) -> LdpProtocol:
    """Build the tree of so many bins of a number, or by default of ``SIZE`` values."""
    spec = {
        "collection": "trees",
        "version": 1,
        "domain": {"size": SIZE} if bins is None else {"number": {"low": 0, "high": 1}},
        "mechanism": {"name": "tree", "epsilon": epsilon} | ({} if bins is None else {"bins": bins}),
        "window": {"size": "1d"},
    }
    return build_protocol(CollectionSpec.parse(spec))


def measure(epsilon: float, truth: Floats, windows: int = WINDOWS) -> Mapping[str, Floats]:
    """Return the mean squares of both kinds of ranges, and the l1, of each estimator."""
    decoder = protocol(epsilon).decoder
    assert isinstance(decoder, TreeDecoder)
    found: dict[str, list[Floats]] = {}
    for name in ("empirical", "auto"):
        for seed in range(windows):
            errors = decoder.simulate(truth, USERS, name, np.random.default_rng(seed))
            below = np.concatenate([[0.0], np.cumsum(errors)])
            squares = [((below[end] - below[first]) ** 2).mean() for first, end in ends()]
            found.setdefault(name, []).append(np.array([*squares, np.abs(errors).sum()]))
    return {name: np.mean(each, axis=0) for name, each in found.items()}


def measure_setting(setting: Setting, windows: int = WINDOWS) -> Errors:
    """Return the errors of ``auto`` and of its candidates, from reports of devices."""
    bins, epsilon, users, shape = setting
    tree, truth, rng = protocol(epsilon, bins), truths(bins)[shape], default_rng([bins, users, int(2 * epsilon)])
    assert isinstance(tree.decoder, TreeDecoder)
    found: dict[str, list[Floats]] = {}
    for _ in range(windows):
        numbers = (rng.choice(bins, users, p=truth) + rng.random(users)) / bins
        payloads = tree.perturb([Held(numbers, np.full(users, -1))], rng)
        cells = as_dense(tree.mechanism.tally([payloads], np.zeros(users, np.int64), 1)[0])
        tables = {table.name: table for table in tree.decoder.tables(cells, users, "auto")}
        fits = candidates(fit_of(tree.decoder.linear(cells, users)))
        for name, shares in zip((*CANDIDATES, "auto"), (*fits, tables[TableName.SHARE].values), strict=True):
            found.setdefault(name, []).append(_errors(shares, truth))
    means = {name: np.mean(each, axis=0) for name, each in found.items()}
    squares = {name: np.mean(np.square(each), axis=0) for name, each in found.items()}
    return Errors(
        {name: float(each[0]) for name, each in means.items()},
        {name: float(np.sqrt(each[1])) for name, each in squares.items()},
        {name: float(each[2]) for name, each in means.items()},
    )


def _errors(shares: Floats, truth: Floats) -> Floats:
    """Return the mean square over all ranges, and the errors of the quantile and of the upper half."""
    found, true = (np.concatenate([[0.0], np.cumsum(each)]) for each in (shares, truth))
    error, edges = found - true, len(found)
    ranges = 2 * (error @ error - error.sum() ** 2 / edges) / (edges - 1)
    return np.array([ranges, _quantile(found) - _quantile(true), -error[edges // 2]])


def _quantile(below: Floats) -> float:
    """Return the 90 % quantile, in parts of the range."""
    above = int(np.searchsorted(below, _QUANTILE))
    rest = (_QUANTILE - below[above - 1]) / (below[above] - below[above - 1])
    return float((above - 1 + rest) / (len(below) - 1))


def main() -> None:
    """Print two Markdown tables."""
    windows = read_options(__doc__, windows=WINDOWS).windows
    print_heading("epsilon", "shape", "random: empirical", "auto", "short: empirical", "auto", "l1")
    for epsilon in EPSILONS:
        for shape, truth in shapes().items():
            found = measure(epsilon, truth, windows)
            (random, short, l1), (of_random, of_short, of_l1) = found["empirical"], found["auto"]
            cells = (random, of_random, short, of_short)
            figures = " | ".join(f"{1e6 * cell:.3g}" for cell in cells)
            print(f"| {epsilon:g} | {shape} | {figures} | {of_l1 / l1:.2f} |", flush=True)
    print()
    print_heading("bins", "epsilon, n", "shape", "to nearest", "to the best", "90 %: nearest", "auto", "upper", "auto")
    ratios = []
    for setting in settings():
        errors = measure_setting(setting, windows)
        ratios.append((errors.to_nearest, errors.to_best))
        (quantile, of_quantile), (upper, of_upper) = (
            (each["nearest"], each["auto"]) for each in (errors.quantile, errors.upper_half)
        )
        print(
            f"| {setting.bins:,} | {setting.epsilon:g}, {setting.users:,} | {setting.shape} | {errors.to_nearest:.2f}"
            f" | {errors.to_best:.2f} | {quantile:.3f} | {of_quantile:.3f} | {upper:+.4f} | {of_upper:+.4f} |",
            flush=True,
        )
    means, largest = np.mean(ratios, axis=0), np.max(ratios, axis=0)
    print(
        f"\nto nearest {means[0]:.2f}, at most {largest[0]:.2f}; to the best {means[1]:.2f}, at most {largest[1]:.2f}"
    )


if __name__ == "__main__":
    main()
