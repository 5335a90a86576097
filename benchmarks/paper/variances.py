"""Analytic and empirical variance of every pure protocol over epsilon, as in Wang et al. (USENIX Security 2017).

Values follow Zipf's law with s = 1.1 and n = 10,000, as in their section 5. The empirical variance is the mean squared
error of the estimated number of users of a value, over all values; the analytic one is their equation (2), summed over
the same values. Reports are drawn, not counts, so the figures test perturbation, support and estimate together.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.paper.losses import Effort
from benchmarks.paper.populations import Population, protocol
from uldp.mechanisms.pure import PureDecoder
from uldp.schemas.arrays import Floats

#: The names of the paper, and those of specs.
PROTOCOLS = {"DE": "rr", "SUE": "sue", "OUE": "oue", "OLH": "olh"}
EPSILONS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)
SIZE, USERS, EXPONENT = 128, 10_000, 1.1


class Variance(NamedTuple):
    """The variance of a protocol.

    Attributes:
        protocol: The name in the paper.
        epsilon: The budget of a report.
        analytic: The mean of equation (2) over values, in users squared.
        empirical: The mean squared error, in users squared.
        z: How many standard errors the empirical variance is away from the analytic one.
    """

    protocol: str
    epsilon: float
    analytic: float
    empirical: float
    z: float


def zipf(size: int = SIZE) -> Population:
    """Return values with shares in the ratio of 1, 2^-s, 3^-s, ..."""
    weights = np.arange(1, size + 1) ** -EXPONENT
    return Population("Zipf", weights / weights.sum(), np.ones(size, dtype=np.bool_), USERS)


def measure(effort: Effort) -> Iterator[Variance]:
    """Measure all protocols; the users' values are the same in each realization."""
    population = zipf()
    symbols = np.random.default_rng(10).choice(SIZE, USERS, p=population.p)
    held: Floats = np.bincount(symbols, minlength=SIZE) / USERS
    rng = np.random.default_rng(11)
    for name, mechanism_name in PROTOCOLS.items():
        for epsilon in effort.some(EPSILONS):
            built = protocol(population, mechanism_name, epsilon)
            assert isinstance(built.decoder, PureDecoder)
            channel, errors = built.decoder.channel, []
            for _ in range(effort.realizations):
                counts = built.mechanism.statistic(built.mechanism.perturb(symbols, rng))
                errors.append(USERS * (channel.unbiased(counts, USERS) - held))
            # Of each realization, the mean over values: these means are independent.
            means = (np.array(errors) ** 2).mean(axis=1)
            analytic = float(USERS**2 * channel.variance_given_values(held, USERS).mean())
            z = (means.mean() - analytic) / (means.std(ddof=1) / np.sqrt(len(means)))
            yield Variance(name, epsilon, analytic, float(means.mean()), float(z))


def draw(rows: Sequence[Variance], path: Path) -> None:
    """Draw analytic variances as lines, and empirical ones as points."""
    from matplotlib.figure import Figure

    image = Figure(figsize=(8, 5), layout="constrained")
    axes = image.subplots()
    for index, name in enumerate(dict.fromkeys(row.protocol for row in rows)):
        of = [row for row in rows if row.protocol == name]
        x = [row.epsilon for row in of]
        axes.plot(x, [row.analytic for row in of], color=f"C{index}", label=name)
        axes.plot(x, [row.empirical for row in of], "o", color=f"C{index}", markersize=4)
    axes.set_yscale("log")
    axes.set_xlabel("ε")
    axes.set_ylabel("variance of a count, users²; lines: (2)")
    axes.legend()
    image.savefig(path, dpi=110)


def table(rows: Sequence[Variance]) -> list[str]:
    """Return a Markdown table."""
    return [
        "| protocol | ε | analytic | empirical | z |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(f"| {r.protocol} | {r.epsilon:g} | {r.analytic:.5g} | {r.empirical:.5g} | {r.z:+.1f} |" for r in rows),
    ]
