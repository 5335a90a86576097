"""Sets: the variance of a share beside its closed form, its coverage, false flags, and what else is for sets.

    python -m benchmarks.sets --windows 1000

Of k items, users hold up to l, as many of each number from 0 to l, the first item more often than the second, and so
on. The first table has the mean over all items of the variance of a share in windows of 2,000 devices, over its closed
form; how often intervals of 95 % hold the share; and how many windows are flagged.

The second table has the closed form of n times the variance of an item that nobody holds, and that a twentieth of the
users holds: of ``set-ss``, of ``set-olh``, and of pad-and-sample by the better of GRR, with the budget that sampling
amplifies, and OUE (Wang, Li & Jha, "Locally Differentially Private Frequent Itemset Mining", S&P 2018).
"""

import math
from typing import NamedTuple

import numpy as np

from benchmarks.coverage import print_heading
from benchmarks.options import read_options
from uldp.mechanisms.decoders.set_decoder import SetDecoder
from uldp.mechanisms.encodings.set_encoding import padded
from uldp.mechanisms.families.sets.randomizer import SetHashing, SetSelection
from uldp.mechanisms.inference.plausibility import ALARM_LEVEL
from uldp.schemas.arrays import Counts, Symbols
from uldp.schemas.table import TableName

MECHANISMS: dict[str, type[SetSelection] | type[SetHashing]] = {"set-ss": SetSelection, "set-olh": SetHashing}
MEASURED = ((60, 3, 1.0), (60, 3, 4.0), (200, 8, 2.0))
COMPARED = (
    (20, 3, 4.0),
    (100, 3, 1.0),
    (100, 8, 2.0),
    (1_000, 3, 1.0),
    (1_000, 8, 1.0),
    (1_000, 8, 4.0),
    (10_000, 20, 2.0),
)
N, WINDOWS = 2_000, 1_000


class Measured(NamedTuple):
    """The mean variance over the closed form, the coverage, and the number of flagged windows."""

    ratio: float
    coverage: float
    flagged: int


def sets_of(items: int, held: int, n: int, rng: np.random.Generator) -> Symbols:
    """Return what n users report, shape (n, l), with -1 behind the items."""
    keys = rng.exponential(size=(n, items)) * np.arange(1, items + 1)
    rows = np.argpartition(keys, held, axis=1)[:, :held]
    return np.where(np.arange(held) < rng.integers(0, held + 1, n)[:, np.newaxis], rows, -1)


def measure(name: str, items: int, held: int, epsilon: float, windows: int, rng: np.random.Generator) -> Measured:
    """Measure windows of ``N`` devices with the same sets."""
    mechanism = MECHANISMS[name](items + held, epsilon, held)
    decoder = SetDecoder(mechanism, items)
    rows = sets_of(items, held, N, rng)
    symbols = padded(rows, items)
    truth: Counts = np.bincount(symbols.ravel(), minlength=items + held)
    r = truth / N
    # The closed form is of users who are drawn; these are the same in all windows.
    closed = (mechanism.channel.variance(r, 1) - r * (1 - r))[:items]
    errors, covered, flagged = np.zeros(items), 0.0, 0
    for _ in range(windows):
        cells = mechanism.statistic(mechanism.perturb(symbols, rng))
        share = next(table for table in decoder.tables(cells, N, "empirical") if table.name is TableName.SHARE)
        assert share.low is not None
        assert share.high is not None
        errors += (share.values - r[:items]) ** 2
        covered += float(((share.low <= r[:items]) & (r[:items] <= share.high)).mean())
        flagged += min(decoder.p_values(cells, N).values(), default=1.0) < ALARM_LEVEL
    return Measured(float(N * errors.sum() / windows / closed.sum()), covered / windows, flagged)


def variance(name: str, items: int, held: int, epsilon: float, share: float) -> float:
    """Return n times the variance of an item that this share of users holds, by the closed form."""
    mechanism = MECHANISMS[name](items + held, epsilon, held)
    return float(mechanism.channel.variance(np.full(items + held, share), 1)[0])


def padded_variance(items: int, held: int, epsilon: float, share: float) -> float:
    """Return n times the variance by pad-and-sample: of l symbols, items and dummies, a device reports one."""
    amplified, e = held * math.expm1(epsilon) + 1, math.exp(epsilon)
    size = items + held
    p, q = amplified / (amplified + size - 1), 1 / (amplified + size - 1)

    def of(p: float, q: float) -> float:
        m = q + (p - q) * share / held
        return held**2 * m * (1 - m) / (p - q) ** 2

    return min(of(p, q), of(0.5, 1 / (e + 1)))


def main() -> None:
    """Print two Markdown tables."""
    options = read_options(__doc__, windows=WINDOWS)
    print_heading("mechanism", "items", "l", "epsilon", "variance over the closed form", "covered", "windows flagged")
    for items, held, epsilon in MEASURED:
        for name in MECHANISMS:
            found = measure(name, items, held, epsilon, options.windows, np.random.default_rng(5))
            figures = f"{found.ratio:.3f} | {found.coverage:.3f} | {found.flagged} of {options.windows:,}"
            print(f"| {name} | {items} | {held} | {epsilon:g} | {figures} |", flush=True)
    print()
    print_heading("items", "l", "epsilon", "share", *MECHANISMS, "pad-and-sample")
    for items, held, epsilon in COMPARED:
        for share in (0.0, 0.05):
            of = [variance(name, items, held, epsilon, share) for name in MECHANISMS]
            figures = " | ".join(f"{each:.3g}" for each in (*of, padded_variance(items, held, epsilon, share)))
            print(f"| {items:,} | {held} | {epsilon:g} | {share:g} | {figures} |")


if __name__ == "__main__":
    main()
