"""How often published intervals cover the truth: by mechanism and n, and on the check-ins that the project ships.

    python -m benchmarks.coverage --trials 2000

Counts are drawn here, for up to a million users; ``benchmarks.coverage_of_reports`` draws reports, of every mechanism.

The first table has |X| = 100 and, where it matters, |X_S| = 20; shares from 1e-6 to 0.2, epsilon 2. Rare symbols, those
with an expected support n m below 3, are apart: Clopper and Pearson's intervals cover these more often than 95 %,
because a count of 0 or 1 excludes little. The intervals lie around the unbiased estimate, so that all estimators have
the same ones.

The second table has two tags with a background that 200 draws from the hidden users gave, and the third the Manhattan
example, whose background is where places are, and not where hidden users are. A share counts as hidden if users hide
that value; the next column weights these by the users who do. The ratio is that of the widths to those of a background
that is taken as exact.

The count of one symbol is binomial under every mechanism, and without tags an interval
depends on that count alone. With tags, counts are multinomial (symbols), or independent given the values (bits).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.options import read_options
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.mechanisms.tags.pum import Pum
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.arrays import Counts, Floats, Mask
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import Table, TableName

EXAMPLE = Path(__file__).parents[1] / "examples" / "manhattan"
SIZE, EPSILON, TRIALS = 100, 2.0, 2000
USERS = (300, 3_000, 30_000, 300_000, 1_000_000)
MANHATTAN_USERS = (60_000, 179_527)
#: Lower and upper ends of intervals.
Ends = tuple[Floats, Floats]
#: Fewer expected reports than this support a rare symbol.
RARE = 3

_EVERYTHING = np.ones(SIZE, dtype=np.bool_)
_SENSITIVE = np.arange(SIZE) % 5 == 0
MECHANISMS: Mapping[str, PureMechanism] = {
    "rr": RandomizedResponse(_EVERYTHING, EPSILON),
    "urr": RandomizedResponse(_SENSITIVE, EPSILON),
    "oue": UnaryEncoding(_EVERYTHING, EPSILON, OUE_THETA),
    "urap": UnaryEncoding(_SENSITIVE, EPSILON, sue_theta(EPSILON)),
    "ss": SubsetSelection(SIZE, EPSILON),
    "olh": LocalHashing(SIZE, EPSILON, 8),
}


class Coverage(NamedTuple):
    """How often intervals cover; NaN where there are none.

    Attributes:
        common: Of symbols with an expected support of ``RARE`` or more, and of means of numbers, the mean.
        least: Of these, the one that is covered least.
        rare: Of the other symbols, the mean.
    """

    common: float
    least: float
    rare: float


class Tagged(NamedTuple):
    """How often intervals cover with tags, and how wide they are.

    Attributes:
        visible: Of the visible shares, the mean over all values.
        share: Of the shares.
        occupied: Of the shares of values that a user holds.
        hidden: Of the shares of values that a user hides.
        weighted: As ``hidden``, weighted by the number of users who hide each.
        band: Of the shares by the band.
        ratio: The mean width of the intervals of shares, over that with a background that is taken as exact.
    """

    visible: float
    share: float
    occupied: float
    hidden: float
    weighted: float
    band: float
    ratio: float


def population() -> Floats:
    """Shape (|X|,): shares from 1e-6 to 0.2 or so, in no order."""
    weights = np.random.default_rng(17).permutation(np.geomspace(1e-6, 0.2, SIZE))
    shares: Floats = weights / weights.sum()
    return shares


def draw(channel: Channel, r: Floats, n: int, trials: int, rng: np.random.Generator) -> Counts:
    """Draw the support counts of windows of n users with i.i.d. symbols, without their reports; shape (trials, |Z|).

    Where reports support several symbols, or bits that one hash decides, each count alone has the right distribution.
    """
    m = channel.support_probability(r)
    if channel.one_symbol:
        return rng.multinomial(n, m / m.sum(), trials)
    if channel.supported > 1:
        return rng.binomial(n, m, (trials, len(m)))
    holders = rng.multinomial(n, r, trials)
    return rng.binomial(holders, channel.p) + rng.binomial(n - holders, channel.q)


def measure(name: str, n: int, trials: int = TRIALS) -> Coverage:
    """Simulate windows of n users under a mechanism without tags."""
    channel, truth = MECHANISMS[name].channel, population()
    decoder = PureDecoder(MECHANISMS[name], Pum(_EVERYTHING, (), np.empty((0, SIZE)), np.empty(0)))
    counts = draw(channel, truth, n, trials, np.random.default_rng(n))
    covered = np.mean([covers(decoder.tables(cells, n, "empirical")[0], truth) for cells in counts], axis=0)
    rare = n * channel.support_probability(truth) < RARE
    return Coverage(mean_of(covered, ~rare), covered[~rare].min(initial=1.0), mean_of(covered, rare))


def measure_tags(name: str, n: int, trials: int = TRIALS, strength: int = 200) -> Tagged:
    """Simulate windows of n users, of whom 40 % hide behind two tags whose backgrounds are samples of this strength."""
    sensitive = np.append(_SENSITIVE, [True, True])
    mechanism = {
        "urr": RandomizedResponse(sensitive, EPSILON),
        "urap": UnaryEncoding(sensitive, EPSILON, sue_theta(EPSILON)),
    }[name]
    rng = np.random.default_rng(n)
    at = np.where(np.arange(SIZE) % 3 == 0, 0, population())
    hidden = 0.2 * np.array([pi / pi.sum() for pi in (at, rng.permutation(at))])
    counts = draw(mechanism.channel, np.append(0.6 * population(), hidden.sum(axis=1)), n, trials, rng)
    pums = (
        Pum(
            _SENSITIVE,
            ("home", "work"),
            np.array([rng.multinomial(strength, pi / pi.sum()) / strength for pi in hidden]),
            np.full(2, float(strength)),
        )
        for _ in counts
    )
    return _tagged(mechanism, zip(pums, counts, strict=True), 0.6 * population(), hidden, n)


def measure_manhattan(n: int, trials: int = TRIALS) -> Tagged:
    """Simulate windows of n users of the example, with its backgrounds."""
    spec = CollectionSpec.load(EXAMPLE / "spec.yaml")
    pum = Pum.of(spec.variables[""])
    mechanism = RandomizedResponse(np.append(spec.sensitive_mask, [True, True]), spec.mechanism.epsilon)
    truth = Truth.load(EXAMPLE / "truth.csv", spec)
    ((values, tags),), weights = truth.columns, truth.probabilities
    shares = np.array([np.bincount(values, weights * (tags == tag), spec.size) for tag in (-1, 0, 1)])
    counts = draw(mechanism.channel, truth.intermediate(), n, trials, np.random.default_rng(n))
    return _tagged(mechanism, ((pum, cells) for cells in counts), shares[0], shares[1:], n)


def _tagged(
    mechanism: PureMechanism, windows: Iterator[tuple[Pum, Counts]], visible: Floats, hidden: Floats, n: int
) -> Tagged:
    truth, behind = visible + hidden.sum(axis=0), hidden.sum(axis=0) > 0
    targets = {TableName.VISIBLE: visible, TableName.SHARE: truth, TableName.BAND: truth}
    covered: dict[TableName, list[Mask]] = {name: [] for name in targets}
    widths = []
    for pum, cells in windows:
        tables, exact = (
            {table.name: table for table in PureDecoder(mechanism, each).tables(cells, n, "empirical")}
            for each in (pum, replace(pum, strength=np.full(len(pum.tags), np.inf)))
        )
        for name, target in targets.items():
            covered[name].append(covers(tables[name], target))
        widths.append([_width(table[TableName.SHARE]) for table in (tables, exact)])
    share = np.mean(covered[TableName.SHARE], axis=0)
    wide, narrow = np.mean(widths, axis=0)
    return Tagged(
        float(np.mean(covered[TableName.VISIBLE])),
        float(share.mean()),
        mean_of(share, truth > 0),
        mean_of(share, behind),
        float(share @ hidden.sum(axis=0) / hidden.sum()),
        float(np.mean(covered[TableName.BAND])),
        float(wide / narrow),
    )


def covers(table: Table, truth: Floats) -> Mask:
    """Return which intervals of a table hold the truth."""
    low, high = _ends(table)
    # An end is computed, and may be the truth itself where that is 0.
    return (low <= truth + 1e-12) & (truth - 1e-12 <= high)


def _width(table: Table) -> float:
    low, high = _ends(table)
    return float((high - low).mean())


def _ends(table: Table) -> Ends:
    if table.low is None or table.high is None:
        raise ValueError(f"the table {table.name} has no intervals")
    return table.low, table.high


def mean_of(coverage: Floats, of: Mask) -> float:
    """Return the mean over some values, or NaN if there are none."""
    return float(coverage[of].mean()) if of.any() else np.nan


def main() -> None:
    """Print three Markdown tables."""
    trials = read_options(__doc__, trials=TRIALS).trials
    print_heading("mechanism", "n", *Coverage._fields)
    for name in MECHANISMS:
        for n in USERS:
            print_row(name, n, measure(name, n, trials))
    for title, names, users in (("tags", ("urr", "urap"), USERS), ("example", ("manhattan",), MANHATTAN_USERS)):
        print_heading(title, "n", *Tagged._fields)
        for name in names:
            for n in users:
                print_row(
                    name, n, measure_manhattan(n, trials) if title == "example" else measure_tags(name, n, trials)
                )


def print_heading(*columns: str) -> None:
    """Print the head of a Markdown table."""
    print()
    print("|", " | ".join(columns), "|")
    print("|", " | ".join("---" for _ in columns), "|")


def print_row(name: str, n: int, figures: tuple[float, ...]) -> None:
    """Print a row of a Markdown table; a cell is empty if its figure is NaN."""
    shown = ["" if np.isnan(figure) else f"{figure:.3f}" for figure in figures]
    print("|", " | ".join((name, f"{n:,}", *shown)), "|", flush=True)


if __name__ == "__main__":
    main()
