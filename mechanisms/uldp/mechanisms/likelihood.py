"""Maximum likelihood over the probability simplex: exactly, and by expectation-maximization (EM).

EM reconstruction (Murakami & Kawamoto, section 2.5; Agrawal & Aggarwal, PODS 2001) converges to the same maximum. For
symbol reports, ``exact_mle`` reaches the maximum in one step, and ``em`` allows a comparison with published results.
For bit reports, the counts do not determine the likelihood, and ``em_bits`` needs the reports themselves.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.channel import Channel
from uldp.mechanisms.packed_bits import count_bits
from uldp.mechanisms.unary_encoding import UnaryEncoding
from uldp.schemas.arrays import Counts, Floats, Mask

#: EM stops after a step that moves the estimate by at most this l1 distance.
TOLERANCE = 1e-6
MAX_ITERATIONS = 10_000
#: EM cannot raise an entry from zero, so each entry starts with at least this fraction of the uniform distribution.
START_FLOOR = 1e-3
# Number of bits to unpack to floats at once; the floats take 2 MiB, which fits a core's cache.
_BITS_AT_ONCE = 1 << 18


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
    lowers it, so the right lambda is the largest. For RR, uRR and PUM over uRR, b is 1/(E-1) on Z_S and 0 on Z_N.
    Without obfuscation, b = 0 and r = f.

    Args:
        channel: p and q of a mechanism that reports symbols.
        counts: Shape (|Z|,): support counts, which sum to ``n``.
        n: Number of counted reports.

    Returns:
        Shape (|Z|,), on the probability simplex.

    Raises:
        ValueError: if the channel has bit reports, ``n`` is not positive, or ``counts`` does not fit.
    """
    f = _fractions(channel, counts, n)
    b = channel.q / channel.gain
    falling = np.argsort(-np.divide(f, b, out=np.full_like(f, np.inf), where=b > 0))
    rate = (np.cumsum(f[falling]) / (1 + np.cumsum(b[falling]))).max()
    estimate: Floats = np.maximum(f / rate - b, 0.0)
    return estimate


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

    Args:
        channel: p and q of a mechanism that reports symbols.
        counts: Shape (|Z|,): support counts, which sum to ``n``.
        n: Number of counted reports.
        start: Shape (|Z|,): the first estimate, raised to ``START_FLOOR``; by default the uniform distribution.
        tolerance: Stop after a step of at most this l1 length.
        max_iterations: Stop after this many steps; each takes O(|Z|).

    Returns:
        The estimate, the number of steps, and whether EM converged.

    Raises:
        ValueError: under the same conditions as ``exact_mle``.
    """
    f = _fractions(channel, counts, n)

    def step(r: Floats) -> Floats:
        ratio = np.divide(f, channel.support_probability(r), out=np.zeros_like(f), where=f > 0)
        return r * (channel.q @ ratio + channel.gain * ratio)

    return _climb(step, _floored(start, channel.size), tolerance, max_iterations)


def em_bits(
    mechanism: UnaryEncoding,
    payloads: npt.NDArray[np.uint8],
    *,
    start: Floats | None = None,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> EmFit:
    """Climb towards the maximum likelihood of bit reports; needs the retained reports, because counts do not suffice.

    Three facts limit the work. A report with a bit of Z_N is invertible: it names its symbol. In every other report,
    all symbols of Z_N are equally likely, so they form one class beside the symbols of Z_S. They share the probability
    of this class in proportion to the invertible reports (equally, if there are none). The probability of a report's
    bits, relative to the case that no symbol of Z_S is true, depends only on the bit of the true symbol. A step takes
    two matrix products over the Z_S bits of the different protected reports.

    Args:
        mechanism: The mechanism of the reports.
        payloads: Shape (n, ceil(|Z|/8)): packed bits that have passed ``mechanism.possible``.
        start: Shape (|Z|,): the first estimate, raised to ``START_FLOOR``; by default the uniform distribution.
        tolerance: Stop after a step of at most this l1 length.
        max_iterations: Stop after this many steps; each takes O(n |Z_S|).

    Returns:
        The estimate, the number of steps, and whether EM converged.

    Raises:
        ValueError: if there are no reports.
    """
    n = len(payloads)
    if n == 0:
        raise ValueError("an estimate needs one report or more, got n=0")
    channel, sensitive = mechanism.channel, mechanism.sensitive
    v = int(sensitive.sum())
    invertible = (payloads & np.packbits(~sensitive)).any(axis=1)
    named = count_bits([payloads[invertible]], mechanism.size)[~sensitive] / n
    patterns, repeats = _patterns(payloads[~invertible], sensitive)

    # A pattern's likelihood is a constant times a factor: if_one or if_zero, by the true symbol's bit, on Z_S, and
    # if_missed on Z_N.
    p, q = channel.p[sensitive], channel.q[sensitive]
    if_one, if_zero = p / q, (1 - p) / (1 - q)
    if_missed = 1 - channel.p[~sensitive].max(initial=0.0)
    rows = max(1, _BITS_AT_ONCE // v)

    def step(classes: Floats) -> Floats:
        r, pooled = classes[:v], classes[v]
        inverse_sum, inverse_by_bit = 0.0, np.zeros(v)
        for first in range(0, len(patterns), rows):
            bits = np.unpackbits(patterns[first : first + rows], axis=1, count=v).astype(np.float64)
            marginal = bits @ (r * (if_one - if_zero)) + (r @ if_zero + pooled * if_missed)
            inverse = repeats[first : first + rows] / (n * marginal)
            inverse_sum += inverse.sum()
            inverse_by_bit += inverse @ bits
        following: Floats = classes * np.append(if_zero, if_missed) * inverse_sum
        following[:v] += r * (if_one - if_zero) * inverse_by_bit
        following[v] += named.sum()
        return following

    begin = _floored(start, channel.size)
    fit = _climb(step, np.append(begin[sensitive], begin[~sensitive].sum()), tolerance, max_iterations)
    distribution = np.empty(channel.size)
    distribution[sensitive] = fit.distribution[:v]
    if not sensitive.all():
        shares = named if named.any() else np.ones_like(named)
        distribution[~sensitive] = fit.distribution[v] * shares / shares.sum()
    return EmFit(distribution, fit.iterations, fit.converged)


def _fractions(channel: Channel, counts: Counts, n: int) -> Floats:
    """Return C/n after checking that the counts alone determine the likelihood."""
    if not channel.one_symbol:
        raise ValueError("counts do not determine the likelihood of bit reports; use wls, or em_bits on the reports")
    channel.unbiased(counts, n)  # checks the arguments
    if counts.sum() != n:
        raise ValueError(f"each report supports one symbol, but counts sum to {counts.sum()} with n={n}")
    return counts / n


def _floored(start: Floats | None, size: int) -> Floats:
    """Return a first estimate without zeros."""
    if start is None:
        return np.full(size, 1 / size)
    raised: Floats = np.maximum(start, START_FLOOR / size)
    raised /= raised.sum()
    return raised


def _climb(step: Callable[[Floats], Floats], start: Floats, tolerance: float, max_iterations: int) -> EmFit:
    """Repeat ``step`` until it moves the estimate by at most ``tolerance``, or ``max_iterations`` times."""
    estimate = start
    for iteration in range(1, max_iterations + 1):
        previous, estimate = estimate, step(estimate)
        if np.abs(estimate - previous).sum() <= tolerance:
            return EmFit(estimate, iteration, converged=True)
    return EmFit(estimate, max_iterations, converged=False)


def _patterns(
    payloads: npt.NDArray[np.uint8], sensitive: Mask
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.integer]]:
    """Return the distinct patterns of the Z_S bits, packed, and the number of reports with each pattern."""
    rows = max(1, _BITS_AT_ONCE // len(sensitive))
    packed = [
        np.packbits(np.unpackbits(payloads[first : first + rows], axis=1, count=len(sensitive))[:, sensitive], axis=1)
        for first in range(0, max(len(payloads), 1), rows)
    ]
    return np.unique(np.concatenate(packed), axis=0, return_counts=True)
