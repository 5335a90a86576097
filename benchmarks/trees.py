"""How far ranges are from the truth if devices report levels of a tree, by estimator.

    python -m benchmarks.trees --windows 10

1,000,000 users hold one of 1,024 values. Their shares are those of a smooth shape with a long tail (Beta(2, 5)), of a
shape with spikes, and falling as 1, 1/2, 1/3, ... in random order. Counts are drawn without reports. Errors are mean
squares x 10^-6 over ranges with random ends, and over those of fewer than 32 values; ``l1`` is the sum of the absolute
errors of all values, of ``auto`` to that of ``empirical``.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from benchmarks.coverage import print_heading
from benchmarks.options import read_options
from benchmarks.ranges import SIZE
from benchmarks.ranges import shares as smooth
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.tree.decoder import TreeDecoder
from uldp.schemas.arrays import Floats, Symbols
from uldp.schemas.specs.collection import CollectionSpec

USERS, WINDOWS, RANGES, SHORT = 1_000_000, 10, 1_000, 32
EPSILONS = 0.5, 1.0, 2.0, 4.0


def shapes() -> Mapping[str, Floats]:
    """Return the shares of the values, by shape."""
    rng = np.random.default_rng(7)
    spikes = smooth() / 2
    falling = rng.permutation(1 / np.arange(1, SIZE + 1))
    spikes[rng.choice(SIZE, 16, replace=False)] += 1 / 32
    return {"smooth": smooth(), "spikes": spikes, "falling": falling / falling.sum()}


def ends() -> Iterator[tuple[Symbols, Symbols]]:
    """Yield where ranges with random ends begin and end, and where short ones do."""
    rng = np.random.default_rng(11)
    both = np.sort(np.stack([rng.permutation(SIZE + 1)[:2] for _ in range(RANGES)]), axis=1)
    yield both[:, 0], both[:, 1]
    first = rng.integers(0, SIZE - SHORT, RANGES)
    yield first, first + rng.integers(1, SHORT, RANGES)


def measure(epsilon: float, truth: Floats, windows: int = WINDOWS) -> Mapping[str, Floats]:
    """Return the mean squares of both kinds of ranges, and the l1, of each estimator."""
    spec = {
        "collection": "trees",
        "version": 1,
        "domain": {"size": SIZE},
        "mechanism": {"name": "tree", "epsilon": epsilon},
        "window": {"size": "1d"},
    }
    decoder = build_protocol(CollectionSpec.parse(spec)).decoder
    assert isinstance(decoder, TreeDecoder)
    found: dict[str, list[Floats]] = {}
    for name in ("empirical", "auto"):
        for seed in range(windows):
            errors = decoder.simulate(truth, USERS, name, np.random.default_rng(seed))
            below = np.concatenate([[0.0], np.cumsum(errors)])
            squares = [((below[end] - below[first]) ** 2).mean() for first, end in ends()]
            found.setdefault(name, []).append(np.array([*squares, np.abs(errors).sum()]))
    return {name: np.mean(each, axis=0) for name, each in found.items()}


def main() -> None:
    """Print a Markdown table."""
    windows = read_options(__doc__, windows=WINDOWS).windows
    print_heading("epsilon", "shape", "random: empirical", "auto", "short: empirical", "auto", "l1")
    for epsilon in EPSILONS:
        for shape, truth in shapes().items():
            found = measure(epsilon, truth, windows)
            (random, short, l1), (of_random, of_short, of_l1) = found["empirical"], found["auto"]
            cells = (random, of_random, short, of_short)
            figures = " | ".join(f"{1e6 * cell:.3g}" for cell in cells)
            print(f"| {epsilon:g} | {shape} | {figures} | {of_l1 / l1:.2f} |", flush=True)


if __name__ == "__main__":
    main()
