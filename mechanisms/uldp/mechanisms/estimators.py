"""Estimators: from the support counts of a window to the distribution r of what devices hold, over Z.

Each is a function of (channel, counts, n). ``estimate_intermediate`` chooses one by the name that a spec gives it.
"""

from collections.abc import Callable, Mapping

import numpy as np

from uldp.mechanisms import likelihood
from uldp.mechanisms.channel import Channel, normal_quantile
from uldp.mechanisms.mechanism import Mechanism
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.collection import EstimatorName

#: Family-wise level of the significance threshold (Murakami & Kawamoto, section 6).
THRESHOLD_ALPHA = 0.05


def empirical(channel: Channel, counts: Counts, n: int) -> Floats:
    """Estimate r without bias; entries may be negative, and under bit reports do not sum to one.

    Source: Murakami & Kawamoto, section 2.5; equation (1) of Wang et al. (USENIX Security 2017).

    Args:
        channel: p and q of the mechanism.
        counts: Shape (|Z|,): support counts.
        n: Reports behind the counts.

    Returns:
        Shape (|Z|,).

    Raises:
        ValueError: if ``n`` is not positive, or ``counts`` does not fit the channel.
    """
    return channel.unbiased(counts, n)


def threshold(channel: Channel, counts: Counts, n: int) -> Floats:
    """Keep the empirical estimates that are significant; share the remaining probability equally among the others.

    An estimate is cut below T_z = Phi^-1(1 - alpha/|Z|) sd_z, where sd_z is its standard deviation if r_z = 0: a
    one-sided test of each symbol, with Bonferroni's correction, so that with probability 1 - alpha no symbol that
    nobody holds is kept. A symbol with q = 0 has no noise to be told from (one report proves it), so its threshold is
    0 and it is never cut.

    At the end the whole is scaled to sum to one. Where the kept estimates alone exceed one, nothing remains: the cut
    ones are 0 and the scaling shrinks the kept ones.

    Source: "emp+thr" of Murakami & Kawamoto, section 6.

    Returns:
        Shape (|Z|,), on the probability simplex.

    Raises:
        ValueError: as ``empirical``.
    """
    estimate = channel.unbiased(counts, n)
    deviation = np.sqrt(channel.variance(np.zeros(channel.size), n))
    cut = estimate < normal_quantile(1 - THRESHOLD_ALPHA / channel.size) * deviation
    kept = np.where(cut, 0.0, estimate)
    shared: Floats = np.where(cut, max(1 - kept.sum(), 0.0) / max(cut.sum(), 1), kept)
    shared /= shared.sum()
    return shared


def norm_sub(channel: Channel, counts: Counts, n: int) -> Floats:
    """Take the distribution nearest to the empirical estimate, in Euclidean distance.

    It subtracts one constant from every entry and raises what falls below zero to zero. Where all symbols are equally
    noisy (RAPPOR, SUE, OUE) this comes near to expectation-maximization over the reports themselves, and needs no more
    than the counts. Under uRAP at small epsilon it does not: the precise estimates on Z_N are shifted as far as the
    noisy ones on Z_S.

    Returns:
        Shape (|Z|,), on the probability simplex.

    Raises:
        ValueError: as ``empirical``.
    """
    return project_to_simplex(channel.unbiased(counts, n))


def project_to_simplex(vector: Floats) -> Floats:
    """Return the point of the probability simplex that is nearest to ``vector``, in O(k log k).

    The solution is max(vector - tau, 0), where tau makes it sum to one. If the j largest entries are the positive
    ones, tau = (their sum - 1)/j, which is largest for the right j.
    """
    descending = np.sort(vector)[::-1]
    tau = ((np.cumsum(descending) - 1) / np.arange(1, len(vector) + 1)).max()
    projection: Floats = np.maximum(vector - tau, 0.0)
    return projection


_ESTIMATORS: Mapping[EstimatorName, Callable[[Channel, Counts, int], Floats]] = {
    "empirical": empirical,
    "threshold": threshold,
    "norm-sub": norm_sub,
    "mle": likelihood.exact_mle,
    "em": lambda channel, counts, n: likelihood.em(channel, counts, n).distribution,
}


def estimate_intermediate(estimator: EstimatorName, mechanism: Mechanism, counts: Counts, n: int) -> Floats:
    """Estimate r over Z with the estimator of this name.

    Without tags Z = X and this is the estimate of the distribution of values; with tags ``Pum.distribution`` follows.

    Args:
        estimator: A name that a spec may give.
        mechanism: The mechanism behind the reports.
        counts: Shape (|Z|,): support counts.
        n: Reports behind the counts.

    Returns:
        Shape (|Z|,). All but ``empirical`` lie on the probability simplex.

    Raises:
        ValueError: if there is no such estimator for the mechanism, ``n`` is not positive, or ``counts`` does not fit.
    """
    if estimator not in _ESTIMATORS:
        raise ValueError(f"no estimator {estimator!r}; choose one of {', '.join(_ESTIMATORS)}")
    return _ESTIMATORS[estimator](mechanism.channel, counts, n)
