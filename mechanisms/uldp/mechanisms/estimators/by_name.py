"""Estimators compute the distribution r of the devices' true symbols over Z from the support counts of a window.

Each estimator is a function of (channel, counts, n). ``estimate_intermediate`` selects it by its name in a spec.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.estimators import likelihood
from uldp.mechanisms.estimators.choice import Candidate, Scoring, chosen, part_of_cells, part_of_each
from uldp.mechanisms.estimators.empirical_bayes import empirical_bayes, has_prior
from uldp.mechanisms.estimators.projection import wls
from uldp.mechanisms.estimators.simplex import Box, box_of, onto_simplex
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.laws.channel_laws import law_of
from uldp.mechanisms.laws.estimate import Estimate, part_of
from uldp.mechanisms.laws.interval import normal_quantile
from uldp.schemas.arrays import Counts, Floats, Reports
from uldp.schemas.errors import RequestError
from uldp.schemas.table import INTERVAL_LEVEL

#: Family-wise level of the significance threshold (Murakami & Kawamoto, section 6).
THRESHOLD_ALPHA = 0.05


#: The unbiased estimate of r; entries may be negative, and for bit reports they need not sum to one. Source: Murakami &
#: Kawamoto, section 2.5; equation (1) of Wang et al. (USENIX Security 2017).
empirical = Channel.unbiased


def threshold(channel: Channel, counts: Counts, n: int) -> Floats:
    """Keep the significant empirical estimates, and share the remaining probability equally among the other symbols.

    It cuts an estimate below T_z = Phi^-1(1 - alpha/|Z|) sd_z, with the standard deviation at r_z = 0: a one-sided test
    of each symbol with Bonferroni's correction, so with probability 1 - alpha it keeps no symbol that no device holds.
    A symbol with q = 0 has no noise, and is never cut.

    The result is scaled to sum to one, or to l where devices hold l symbols, of which none exceeds 1. If the kept
    estimates sum to more, those that are cut become 0.

    Source: "emp+thr" of Murakami & Kawamoto, section 6.
    """
    estimate = channel.unbiased(counts, n)
    deviation = np.sqrt(channel.variance(np.zeros(channel.size), n))
    cut = estimate < normal_quantile(1 - THRESHOLD_ALPHA / channel.size) * deviation
    if channel.held > 1:
        kept = np.where(cut, 0.0, np.minimum(estimate, 1.0))
        left = max(channel.held - kept.sum(), 0.0)
        return onto_simplex(np.where(cut, left / max(cut.sum(), 1), kept), total=channel.held)
    kept = np.where(cut, 0.0, estimate)
    shared: Floats = np.where(cut, max(1 - kept.sum(), 0.0) / max(cut.sum(), 1), kept)
    shared /= shared.sum()
    return shared


def norm_sub(channel: Channel, counts: Counts, n: Reports) -> Floats:
    """Return the distribution nearest to the empirical estimate, in Euclidean distance.

    The estimator subtracts one constant from every entry and raises negative entries to zero. If all symbols are
    equally noisy (RAPPOR, SUE, OUE), the result is close to the result of expectation-maximization over the reports
    themselves, but needs only the counts. Under uRAP and uOUE it is wrong, because the estimator shifts the precise
    estimates on Z_N as far as the noisy estimates on Z_S; ``wls`` does not.
    """
    return onto_simplex(channel.unbiased(counts, n), total=channel.held)


def auto(channel: Channel, counts: Counts, n: Reports, bots: int = 0) -> Floats:
    """Estimate r by empirical Bayes, or by ``wls`` where its risk on held-out reports is less, or without a prior."""
    if not has_prior(channel, bots):
        return wls(channel, counts, n)
    assert isinstance(n, int), "rows of windows with a prior"
    candidates: tuple[Candidate, ...] = (
        lambda counts, n, box: empirical_bayes(channel, counts, n, bots, box),
        lambda counts, n, box: wls(channel, counts, n, box),
    )
    return chosen(candidates, counts, n, scoring_of(channel, counts, n))


def scoring_of(channel: Channel, counts: Counts, n: int) -> Scoring:
    """Return what the choice asks of a channel, with the covariance at the unbiased estimate of these counts."""
    law, r_hat = law_of(channel), channel.unbiased(counts, n).clip(0.0, 1.0)

    def box(counts: Counts, n: int) -> Box:
        values = channel.unbiased(counts, n)
        linear = Estimate(values, np.full(values.shape, n), (part_of(law, values.clip(0.0, 1.0), n),))
        return box_of(*linear.interval(1 - (1 - INTERVAL_LEVEL) / channel.size), channel.held)

    return Scoring(partial(drawn_part, channel), channel.unbiased, channel.covariance(r_hat), box)


def drawn_part(channel: Channel, counts: Counts, n: int, m: int, rng: Generator) -> Counts:
    """Draw the support counts of m of n reports of a channel, without the reports; see ``part_of_each``."""
    if channel.one_symbol:
        return part_of_cells(counts, n, m, rng)
    free = channel.q == 0
    if channel.independent_bits or not free.any():
        return part_of_each(counts, n, m, rng)
    # A report names a symbol that is not sensitive, or supports a set of those that are.
    drawn = part_of_cells(np.append(counts[free], n - counts[free].sum()), n, m, rng)
    of_part = np.empty_like(counts)
    of_part[free] = drawn[:-1]
    of_part[~free] = part_of_each(counts[~free], n - int(counts[free].sum()), int(drawn[-1]), rng)
    return of_part


_ESTIMATORS: Mapping[str, Callable[..., Floats]] = {
    "auto": auto,
    "empirical": empirical,
    "threshold": threshold,
    "norm-sub": norm_sub,
    "wls": wls,
    "mle": likelihood.exact_mle,
    "em": likelihood.em,
}
#: Those that take rows of several windows.
_BY_ROWS = ("auto", "empirical", "norm-sub", "wls")


def estimate_intermediate(estimator: str, channel: Channel, counts: Counts, n: Reports, bots: int = 0) -> Floats:
    """Estimate r over Z with the estimator of this name.

    Without tags, Z = X and the result estimates the distribution of values. With tags, ``Pum.distribution`` turns the
    result into this estimate. ValueError if no estimator of this name fits the channel, ``n`` is not positive, or
    ``counts`` does not fit.

    Args:
        counts: Shape (|Z|,): support counts.
        bots: The number of bots, which are the last symbols of Z; only ``auto`` asks.

    Returns:
        Shape (|Z|,). The results of all estimators except ``empirical`` lie on the probability simplex; where devices
        hold l symbols, they are in [0, 1] and sum to l.
    """
    if estimator not in _ESTIMATORS:
        raise RequestError(f"no estimator {estimator!r}; choose one of {', '.join(_ESTIMATORS)}")
    return _ESTIMATORS[estimator](channel, counts, n, *([bots] if estimator == "auto" else []))


def estimate_each(estimator: str, channel: Channel, counts: Counts, n: Counts) -> Floats:
    """Estimate r in each of k windows without tags. With few values, k windows take little longer than one.

    Counts have shape (k, |Z|), and n has shape (k,). The result, shape (k, |Z|), has the same numbers, to the last bit,
    as those of each window alone.
    """
    by_rows = channel.held == 1 and bool((channel.q > 0).all()) and not (estimator == "auto" and has_prior(channel, 0))
    if by_rows and estimator in _BY_ROWS:
        return estimate_intermediate(estimator, channel, counts, n[:, np.newaxis])
    windows = zip(counts, n.tolist(), strict=True)
    return np.array([estimate_intermediate(estimator, channel, *window) for window in windows])
