"""Maximum likelihood over the probability simplex: exactly, and by expectation-maximization (EM).

EM reconstruction (Murakami & Kawamoto, section 2.5; Agrawal & Aggarwal, PODS 2001) converges to the same maximum. For
symbol reports, ``exact_mle`` reaches the maximum in one step, and ``em`` allows a comparison with published results.
For bit reports, the counts do not determine the likelihood; ``bit_likelihood``, beside this module, takes the reports.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.laws.channel import Channel
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.errors import DataError

#: EM stops after a step that moves the estimate by at most this l1 distance.
TOLERANCE = 1e-6
MAX_ITERATIONS = 10_000
#: EM cannot raise an entry from zero, so each entry starts with at least this fraction of the uniform distribution.
START_FLOOR = 1e-3


@dataclass(frozen=True, eq=False)
class EmFit:
    """The result of EM; at small epsilon it is often far from the maximum, so check ``converged``.

    Attributes:
        distribution: Shape (|Z|,), on the probability simplex.
        iterations: Number of steps.
        converged: Whether the last step was within the tolerance. A small step does not prove that the maximum is near.
    """

    distribution: Floats
    iterations: int
    converged: bool


def exact_mle(channel: Channel, counts: Counts, n: int) -> Floats:
    """Maximize the likelihood of symbol reports over the probability simplex, in O(k log k).

    With f = C/n and b = q/(p - q), the log-likelihood of r per report is sum_z f_z log(b_z + r_z) plus a constant. It
    is concave, and the conditions of Karush, Kuhn and Tucker give r_z = max(0, f_z/lambda - b_z) with

        lambda = sum_A f / (1 + sum_A b),    A = {z: f_z > lambda b_z}.

    Add symbols to A in the order of falling f_z/b_z. Each symbol that belongs to A raises lambda, and each other symbol
    lowers it, so the right lambda is the largest. For RR, uRR and PUM over uRR, b is 1/(E-1) on Z_S and 0 on Z_N: all
    of Z_N come first, in any order. Without obfuscation, b = 0 and r = f.

    The channel is of a mechanism that reports symbols, and its counts, shape (|Z|,), sum to ``n``.
    """
    f, b = _fractions(channel, counts, n), channel.q / channel.gain
    noisy = np.flatnonzero(b)
    return np.asarray(np.maximum(f / best_rates(counts[np.newaxis, noisy], b[noisy], np.array([n]))[0] - b, 0.0))


def best_rates(counts: Counts, b: Floats, n: Counts) -> Floats:
    """Return lambda of ``exact_mle`` for each of k windows of n reports, shape (k,): many take little longer than one.

    The counts, shape (k, v), and b, shape (v,), are those of the v symbols with b > 0.
    """
    f, certain = counts / n[:, np.newaxis], (n - counts.sum(axis=1)) / n
    order = np.argsort(-f / b)
    sums = np.cumsum(np.column_stack([certain, np.take_along_axis(f, order, axis=1)]), axis=1)
    rates = (sums[:, 1:] / (1 + np.cumsum(b[order], axis=1))).max(axis=1, initial=0.0)
    return np.asarray(np.maximum(rates, certain))


def em(
    channel: Channel,
    counts: Counts,
    n: int,
    *,
    start: Floats | None = None,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> EmFit:
    """Climb towards the maximum likelihood of symbol reports, which ``exact_mle`` computes exactly.

    The first estimate is ``start``, raised to ``START_FLOOR``, or the uniform distribution. EM stops after a step of at
    most the l1 length ``tolerance``, or after ``max_iterations`` steps; each takes O(|Z|).
    """
    f = _fractions(channel, counts, n)

    def step(r: Floats) -> Floats:
        ratio = np.divide(f, channel.support_probability(r), out=np.zeros_like(f), where=f > 0)
        return r * (channel.q @ ratio + channel.gain * ratio)

    return climb(step, floored(start, channel.size), tolerance, max_iterations)


def _fractions(channel: Channel, counts: Counts, n: int) -> Floats:
    """Return C/n after checking that the counts alone determine the likelihood."""
    if not channel.one_symbol:
        raise DataError(
            "counts do not determine the likelihood of bit reports; use wls, or maximize_bits on the reports"
        )
    channel.check(counts, n)
    if counts.sum() != n:
        raise DataError(f"each report supports one symbol, but counts sum to {counts.sum()} with n={n}")
    return counts / n


def floored(start: Floats | None, size: int) -> Floats:
    """Return a first estimate without zeros."""
    if start is None:
        return np.full(size, 1 / size)
    raised: Floats = np.maximum(start, START_FLOOR / size)
    raised /= raised.sum()
    return raised


def climb(step: Callable[[Floats], Floats], start: Floats, tolerance: float, max_iterations: int) -> EmFit:
    """Repeat ``step`` until it moves the estimate by at most ``tolerance``, or ``max_iterations`` times."""
    estimate = start
    for iteration in range(1, max_iterations + 1):
        previous, estimate = estimate, step(estimate)
        if np.abs(estimate - previous).sum() <= tolerance:
            return EmFit(estimate, iteration, converged=True)
    return EmFit(estimate, max_iterations, converged=False)
