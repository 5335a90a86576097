"""Maximum likelihood over the probability simplex: exactly, and by expectation-maximization (EM).

EM reconstruction (Murakami & Kawamoto, section 2.5; Agrawal & Aggarwal, PODS 2001) converges to the same maximum. For
symbol reports, ``exact_mle`` computes the maximum, and ``em`` allows a comparison with published results. For bit
reports, the counts do not determine the likelihood.
"""

import numpy as np

from uldp.mechanisms.estimators.simplex import onto_simplex
from uldp.mechanisms.laws.channel import Channel
from uldp.schemas.arrays import Counts, Floats, Reports
from uldp.schemas.errors import DataError

#: EM stops after a step that moves the estimate by at most this l1 distance.
TOLERANCE = 1e-6
MAX_ITERATIONS = 10_000


def exact_mle(channel: Channel, counts: Counts, n: Reports) -> Floats:
    """Maximize the likelihood of symbol reports over the probability simplex.

    With f = C/n and b = q/(p - q), the log-likelihood of r per report is sum_z f_z log(b_z + r_z) plus a constant. It
    is concave, and the conditions of Karush, Kuhn and Tucker give r_z = max(0, f_z/lambda - b_z), for the lambda at
    which they sum to one. All p - q are equal to some g, so r-hat is f/g - b. With lambda = g (1 + l), this is

        r_z = max(0, (r-hat_z - l b_z) / (1 + l))

    which ``onto_simplex`` solves: the distribution that is nearest to r-hat by the variances of the counts at itself,
    which are in proportion to b + r. For RR, uRR and PUM over uRR, b is 1/(E-1) on Z_S and 0 on Z_N. Without
    obfuscation, b = 0 and r = f.

    The channel is of a mechanism that reports symbols, and its counts, shape (|Z|,), or each row of those of several
    windows, sum to ``n``.
    """
    f, b = _fractions(channel, counts, n), channel.q / channel.gain
    return onto_simplex(f / channel.gain - b, b, 1.0)


def em(
    channel: Channel, counts: Counts, n: int, *, tolerance: float = TOLERANCE, max_iterations: int = MAX_ITERATIONS
) -> Floats:
    """Climb from equal shares towards the maximum likelihood of symbol reports, which ``exact_mle`` computes exactly.

    EM stops after a step of at most the l1 length ``tolerance``, or after ``max_iterations`` steps; each takes O(|Z|).
    A small step does not prove that the maximum is near: at small epsilon it is often far.
    """
    f, r = _fractions(channel, counts, n), np.full(channel.size, 1 / channel.size)
    for _ in range(max_iterations):
        ratio = np.divide(f, channel.support_probability(r), out=np.zeros_like(f), where=f > 0)
        previous, r = r, r * (channel.q @ ratio + channel.gain * ratio)
        if np.abs(r - previous).sum() <= tolerance:
            break
    return r


def _fractions(channel: Channel, counts: Counts, n: Reports) -> Floats:
    """Return C/n after checking that the counts alone determine the likelihood."""
    if not channel.one_symbol:
        raise DataError("counts do not determine the likelihood of bit reports; use wls")
    channel.check(counts, n)
    sums = counts.sum(axis=-1, keepdims=True)
    if (sums != n).any():
        raise DataError(f"each report supports one symbol, but counts sum to {sums.item(0)} with n={n}")
    return np.asarray(counts / n)
