"""Keys with numbers: how far shares and means are from their closed forms, and from those of PCKV.

    python -m benchmarks.pairs --windows 8000

Of k keys, users hold one with a share f, four fifths of them with the upper end of the range, beside dummies. The table
has the variance of the share of this key times n, as measured over windows of devices, by its closed form, and by that
of the better of PCKV-GRR and PCKV-UE with the same l, at the best of their parameters; and how often its interval
holds the mean of a key whose share is six standard errors.

Source of PCKV: Gu et al., "PCKV: Locally Differentially Private Correlated Key-Value Data Collection with Optimized
Utility" (USENIX Security 2020); a report supports a key by either sign, so the closed form of its share is exact.
"""

import math
from typing import NamedTuple

import numpy as np

from benchmarks.coverage import print_heading
from benchmarks.options import read_options
from uldp.mechanisms.decoders.pair_decoder import PairDecoder
from uldp.mechanisms.families.sets.randomizer import SetSelection, best_chosen
from uldp.schemas.arrays import Floats
from uldp.schemas.table import INTERVAL_LEVEL

SHARES = (0.01, 0.05, 0.2)
SETTINGS = ((20, 1, 1.0), (20, 3, 2.0), (100, 3, 1.0), (100, 8, 4.0))
N, WINDOWS, POSITIVE = 1_000, 8_000, 0.8


class Measured(NamedTuple):
    """The variance of a share times n as measured and by its closed form, and the coverage of the mean."""

    variance: float
    closed: float
    coverage: float


def pckv_variance(keys: int, held: int, epsilon: float, share: float) -> float:
    """Return n times the variance of the share of a key by the better of PCKV-GRR and PCKV-UE.

    A device samples one of l padded keys, so a key of the share f is sampled by f/l of the devices.

    - GRR over 2(k+l) signed keys with the amplified budget ln(l(E-1)+1): a report supports a key by either sign.
    - UE with a = 1/2 and b = 2/(E+3).
    """
    e = math.exp(epsilon)
    inner, size = held * (e - 1) + 1, 2 * (keys + held)
    p, q = inner / (inner + size - 1), 1 / (inner + size - 1)
    by_grr, by_ue = 2 * q + (p - q) * share / held, 2 / (e + 3) + (0.5 - 2 / (e + 3)) * share / held
    grr = by_grr * (1 - by_grr) / (p - q) ** 2
    ue = by_ue * (1 - by_ue) / (0.5 - 2 / (e + 3)) ** 2
    return held**2 * min(grr, ue)


def measure(keys: int, held: int, epsilon: float, share: float, windows: int, rng: np.random.Generator) -> Measured:
    """Measure windows of ``N`` devices, of which a share holds the first key, and no other does.

    The coverage is that of windows in which the share is six standard errors, as a mean is that is published: these
    are so many reports that their two counts are drawn by their joint law.
    """
    size = 2 * keys + held
    mechanism = SetSelection(size, epsilon, held, best_chosen(size, held, epsilon, signed=True))
    decoder = PairDecoder(mechanism, [str(key) for key in range(keys)], 0.0, 1.0)
    dummies = list(range(2 * keys, size))
    rows = np.array([[0, *dummies[:-1]], [1, *dummies[:-1]], dummies])
    law = [share * (1 - POSITIVE), share * POSITIVE, 1 - share]
    estimates = [
        decoder.linear(mechanism.statistic(mechanism.perturb(rows[rng.choice(3, N, p=law)], rng)), N).values[0]
        for _ in range(windows)
    ]
    r = np.bincount(rows.ravel(), np.repeat(law, held), minlength=size).astype(np.float64)
    closed = float(decoder.stderr(r, 1)[0]) ** 2
    coverage = _coverage(decoder, r, math.ceil((6 / share) ** 2 * closed), windows, rng)
    return Measured(N * float(np.var(estimates)), closed, coverage)


def _coverage(decoder: PairDecoder, r: Floats, n: int, windows: int, rng: np.random.Generator) -> float:
    """Return how often the interval of the mean of the first key holds it, in windows of n reports."""
    a, b, _ = decoder.channel.pair_probabilities()
    minus, plus = decoder.channel.support_probability(r)[:2]
    both = b + (a - b) * (r[0] + r[1])
    cells, covered = np.zeros(decoder.channel.size, dtype=np.int64), 0
    for of_minus, of_plus, of_both, _ in rng.multinomial(
        n, [minus - both, plus - both, both, 1 - minus - plus + both], windows
    ):
        cells[:2] = of_minus + of_both, of_plus + of_both
        mean = decoder.means(cells, n, np.zeros(1, dtype=np.int64), INTERVAL_LEVEL)
        assert mean.low is not None
        assert mean.high is not None
        covered += bool(mean.low[0] <= POSITIVE <= mean.high[0])
    return covered / windows


def main() -> None:
    """Print a Markdown table."""
    windows, rng = read_options(__doc__, windows=WINDOWS).windows, np.random.default_rng(3)
    print_heading("keys, at most, epsilon", "share", "n Var", "closed form", "PCKV", "coverage of the mean")
    for keys, held, epsilon in SETTINGS:
        for share in SHARES:
            found, peer = measure(keys, held, epsilon, share, windows, rng), pckv_variance(keys, held, epsilon, share)
            numbers = f"{found.variance:.2f} | {found.closed:.2f} | {peer:.2f} | {found.coverage:.3f}"
            print(f"| {keys}, {held}, {epsilon:g} | {share:g} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
