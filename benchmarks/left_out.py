"""Systems of the literature that are left out, beside what is here in their place.

    python -m benchmarks.left_out

Each row has the ratio of the mean squared error of the system to that of what is here, by epsilon. Errors follow from
the laws of reports, as published, at equal shares; those of ``tree`` are measured. HaarHRR: ranges with random ends and
those of fewer than 32 values, of 1,024 values. HT and large views, as those of CALM: the tables of all pairs of 16
attributes of two values, beside all pairs as views, of which each attribute is pooled over all. SEM, whose law no paper
at hand states, is taken as the exponential mechanism, which spends half of epsilon, on a line of 100 values; the ratio
is that of the variances of shares. ``python -m benchmarks.means`` has the systems for numbers.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.coverage import print_heading
from benchmarks.ranges import SIZE
from benchmarks.trees import USERS, ends, measure, shapes
from uldp.mechanisms.families.metric.randomizer import MetricMechanism
from uldp.schemas.arrays import Floats

EPSILONS = 0.5, 1.0, 2.0, 4.0
ATTRIBUTES = 16
LINE = 100


def haar_errors(epsilon: float) -> list[float]:
    """Return the mean squared errors of HaarHRR for both kinds of ranges, at ``USERS`` users.

    A user draws a level, and reports the signed wavelet of this level by Hadamard randomized response: each coefficient
    has the variance ((E+1)/(E-1))^2 of a report of the level (Kulkarni, Cormode & Srivastava, VLDB 2019).
    """
    levels = (SIZE - 1).bit_length()
    variance = math.tanh(epsilon / 2) ** -2 * levels / USERS
    found = []
    for first, end in ends():
        squares = np.zeros(len(first))
        for level in range(1, levels + 1):
            width = 1 << level
            starts = np.arange(0, SIZE, width)[:, np.newaxis]
            left = np.clip(np.minimum(end, starts + width // 2) - np.maximum(first, starts), 0, None)
            right = np.clip(np.minimum(end, starts + width) - np.maximum(first, starts + width // 2), 0, None)
            squares += (((left - right) / width) ** 2).sum(axis=0)
        found.append(float(variance * squares.mean()))
    return found


def haar(epsilon: float) -> list[float]:
    """Return the ratios of HaarHRR to ``tree`` with the estimator ``empirical``, of both kinds of ranges."""
    tree = measure(epsilon, shapes()["falling"], windows=2)["empirical"]
    return [one / other for one, other in zip(haar_errors(epsilon), tree[:2], strict=True)]


def views_error(epsilon: float, views: int, attributes: int) -> float:
    """Return the error of a table of two attributes, times users, if a user reports one of so many views by ``ss``.

    Tables of two values each are a mean of interactions: that of the pair, and that of each attribute, each pooled over
    the views that hold it.
    """
    cells, e = 2**attributes, math.exp(epsilon)
    w = np.arange(1, cells // 2 + 1)
    p = w * e / (w * e + cells - w)
    q = (p * (w - 1) + (1 - p) * w) / (cells - 1)
    interaction = views * float((w * (cells - w) / (cells - 1) / (p - q) ** 2).min())
    of_pair = views * attributes * (attributes - 1) / (ATTRIBUTES * (ATTRIBUTES - 1))
    of_attribute = views * attributes / ATTRIBUTES
    return interaction * (1 / of_pair + 2 / of_attribute) / 4


def pairs_error(epsilon: float) -> float:
    """Return that of all pairs as views."""
    return views_error(epsilon, math.comb(ATTRIBUTES, 2), 2)


def hadamard_transform(epsilon: float) -> float:
    """Return the ratio of HT, where a user reports one of all coefficients of one attribute or two by a bit."""
    coefficients = ATTRIBUTES + math.comb(ATTRIBUTES, 2)
    return 3 / 4 * coefficients * math.tanh(epsilon / 2) ** -2 / pairs_error(epsilon)


def exponential(epsilon: float) -> float:
    """Return the ratio of the exponential mechanism to ``metric`` on a line."""
    distance = np.abs(np.subtract.outer(np.arange(LINE), np.arange(LINE)))
    weights = np.exp(-epsilon / 2 * distance)
    half = weights / weights.sum(axis=1, keepdims=True)
    return _variance(half) / _variance(MetricMechanism(LINE, epsilon).matrix)


def _variance(matrix: Floats) -> float:
    """Return the sum of the variances of unbiased shares, times users; rows of the matrix are laws of reports."""
    inverse, m = np.linalg.inv(matrix), matrix.mean(axis=0)
    return float(((inverse**2).T @ np.ones(LINE) * m).sum() - 1 / LINE)


def rows() -> Iterator[tuple[str, str, Sequence[float]]]:
    """Yield what is left out, what is here, and the ratio at each epsilon."""
    both = [haar(epsilon) for epsilon in EPSILONS]
    yield "HaarHRR, ranges with random ends", "`tree`", [each[0] for each in both]
    yield "HaarHRR, short ranges", "`tree`", [each[1] for each in both]
    yield "HT", "`marginals` of pairs", [hadamard_transform(epsilon) for epsilon in EPSILONS]
    for views, attributes in ((20, 4), (13, 6)):
        errors = [views_error(epsilon, views, attributes) / pairs_error(epsilon) for epsilon in EPSILONS]
        yield f"{views} views of {attributes}, as CALM", "`marginals` of pairs", errors
    yield "SEM, as the exponential mechanism", "`metric`", [exponential(epsilon) for epsilon in EPSILONS]


def main() -> None:
    """Print a Markdown table."""
    print_heading("Left out", "Here", *(f"ε = {epsilon:g}" for epsilon in EPSILONS))
    for system, here, ratios in rows():
        print(f"| {system} | {here} | {' | '.join(f'{ratio:.2g}' for ratio in ratios)} |", flush=True)


if __name__ == "__main__":
    main()
