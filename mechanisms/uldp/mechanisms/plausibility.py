"""Plausibility: how improbable the reports of a window are, if every device follows the mechanism.

A small p-value is a signal to an operator, who looks for a broken client, a wrong spec or an attack. It corrects
nothing. Over many windows some are small by chance: a bound of 0.01 flags up to one honest window in a hundred.

What a signal cannot show is a device that follows the mechanism with a value it does not hold. Its reports are those of
an honest device that does hold it, so nobody can tell, whatever the test. What can be seen are reports that no mixture
of true symbols explains:

- The counts of a window (``fit_counts``). Under symbol reports the mechanism's noise is a floor, n q, below which no
  count falls but by chance. Reports sent without obfuscation, even all of one symbol, drain the floor under symbols
  that nobody holds; where every symbol is held by more than the forgers drain, they pass. Under bit reports the
  estimates must also sum to one. Devices that set all bits, no bit, or their own bit alone break that.
- The number of bits of one report (``plausible_bit_totals``), and of such reports in a window (``excess_p_value``). A
  careful forger sets as many bits as the mechanism would.

Sources: Cheu, Smith & Ullman, "Manipulation Attacks in Local Differential Privacy" (IEEE S&P 2021), and Cao, Jia &
Gong, "Data Poisoning Attacks to Local Differential Privacy Protocols" (USENIX Security 2021), for what forged values
and forged reports can do; Susko, "Likelihood ratio tests with boundary constraints using data-dependent degrees of
freedom" (Biometrika 100, 2013) for the degrees of freedom.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from uldp.mechanisms.channel import Channel
from uldp.mechanisms.likelihood import exact_mle
from uldp.mechanisms.unary_encoding import UnaryEncoding
from uldp.schemas.arrays import Counts, Floats

#: ``fit_counts`` needs this variance of the count of a symbol that nobody holds: below, the count is far from normal.
MIN_NOISE_VARIANCE = 10.0
# Halvings of an interval that holds the root: they leave 4e-15 of it.
_HALVINGS = 48


@dataclass(frozen=True)
class Fit:
    """How far the support counts of a window are from every distribution that the channel can produce.

    Attributes:
        statistic: Chi-square distance of the counts from the nearest such distribution.
        degrees: Degrees of freedom: the constraints that keep the fit from the counts.
        p_value: Probability, at most, that honest reports are this far or farther; 1 without such constraints.
    """

    statistic: float
    degrees: int
    p_value: float


def fit_counts(channel: Channel, counts: Counts, n: int) -> Fit | None:
    """Test whether any distribution of true symbols explains the support counts of a window.

    The nearest r of the probability simplex is found, and its distance from the counts:

    - Symbol reports: r by maximum likelihood, and Pearson's sum_z (C_z - n m_z)^2 / (n m_z). The counts sum to n as
      the m_z do for every r on the simplex, so r >= 0 is all that can keep r from the counts.
    - Bit reports: r by generalized least squares, and sum_z (r-hat_z - r_z)^2 / v_z, where v is the variance given the
      users' values, ``Channel.variance_given_values``. Given their histogram r, the bits of a window are independent.
      (The Mahalanobis distance under the i.i.d. covariance of ``Channel.covariance_factors`` leads to the same r, and
      is the same there.) Here r must be >= 0, and must sum to one though the r-hat_z do not.

    The degrees of freedom are the constraints that hold: one for each noisy symbol with r_z = 0, and under bit reports
    one for the sum. This p-value is conservative. Given the symbols held at zero, and the direction of the residual,
    its length is distributed as chi if the truth is at that boundary too. If it is inside, the mean of the residual
    points back into the simplex, and the length is stochastically smaller. Counts are not quite normal: with the
    fewest reports that are tested, and one or two symbols, what is called 1e-3 is up to 2e-3 and 1e-6 up to 3e-5.

    Args:
        channel: p and q of the mechanism.
        counts: Shape (|Z|,): support counts of possible reports.
        n: Reports behind the counts.

    Returns:
        The fit, or None where there is nothing to test or the counts are not near to normal: some noisy symbol (q > 0)
        has n q (1 - q) < ``MIN_NOISE_VARIANCE``, or none is noisy, as without obfuscation.

    Raises:
        ValueError: if ``counts`` does not fit the channel and ``n``.
    """
    noisy = channel.q > 0
    noise_variance = n * (channel.q * (1 - channel.q))[noisy]
    if noise_variance.min(initial=np.inf) < MIN_NOISE_VARIANCE or not noisy.any():
        return None
    if channel.independent_bits:
        r = _nearest_given_bits(channel, counts, n)
        square, variance = (channel.unbiased(counts, n) - r) ** 2, channel.variance_given_values(r, n)
    else:
        r = exact_mle(channel, counts, n)
        expected = n * channel.support_probability(r)
        square, variance = (counts - expected) ** 2, expected
    # A symbol without noise that nobody reports fits exactly.
    statistic = float(np.divide(square, variance, out=np.zeros_like(r), where=variance > 0).sum())
    degrees = int(np.count_nonzero(noisy & (r == 0))) + channel.independent_bits
    return Fit(statistic, degrees, float(special.chdtrc(degrees, statistic)) if degrees else 1.0)


def _nearest_given_bits(channel: Channel, counts: Counts, n: int) -> Floats:
    """Return the r of the simplex that minimizes sum_z (r-hat_z - r_z)^2 / v_z, with v = v(r) at that same r.

    Weights at r-hat itself would favour whatever is low by chance. Weights at r are those of Pearson, and are usually
    iterated; but v is linear in r, v = a + c r, so the conditions of Karush, Kuhn and Tucker with v held,

        r_z = r-hat_z - lambda v_z    or    r_z = 0 where r-hat_z <= lambda v_z,

    give r_z = max(0, r-hat_z - lambda a_z) / (1 + lambda c_z) at once. Each falls with lambda, so halving an interval
    finds the lambda with which they sum to one. A symbol with q = 0 that nobody reports stays at 0 and is left out.
    """
    unbiased = channel.unbiased(counts, n)
    kept = (channel.q > 0) | (counts > 0)
    x = unbiased[kept]
    a = channel.variance_given_values(np.zeros(channel.size), 1)[kept]
    c = channel.variance_given_values(np.ones(channel.size), 1)[kept] - a
    # Where every symbol has its share of 1/k or more, and where it has that or less.
    share = 1 / len(x)
    shares_at = (x - share) / (a + c * share)
    low, high = shares_at.min(), shares_at.max()

    def solution(rate: float) -> Floats:
        above: Floats = np.maximum(x - rate * a, 0)
        return above / np.maximum(1 + rate * c, np.finfo(np.float64).tiny)

    with np.errstate(over="ignore"):  # left of the pole, where 1 + lambda c = 0, the solution is infinite
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if solution(middle).sum() > 1:
                low = middle
            else:
                high = middle
    nearest = np.zeros(channel.size)
    nearest[kept] = solution(high)
    return nearest


def plausible_bit_totals(mechanism: UnaryEncoding, tail: float) -> tuple[int, int]:
    """Bound the number of bits that are set in one honest report.

    The own bit is set with probability p, and the number of other bits of Z_S is binomial; of Z_N no other is set. So
    the total has two distributions, one for each true symbol of Z_S and one for each of Z_N.

    Args:
        mechanism: The mechanism behind the reports.
        tail: Probability, at most, that an honest report is outside of the bounds, whatever its true symbol; half of
            it on either side.

    Returns:
        The tightest (low, high) such that, whatever the true symbol, Pr(total < low) <= tail / 2 and
        Pr(total > high) <= tail / 2.

    Raises:
        ValueError: if ``tail`` is not inside (0, 1).
    """
    if not 0 < tail < 1:
        raise ValueError(f"tail must be inside (0, 1), got {tail}")
    sensitive = mechanism.sensitive
    v, q = int(sensitive.sum()), mechanism.channel.q[sensitive][0]
    lows, highs = [], []
    for protected in np.unique(sensitive):
        cleared = mechanism.cleared_probability[sensitive == protected][0]
        others = v - 1 if protected else v
        binomial = np.arange(others)
        at_most = np.concatenate([[0.0], special.bdtr(binomial, others, q), [1.0]])  # Pr(others <= j), from j = -1
        at_least = np.concatenate([[1.0], special.bdtrc(binomial, others, q), [0.0]])  # Pr(others >= j), from j = 0
        total_at_most = cleared * at_most[1:] + (1 - cleared) * at_most[:-1]  # from j = 0
        total_at_least = cleared * at_least[1:] + (1 - cleared) * at_least[:-1]  # from j = 1
        lows.append(int(np.count_nonzero(total_at_most <= tail / 2)))
        highs.append(int(np.count_nonzero(total_at_least > tail / 2)))
    return min(lows), max(highs)


def excess_p_value(observed: int, n: int, tail: float) -> float:
    """Return the probability, at most, that ``observed`` or more of n honest reports are improbable ones.

    Args:
        observed: Reports found to be improbable, such as those outside of ``plausible_bit_totals``.
        n: All reports.
        tail: Probability, at most, that an honest report is found so, whatever its true symbol.

    Returns:
        The upper tail of the binomial distribution of n and ``tail``.

    Raises:
        ValueError: if ``observed`` is not in 0..n, or ``tail`` is not inside (0, 1).
    """
    if not 0 <= observed <= n:
        raise ValueError(f"{observed} of {n} reports are impossible")
    if not 0 < tail < 1:
        raise ValueError(f"tail must be inside (0, 1), got {tail}")
    # As an incomplete beta function: SciPy's bdtrc, the same in name, has half of the digits where tails are small.
    return float(special.betainc(observed, n - observed + 1, tail)) if observed else 1.0
