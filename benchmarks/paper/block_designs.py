"""uBD of this project beside that of its paper, and the limit of every mechanism that is ULDP.

Source: Yoon, Park, Nam & Lee, "Fundamental Limit of Discrete Distribution Estimation under Utility-Optimized Local
Differential Privacy" (arXiv 2509.24173), and the program of its authors (github.com/phy811/uBD), which has the limit
and the synthetic data of their figures: 300 values, with shares as 1/i, or as 0.95^i, the first v of them sensitive.

The scheme of the paper draws a number k with probability t_k, and then a set of k of the v sensitive symbols. All sets
of k symbols are blocks of it. With E = e^epsilon and c_k = 1 / (k E + v - k), a sensitive symbol is in the block with
probability k E c_k, and one that is not sensitive sends any block with probability v c_k t_k and k, and else itself.
Its estimate is linear in the scores of reports at a distribution of which the sensitive symbols have the share alpha.
The paper takes the t with the least error in the worst case over distributions, at the worst alpha.

``squared_error`` is exact for any distribution. It is derived here from the scores: the paper has no closed form. The
points of the paper's figures are lower where epsilon is small, because its program cuts negative estimates; here
estimates are unbiased, on both sides.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from benchmarks.paper.losses import Effort
from benchmarks.paper.populations import Population, census, manhattan, protocol
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.kernels.designs import designs
from uldp.schemas.arrays import Floats, Mask

EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
SIZE, SENSITIVE = 300, (30, 100)


class Scheme(NamedTuple):
    """The parameters of uBD that are best in the worst case.

    Attributes:
        alpha: The share of the sensitive symbols at which the error is largest.
        blocks: Shape (v,): t, the probabilities of blocks of 1 to v symbols.
        limit: n times the mean squared error in the worst case; that of no mechanism is less, for large n.
        gap: By how much, as a share of it, another t could lower the limit at most.
    """

    alpha: float
    blocks: Floats
    limit: float
    gap: float


class Compared(NamedTuple):
    """uBD on some values, by formulas: n times the mean squared error, summed over values.

    Attributes:
        population: The name of the values.
        sensitive: The number of sensitive ones.
        epsilon: The budget of a report.
        limit: That of the paper, for the worst distribution of as many values.
        paper: That of the scheme of the paper.
        ours: That of uBD with the design of ``w: auto``.
        best: That of uBD with the w that is best for these values.
    """

    population: str
    sensitive: int
    epsilon: float
    limit: float
    paper: float
    ours: float
    best: float


def information(alpha: float, size: int, sensitive: int, epsilon: float) -> Floats:
    """Return the Fisher information of one report, shape (3, v), for blocks of 1 to v symbols.

    The rows are J_1 of differences between sensitive symbols, J_2 of those between others, and J_3 of the share of the
    sensitive ones; k varies along a row. The limit is (v-1)/J_1 + (|X|-v-1)/J_2 + 1/J_3, for J summed with weights t.
    """
    k, v, gain = np.arange(1, sensitive + 1), sensitive, math.expm1(epsilon)
    supported, total = alpha * k * gain + v, k * gain + v
    between_sensitive = v * gain**2 / max(v - 1, 1) * k * (v - k) / (supported * total)
    between_others = (size - v) * gain / (1 - alpha) * k / total
    of_share = v * (size - v) * gain / (size * (1 - alpha)) * k / supported
    return np.array([between_sensitive, between_others, of_share])


def best_blocks(alpha: float, size: int, sensitive: int, epsilon: float) -> Scheme:
    """Return the t with the least error at ``alpha``: blocks of one size, or of two that are next to each other."""
    j, weights = information(alpha, size, sensitive, epsilon), np.array([sensitive - 1.0, size - sensitive - 1.0, 1.0])
    with np.errstate(divide="ignore"):
        single = (weights[:, np.newaxis] / j).sum(axis=0)
    best = int(single.argmin())
    blocks, least = np.eye(sensitive)[best], float(single[best])
    for other in {max(best - 1, 0), min(best + 1, sensitive - 1)} - {best}:
        pair = j[:, [best, other]]

        def error(share: float, pair: Floats = pair) -> float:
            return float((weights / (pair @ np.array([1 - share, share]))).sum())

        found = minimize_scalar(error, bounds=(0, 1), method="bounded", options={"xatol": 1e-9})
        if found.fun < least:
            least, blocks = float(found.fun), np.zeros(sensitive)
            blocks[[best, other]] = 1 - found.x, found.x
    # The error is convex in t, so no other t is better by more than this.
    slope = -(weights / (j @ blocks) ** 2) @ j
    return Scheme(alpha, blocks, least, float(slope @ blocks - slope.min()) / least)


@cache
def worst_case(size: int, sensitive: int, epsilon: float) -> Scheme:
    """Return the scheme of the paper, and its limit."""
    found = minimize_scalar(
        lambda alpha: -best_blocks(alpha, size, sensitive, epsilon).limit,
        bounds=(0, 1),
        method="bounded",
        options={"xatol": 1e-7},
    )
    return best_blocks(float(found.x), size, sensitive, epsilon)


def squared_error(p: Floats, sensitive: Mask, epsilon: float, scheme: Scheme) -> float:
    """Return n E[l2^2(p-hat, p)] of the scheme of the paper.

    The errors of three parts of the estimate are orthogonal, so that their squares add up: the shares of sensitive
    values less their mean, those of others less theirs, and the share R of all others.
    """
    v, others, gain = int(sensitive.sum()), int((~sensitive).sum()), math.expm1(epsilon)
    k, t, alpha = np.arange(1, v + 1), scheme.blocks, scheme.alpha
    c = 1 / (k * gain + v)
    r = float(p[~sensitive].sum())
    named, of_size = 1 - float(t @ (v * c)), t * (1 - r + r * v * c)

    score = gain / (1 + gain * alpha * k / v)
    own = t * k * (gain + 1) * c
    slope = float(score @ (own - (t * k - own) / max(v - 1, 1)))
    means = slope * (p[sensitive] - (1 - r) / v)
    second = float(of_size @ (score**2 * k * (v - k))) / v
    between_sensitive = (second - float(means @ means)) / slope**2 if v > 1 else 0.0

    reports = named * p[~sensitive]
    between_others = (reports.sum() * (1 - 1 / others) - ((reports - reports.mean()) ** 2).sum()) / named**2

    of_named, of_block = 1 / (1 - alpha), (v * c - 1) / (alpha + (1 - alpha) * v * c)
    if_others, if_sensitive = named * of_named + float((t * v * c) @ of_block), float(t @ of_block)
    second = named * r * of_named**2 + float(of_size @ of_block**2)
    variance = second - (r * if_others + (1 - r) * if_sensitive) ** 2
    of_share = variance / (if_others - if_sensitive) ** 2 * (1 / v + 1 / others)
    return float(between_sensitive + between_others + of_share)


def populations() -> Iterator[Population]:
    """Yield the data of this project, and the synthetic data of the paper."""
    yield census()
    yield manhattan()
    i = np.arange(1, SIZE + 1)
    for v in SENSITIVE:
        for name, weights in (("Zipf", 1 / i), ("geometric", 0.95**i)):
            yield Population(f"{name}, {SIZE} values", weights / weights.sum(), i <= v, 30_000)


def measure(effort: Effort, of: Iterable[Population] | None = None) -> Iterator[Compared]:
    """Compare uBD on each population, over epsilon."""
    for population in populations() if of is None else of:
        p, v, size = population.p, int(population.sensitive.sum()), len(population.p)
        for epsilon in effort.some(EPSILONS):
            scheme = worst_case(size, v, epsilon)
            paper = squared_error(p, population.sensitive, epsilon, scheme)
            sizes = sorted({design.block for design in designs(v, size)})
            best = min(_ours(population, {"name": "ubd", "w": w}, epsilon) for w in sizes)
            ours = _ours(population, {"name": "ubd"}, epsilon)
            yield Compared(population.name, v, epsilon, scheme.limit, paper, ours, best)


def _ours(population: Population, mechanism: Mapping[str, object], epsilon: float) -> float:
    decoder = protocol(population, mechanism, epsilon).decoder
    assert isinstance(decoder, PureDecoder)
    return float(decoder.channel.variance(population.p, 1).sum())


def draw(rows: Sequence[Compared], path: Path) -> None:
    """Draw the errors over epsilon, as ratios to the limit: a panel for each population."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys((row.population, row.sensitive) for row in rows))
    image = Figure(figsize=(4 * len(names), 4), layout="constrained")
    for axes, name in zip(image.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        of = [row for row in rows if (row.population, row.sensitive) == name]
        x = [row.epsilon for row in of]
        axes.plot(x, [row.paper / row.limit for row in of], label="uBD of the paper")
        axes.plot(x, [row.ours / row.limit for row in of], "o", label="uBD, w: auto")
        axes.plot(x, [row.best / row.limit for row in of], "x", label="uBD, best w")
        axes.axhline(1, color="black", linewidth=0.6)
        axes.set_xlabel("ε")
        axes.set_ylabel("MSE / limit of the worst case")
        axes.set_title(f"{name[0]}, |X_S| = {name[1]}", fontsize=9)
        axes.legend(fontsize=7)
    image.savefig(path, dpi=110)


def table(rows: Sequence[Compared]) -> list[str]:
    """Return a Markdown table."""
    lines = [
        "| population | sensitive | ε | limit | paper's uBD | `w: auto` / paper's | best w / paper's |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for r in rows:
        ratios = f"{r.ours / r.paper:.3f} | {r.best / r.paper:.3f}"
        lines.append(f"| {r.population} | {r.sensitive} | {r.epsilon:g} | {r.limit:.4g} | {r.paper:.4g} | {ratios} |")
    return lines
