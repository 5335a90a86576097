"""Plausibility: how improbable the reports of a window are, if every device follows the mechanism.

A small p-value is a signal to an operator, who then looks for a broken client, a wrong spec or an attack; the job
corrects nothing. No test can detect a device that follows the mechanism with a value that it does not hold. The tests
detect reports that no mixture of true symbols explains:

- The counts of a window (``fit_counts``). Under symbol reports, the mechanism's noise sets a floor of n q, and a count
  falls below it only by chance. Forged reports without perturbation, even if all name one symbol, add no noise, so the
  counts of symbols that no device holds fall below the floor. If each symbol has more honest holders than the forgers
  take from its floor, the forged reports pass. Under bit reports, the estimates must also sum to one. Devices that set
  all bits, no bit, or only their own bit violate this condition.
- The number of set bits in one report (``randomizers.reports``), and the number of reports in a window with an
  improbable one (``excess_p_value``). A careful forger sets as many bits as the mechanism would.

Sources: Cheu, Smith & Ullman, "Manipulation Attacks in Local Differential Privacy" (IEEE S&P 2021), and Cao, Jia &
Gong, "Data Poisoning Attacks to Local Differential Privacy Protocols" (USENIX Security 2021), for the effects of forged
values and forged reports; Susko, "Likelihood ratio tests with boundary constraints using data-dependent degrees of
freedom" (Biometrika 100, 2013) for the degrees of freedom.
"""

from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.estimators.projection import nearest_fit
from uldp.mechanisms.laws.channel import Channel
from uldp.schemas.arrays import Counts

#: ``fit_counts`` requires at least this variance for the count of a symbol that no device holds. Below it, the count is
#: far from normal.
MIN_NOISE_VARIANCE = 10.0
#: A window is flagged if a p-value is below this level. Honest devices cause a false alarm in one window of a million;
#: in up to 30 of a million, if there are just enough reports for ``fit_counts`` to judge.
ALARM_LEVEL = 1e-6


@dataclass(frozen=True)
class Fit:
    """The chi-square distance of the support counts of a window from the distributions that the channel can produce."""

    statistic: float  # the distance from the nearest of these
    degrees: int  # degrees of freedom: the number of active constraints, which separate the fit from the counts
    p_value: float  # upper bound of the probability that honest reports are this far or farther; 1 without constraints


def fit_counts(channel: Channel, counts: Counts, n: int) -> Fit | None:
    """Test whether any distribution of true symbols explains the support counts of a window.

    The test finds the nearest r on the probability simplex, and the distance of the counts from it, by ``nearest_fit``:

    - Symbol reports: Pearson's distance. The counts sum to n, as the n m_z do for every r on the simplex, so only the
      constraint r >= 0 can separate r from the counts.
    - Bit reports: here r must be >= 0 and sum to one, though the r-hat_z do not.
    - Reports of one symbol or none: as bits, of which no two are set; so the test is more conservative.
    - Reports of w > 1 symbols: the r-hat_z sum to one.
    - Reports of blocks of symbols: they sum to one if supports have a constant sum. Otherwise r must, as for bits.

    The degrees of freedom are the number of active constraints: one for each noisy symbol with r_z = 0, and one for the
    sum, unless the r-hat_z sum to one anyway. The p-value is conservative. Given the symbols with r_z = 0 and the
    direction of the residual, the length of the residual has a chi distribution if the truth lies on the same boundary.
    If the truth lies inside, the mean of the residual points back into the simplex, and the length is stochastically
    smaller. Counts are not exactly normal: with the smallest testable number of reports, and one or two symbols, a
    p-value of 1e-3 is in truth up to 2e-3, and one of 1e-6 up to 3e-5.

    The counts, shape (|Z|,), are of n possible reports. There is no fit if some noisy symbol (q > 0) has
    n q (1 - q) < ``MIN_NOISE_VARIANCE``, so that its count is far from normal, or if no symbol is noisy.
    """
    if not MIN_NOISE_VARIANCE <= n * channel.least_noise < np.inf:
        return None
    from scipy import special  # takes a quarter of a second, and whoever counts needs none

    r, statistic = nearest_fit(channel, counts, n)
    sums_freely = channel.independent_bits or channel.may_support_none
    sums_freely |= channel.blocks is not None and not channel.blocks.fixed
    degrees = int(np.count_nonzero((channel.q > 0) & (r == 0))) + sums_freely
    return Fit(float(statistic), degrees, float(special.chdtrc(degrees, statistic)) if degrees else 1.0)


def counts_p_value(channel: Channel, counts: Counts, n: int) -> float | None:
    """Return the p-value of ``fit_counts``, or None without a fit."""
    fit = fit_counts(channel, counts, n)
    return None if fit is None else fit.p_value


def counts_p_values(channel: Channel, counts: Counts, n: Counts) -> list[float | None]:
    """Return ``counts_p_value`` of k windows, shape (k, |Z|) and (k,): of one symbol, about as fast as one."""
    if not channel.one_symbol:
        return [counts_p_value(channel, *window) for window in zip(counts, n.tolist(), strict=True)]
    found: list[float | None] = [None] * len(n)
    noise = n * channel.least_noise
    tested = np.flatnonzero((noise >= MIN_NOISE_VARIANCE) & (noise < np.inf))
    if not len(tested):
        return found
    from scipy import special  # as above

    fits = nearest_fit(channel, counts[tested], n[tested, np.newaxis])
    statistic, degrees = fits.distance, np.count_nonzero((channel.q > 0) & (fits.r == 0), axis=1)
    p_values = np.where(degrees > 0, special.chdtrc(np.maximum(degrees, 1), statistic), 1.0)
    for window, p_value in zip(tested.tolist(), p_values.tolist(), strict=True):
        found[window] = p_value
    return found


def excess_p_value(observed: int, n: int, tail: float) -> float:
    """Bound Pr(``observed`` or more of n honest reports are improbable), each with ``tail``: a binomial tail."""
    if not 0 <= observed <= n:
        raise ValueError(f"observed must be from 0 to n={n}, got {observed}")
    if not 0 < tail < 1:
        raise ValueError(f"tail must be inside (0, 1), got {tail}")
    from scipy import special  # as above

    # Use the incomplete beta function: SciPy's bdtrc computes the same tail, but with half the digits if it is small.
    return float(special.betainc(observed, n - observed + 1, tail)) if observed else 1.0
