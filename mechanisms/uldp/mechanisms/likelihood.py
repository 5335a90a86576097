"""Maximum likelihood over the probability simplex: exactly, and by expectation-maximization (EM).

EM reconstruction (Murakami & Kawamoto, section 2.5; Agrawal & Aggarwal, PODS 2001) climbs to the same maximum. For
symbol reports ``exact_mle`` reaches it in one step, and ``em`` is here to compare with what others publish. For bit
reports counts do not determine the likelihood, and ``em_bits`` needs the reports themselves.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.channel import Channel
from uldp.mechanisms.unary_encoding import UnaryEncoding
from uldp.schemas.arrays import Counts, Floats, Mask

#: EM stops when a step moves the estimate by no more than this, in l1 distance.
TOLERANCE = 1e-6
MAX_ITERATIONS = 10_000
#: EM never leaves zero, so it starts with at least this fraction of the uniform distribution everywhere.
START_FLOOR = 1e-3
# Bits that are unpacked to floats at a time: 2 MiB, which a core's cache holds.
_BITS_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class EmFit:
    """Where EM stopped. At small epsilon this is often far from the maximum: look at ``converged``.

    Attributes:
        distribution: Shape (|Z|,), on the probability simplex.
        iterations: Steps taken.
        converged: Whether the last step was within the tolerance. A small step is no proof of a near maximum.
    """

    distribution: Floats
    iterations: int
    converged: bool


def exact_mle(channel: Channel, counts: Counts, n: int) -> Floats:
    """Maximize the likelihood of symbol reports over the probability simplex, in O(k log k).

    With f = C/n and b = q/(p - q) the log-likelihood of r is, but for a constant, sum_z f_z log(b_z + r_z). It is
    concave, and the conditions of Karush, Kuhn and Tucker give r_z = max(0, f_z/lambda - b_z) with

        lambda = sum_A f / (1 + sum_A b),    A = {z: f_z > lambda b_z}.

    Symbols enter A by falling f_z/b_z; each that belongs there raises lambda, each that does not lowers it, so the
    right lambda is the largest. For RR, uRR and PUM over uRR, b is 1/(E-1) on Z_S and 0 on Z_N; without obfuscation
    b = 0 and r = f.

    Args:
        channel: p and q of a mechanism that reports symbols.
        counts: Shape (|Z|,): support counts, which sum to ``n``.
        n: Reports behind the counts.

    Returns:
        Shape (|Z|,), on the probability simplex.

    Raises:
        ValueError: if the channel is one of bit reports, ``n`` is not positive, or ``counts`` does not fit.
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
    """Climb towards the maximum likelihood of symbol reports; ``exact_mle`` is the place where this ends.

    Args:
        channel: p and q of a mechanism that reports symbols.
        counts: Shape (|Z|,): support counts, which sum to ``n``.
        n: Reports behind the counts.
        start: Shape (|Z|,): where to begin, raised to ``START_FLOOR``; the uniform distribution if not given.
        tolerance: Stop at a step of this l1 length.
        max_iterations: Stop after this many steps, of O(|Z|) each.

    Returns:
        The estimate, and how it was reached.

    Raises:
        ValueError: as ``exact_mle``.
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
    """Climb towards the maximum likelihood of bit reports, which must have been retained: counts are not enough.

    Three facts keep it small. A report with a bit of Z_N is invertible: it names its symbol. In every other report all
    symbols of Z_N are equally likely, so they are one class beside those of Z_S, and share its probability as the
    invertible reports do (equally, if there are none). The probability of a report's bits, relative to no symbol of
    Z_S being true, depends on the bit of the true symbol alone. A step takes two matrix products over the Z_S bits of
    the different protected reports.

    Args:
        mechanism: The mechanism behind the reports.
        payloads: Shape (n, ceil(|Z|/8)): packed bits that have passed ``mechanism.possible``.
        start: Shape (|Z|,): where to begin, raised to ``START_FLOOR``; the uniform distribution if not given.
        tolerance: Stop at a step of this l1 length.
        max_iterations: Stop after this many steps, of O(n |Z_S|) each.

    Returns:
        The estimate, and how it was reached.

    Raises:
        ValueError: if there are no reports.
    """
    n = len(payloads)
    if n == 0:
        raise ValueError("no estimate from n=0 reports")
    channel, sensitive = mechanism.channel, mechanism.sensitive
    v = int(sensitive.sum())
    invertible = (payloads & np.packbits(~sensitive)).any(axis=1)
    named = mechanism.support(payloads[invertible])[~sensitive] / n
    patterns, repeats = _patterns(payloads[~invertible], sensitive)

    # A pattern's likelihood is a constant times: if_one or if_zero of the true symbol's bit on Z_S, if_missed on Z_N.
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
    if channel.independent_bits:
        raise ValueError(
            "counts do not determine the likelihood of bit reports; use norm-sub, or em_bits on the reports"
        )
    channel.unbiased(counts, n)  # checks the arguments
    if counts.sum() != n:
        raise ValueError(f"each report supports one symbol, but counts sum to {counts.sum()} with n={n}")
    return counts / n


def _floored(start: Floats | None, size: int) -> Floats:
    """Return a distribution to begin with that is nowhere zero."""
    if start is None:
        return np.full(size, 1 / size)
    raised: Floats = np.maximum(start, START_FLOOR / size)
    raised /= raised.sum()
    return raised


def _climb(step: Callable[[Floats], Floats], start: Floats, tolerance: float, max_iterations: int) -> EmFit:
    """Repeat ``step`` until it moves the estimate by no more than ``tolerance``."""
    estimate = start
    for iteration in range(1, max_iterations + 1):
        previous, estimate = estimate, step(estimate)
        if np.abs(estimate - previous).sum() <= tolerance:
            return EmFit(estimate, iteration, converged=True)
    return EmFit(estimate, max_iterations, converged=False)


def _patterns(
    payloads: npt.NDArray[np.uint8], sensitive: Mask
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.integer]]:
    """Return the different patterns of the Z_S bits, packed, and how often each occurs."""
    rows = max(1, _BITS_AT_ONCE // len(sensitive))
    packed = [
        np.packbits(np.unpackbits(payloads[first : first + rows], axis=1, count=len(sensitive))[:, sensitive], axis=1)
        for first in range(0, max(len(payloads), 1), rows)
    ]
    return np.unique(np.concatenate(packed), axis=0, return_counts=True)
