"""Frequent values above a threshold, as in section 5.2 of Wang et al. (USENIX Security 2017), on Zipf data.

An aggregator takes the values whose estimate is above a threshold to be frequent. True positives are those whose true
count is above it, too; all others that it takes are false positives. The paper fixes thresholds, and also takes the one
at which a value that nobody holds is found with the probability ``ALPHA`` over all d values.

The paper has Kosarak and Rockyou, which are not at hand, and prints its results as figures but for one sentence:
"When ε = 4, and threshold is 6000, OLH can recover around 50 true frequent hashes and 10 of false positives, which is 4
and 2 magnitudes smaller than BLH and basic RAPPOR" on Rockyou. Here are ten million values of Zipf's law with s = 1.5,
the synthetic data that the paper names; the number of different values is ours, the most that ``olh`` takes.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import special

from benchmarks.paper.losses import Effort
from benchmarks.paper.populations import Population, protocol
from benchmarks.paper.variances import PROTOCOLS
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.inference.forecast import draw_counts
from uldp.mechanisms.laws.channel import Channel
from uldp.schemas.arrays import Floats

SIZE, USERS, EXPONENT, ALPHA = 10_000, 10_000_000, 1.5, 0.05
EPSILONS = (1.0, 2.0, 4.0)
#: Of a count: fixed ones, and that of ``ALPHA``, which differs between protocols.
THRESHOLDS = (6_000.0, 20_000.0, math.nan)
NAMES = ("DE", "SUE", "OUE", "BLH", "OLH")


class Found(NamedTuple):
    """What a protocol finds.

    Attributes:
        protocol: Its name.
        epsilon: The budget of a report.
        threshold: Of a count, in users.
        by_alpha: Whether the threshold is that of ``ALPHA``.
        frequent: How many values are frequent.
        true: The mean number of true positives over realizations.
        false: That of false positives.
        expected_true: That of true positives, by the normal distribution with the variance of the channel.
        expected_false: That of false positives.
    """

    protocol: str
    epsilon: float
    threshold: float
    by_alpha: bool
    frequent: int
    true: float
    false: float
    expected_true: float
    expected_false: float


def population(size: int = SIZE, users: int = USERS) -> Population:
    """Return values with shares in the ratio of 1, 2^-s, 3^-s, ..."""
    weights = np.arange(1, size + 1) ** -EXPONENT
    return Population("Zipf", weights / weights.sum(), np.ones(size, dtype=np.bool_), users)


def measure(effort: Effort, of: Population | None = None) -> Iterator[Found]:
    """Measure each protocol at each threshold."""
    values = population() if of is None else of
    for epsilon in effort.some(EPSILONS):
        for index, name in enumerate(NAMES):
            decoder = protocol(values, PROTOCOLS[name], epsilon).decoder
            assert isinstance(decoder, PureDecoder)
            channel, rng = decoder.channel, np.random.default_rng([12, index, round(epsilon)])
            windows = [draw_counts(channel, values.p, values.users, rng) for _ in range(effort.realizations)]
            estimates = values.users * np.array([channel.unbiased(counts, values.users) for counts in windows])
            for threshold in THRESHOLDS:
                yield _found(name, epsilon, threshold, channel, values, estimates)


def _found(
    name: str, epsilon: float, threshold: float, channel: Channel, values: Population, estimates: Floats
) -> Found:
    n, size = values.users, len(values.p)
    by_alpha = math.isnan(threshold)
    if by_alpha:
        of_none = n * math.sqrt(float(channel.variance(np.zeros(size), n)[0]))
        threshold = float(special.ndtri(1 - ALPHA / size)) * of_none
    frequent = n * values.p > threshold
    taken = (estimates > threshold).mean(axis=0)
    expected = special.ndtr((n * values.p - threshold) / (n * np.sqrt(channel.variance(values.p, n))))
    sums = [float(each[mask].sum()) for each in (taken, expected) for mask in (frequent, ~frequent)]
    return Found(name, epsilon, threshold, by_alpha, int(frequent.sum()), *sums)


def table(rows: list[Found]) -> list[str]:
    """Return a Markdown table."""
    lines = [
        "| ε | threshold | frequent | protocol | true positives | expected | false positives | expected |",
        "| ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for r in sorted(rows, key=lambda row: (row.epsilon, row.by_alpha, row.threshold if not row.by_alpha else 0)):
        threshold = f"{r.threshold:,.0f}{' (α)' if r.by_alpha else ''}"
        figures = " | ".join(f"{figure:,.1f}" for figure in (r.true, r.expected_true, r.false, r.expected_false))
        lines.append(f"| {r.epsilon:g} | {threshold} | {r.frequent} | {r.protocol} | {figures} |")
    return lines
