"""How exact the mean of a number is, by mechanism, and what is left out for it.

    python -m benchmarks.means --windows 400

The first table has the variance of one report about a number in [-1, 1], at the number where it is largest; ``hybrid``
also to the smaller one of ``duchi`` and ``block``, and how often its 95 % intervals covered the mean of 1,000 users of
that number. HM, PM and Laplace's mechanism are as published, with real numbers. The second table has the mean squared
error of the mean of each of 100 numbers, times the number of users: each reports one of them with the whole epsilon, or
m of them with epsilon/m. Harmony reports one by the bit of Duchi et al. Numbers are uniform.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.coverage import print_heading
from benchmarks.options import read_options
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.block.randomizer import Block
from uldp.mechanisms.protocol.encoding import Held
from uldp.schemas.arrays import Floats
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import INTERVAL_LEVEL

BINS, USERS, WINDOWS, NUMBERS = 1024, 1_000, 400, 100
EPSILONS = 0.75, 1.0, 1.5, 2.0, 2.5, 4.0
#: Numbers at which variances are computed.
PLACES = np.linspace(-1, 1, 401)


def of_duchi(epsilon: float, x: Floats = PLACES) -> Floats:
    """Return the variance of one report of ``duchi``."""
    return math.tanh(epsilon / 2) ** -2 - x**2


def of_block(epsilon: float, x: Floats = PLACES) -> Floats:
    """Return the variance of one report of ``block``."""
    return Block(epsilon, BINS).variance((x + 1) * BINS / 2) * (2 / BINS) ** 2


def of_hybrid(epsilon: float, x: Floats = PLACES) -> Floats:
    """Return the variance of one report of ``hybrid``, each of which counts once."""
    share = Block(epsilon, BINS).noise
    return share * of_duchi(epsilon, x) + (1 - share) * of_block(epsilon, x)


def of_pm(epsilon: float, x: Floats = PLACES) -> Floats:
    """Return the variance of the piecewise mechanism (Wang et al., ICDE 2019, equation 8)."""
    half = math.exp(epsilon / 2)
    return x**2 / (half - 1) + (half + 3) / (3 * (half - 1) ** 2)


def of_hm(epsilon: float, x: Floats = PLACES) -> Floats:
    """Return the variance of HM (Wang et al., ICDE 2019, section III-C), of which 0.61 is rounded."""
    share = 1 - math.exp(-epsilon / 2) if epsilon > 0.61 else 0.0
    return share * of_pm(epsilon, x) + (1 - share) * of_duchi(epsilon, x)


def of_laplace(epsilon: float) -> float:
    """Return the variance of Laplace's mechanism: twice the square of the range over epsilon."""
    return 2 * (2 / epsilon) ** 2


class Measured(NamedTuple):
    """The mean of the squared errors of windows times their users, and the share of intervals that cover."""

    error: float
    coverage: float


def measure(epsilon: float, number: float, windows: int, name: str = "hybrid") -> Measured:
    """Draw windows of users who hold one number in [-1, 1]."""
    spec = {
        "collection": "means",
        "version": 1,
        "domain": {"number": {"low": -1, "high": 1}},
        "mechanism": {"name": name, "epsilon": epsilon},
        "window": {"size": "1d"},
    }
    protocol, rng = build_protocol(CollectionSpec.parse(spec)), np.random.default_rng(5)
    held = [Held(np.full(USERS, number), np.full(USERS, -1))]
    squares, covered = [], []
    for _ in range(windows):
        linear = protocol.decoder.linear(protocol.mechanism.statistic(protocol.perturb(held, rng)), USERS)
        (low,), (high,) = linear.interval(INTERVAL_LEVEL)
        squares.append((linear.values[0] - number) ** 2)
        covered.append(low <= number <= high)
    return Measured(USERS * float(np.mean(squares)), float(np.mean(covered)))


def of_numbers(epsilon: float) -> Iterator[tuple[str, float]]:
    """Yield n times the squared error of the mean of each of ``NUMBERS`` uniform numbers, by mechanism.

    A user in NUMBERS/m reports a number, so its mean has this many times the variance of a report: that of the noise,
    and that of the numbers, 1/3.
    """
    for name, variance in (("hybrid", of_hybrid), ("block", of_block), ("Harmony", of_duchi)):
        yield name, NUMBERS * (float(np.mean(variance(epsilon))) + 1 / 3)
    for m in (1, 2, 3):
        yield f"PM, m = {m}", NUMBERS / m * (float(np.mean(of_pm(epsilon / m))) + 1 / 3)


def main() -> None:
    """Print both tables."""
    windows = read_options(__doc__, windows=WINDOWS).windows
    print_heading("epsilon", "duchi", "block", "hybrid", "to the better", "covered", "HM", "PM", "Laplace")
    for epsilon in EPSILONS:
        duchi, block, hybrid = (variance(epsilon) for variance in (of_duchi, of_block, of_hybrid))
        worst = [each.max() for each in (duchi, block, hybrid)]
        found = measure(epsilon, float(PLACES[hybrid.argmax()]), windows)
        others = of_hm(epsilon).max(), of_pm(epsilon).max(), of_laplace(epsilon)
        figures = " | ".join(f"{each:.3g}" for each in worst)
        left_out = " | ".join(f"{each:.3g}" for each in others)
        ratio = worst[2] / min(worst[:2])
        print(f"| {epsilon:g} | {figures} | {ratio:.2f} | {found.coverage:.3f} | {left_out} |", flush=True)
    print()
    print_heading("epsilon", *(name for name, _ in of_numbers(1.0)))
    for epsilon in EPSILONS:
        figures = " | ".join(f"{each:.3g}" for _, each in of_numbers(epsilon))
        print(f"| {epsilon:g} | {figures} |")


if __name__ == "__main__":
    main()
