"""The prior of the shares of a class, learnt from the counts of the class itself; see ``empirical_bayes``."""

import numpy as np

from uldp.schemas.arrays import Counts, Floats

# EM starts from a mixture of Gamma distributions of these shapes, from few large shares to shares that are all equal.
_SHAPES = np.array([0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 10_000])
# A point without probability would never get any.
_LEAST_PROBABILITY = 1e-12
_LEAST_EVIDENCE = 1e-300
# EM takes at least the first number of steps, and then goes on while a step makes the counts of the class more probable
# by the factor exp(``_GAIN``), up to the last number. More steps fit the prior closer to noise, which they take for
# differences. A class of a few hundred symbols seldom has the evidence for more than the first; one of thousands has.
_LEAST_STEPS, _GAIN, _MOST_STEPS = 20, 0.03, 500


def usual_shares(mean: float) -> Floats:
    """Return shares that a grid needs beside those that the noise tells apart: multiples of the mean, up to 1.

    Where a standard deviation of the noise is many times the mean share, a grid by the noise has no point near the
    mean. The posterior means would not sum to one, and the projection would give what is missing to few symbols.
    """
    shares: Floats = mean * np.array([2.0**power for power in range(-2, 11)])
    return shares[shares <= 1]


def fitted_prior(shares: Floats, mean: float, likelihood: Floats, repeats: Counts) -> Floats:
    """Climb by EM from a start of Gamma distributions towards the prior that makes the counts of a class most probable.

    Return the probabilities of each point, shape (rows, points), that each sample teaches.

    Args:
        shares: Shape (points,): the points, ascending.
        mean: The mean share, which is that of the Gamma distributions.
        likelihood: Shape (counts, points): the probability of each different count at each point, up to a factor.
        repeats: Shape (rows, counts): in each sample, how many symbols have each count.
    """
    prior, transposed = _start(shares / mean, likelihood, repeats), np.ascontiguousarray(likelihood.T)
    of_symbols = repeats / repeats.sum(axis=1, keepdims=True)
    for _ in range(_LEAST_STEPS - 1):
        prior *= (of_symbols / _evidence(prior, transposed)) @ likelihood
    before, going = np.full(len(repeats), -np.inf), np.arange(len(repeats))
    for _ in range(_LEAST_STEPS - 1, _MOST_STEPS):
        evidence = _evidence(prior[going], transposed)
        now = (repeats[going] * np.log(evidence)).sum(axis=1)
        gained = now - before[going] >= _GAIN
        before[going] = now
        going, evidence = going[gained], evidence[gained]
        if not len(going):
            break
        prior[going] *= (of_symbols[going] / evidence) @ likelihood
    return prior


def posterior_moments(shares: Floats, prior: Floats, likelihood: Floats) -> tuple[Floats, Floats]:
    """Return posterior means and variances of the shares behind the counts, both of shape (rows, counts)."""
    evidence = _evidence(prior, likelihood.T)
    mean = (prior * shares) @ likelihood.T / evidence
    return mean, np.maximum((prior * shares**2) @ likelihood.T / evidence - mean**2, 0)


def _evidence(prior: Floats, transposed: Floats) -> Floats:
    """Return how probable each count is under each prior, shape (rows, counts), above 0 for those that no row has."""
    evidence: Floats = prior @ transposed
    return np.maximum(evidence, _LEAST_EVIDENCE, out=evidence)


def _start(relative: Floats, likelihood: Floats, repeats: Counts) -> Floats:
    """Return the means of Gamma distributions with the mean 1, weighted by the evidence of the counts of each row."""
    from scipy import special  # takes a quarter of a second, and devices need none

    ends = np.concatenate([[0], (relative[1:] + relative[:-1]) / 2, [np.inf]])
    shapes = _SHAPES[:, np.newaxis]
    priors = np.maximum(np.diff(special.gammainc(shapes, shapes * ends), axis=1), _LEAST_PROBABILITY)
    priors /= priors.sum(axis=1, keepdims=True)
    evidence = repeats @ np.log(_evidence(priors, likelihood.T)).T
    weights = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    return np.asarray(weights @ priors / weights.sum(axis=1, keepdims=True))
