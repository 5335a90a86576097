"""Numbers of neighbouring windows together: what each window says of the others, for as far as the numbers stay.

A window's own estimate is not replaced: a smoothed number is one more, which takes the numbers to change by a random
walk, or to jump. How far they change is not known. So ``LocalLevel`` runs with several variances of a step, from none
to ten times the error of a window. Its results are averaged by how probable each makes the observations of the number,
and of the others: those that all numbers make probable are so for each.

What is no random walk, such as a daily cycle, is smoothed with more error than the model says. What an observation is
off from what all others say of it, beyond its own error, shows how much more; this is added to the variances.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.laws.interval import normal_quantile
from uldp.mechanisms.questions.local_level import LocalLevel
from uldp.schemas.arrays import Floats, Mask
from uldp.schemas.errors import RequestError

#: The variances of a step over that of a window's error.
_STEPS = (0.0, *np.geomspace(1e-4, 10.0, 16).tolist())
#: The part of the weights of the steps that no number decides.
_OPEN = 0.1
#: Rounds in which all numbers decide the weights.
_ROUNDS = 10
#: The least part of a variance that windows do not share, and the least variance of the mean of an excess.
_LEAST = 1e-3
#: A number that few reports are about has at least the error that so many would give it.
_RARE = 4
#: No variance is 0.
_TINY = 1e-30


@dataclass(frozen=True, eq=False)
class OverTime:
    """Numbers over time, each array of shape (T, m)."""

    filtered: Floats  # the number at each time by the windows up to it
    filtered_stderr: Floats  # its standard error
    smoothed: Floats  # the number at each time by all windows
    smoothed_stderr: Floats  # its standard error
    jumps: Mask  # where the number has probably jumped since the window before

    def interval(self, coverage: float, *, causal: bool) -> tuple[Floats, Floats]:
        """Return the normal intervals of the filtered numbers, or of the smoothed ones."""
        values, stderr = (self.filtered, self.filtered_stderr) if causal else (self.smoothed, self.smoothed_stderr)
        half = normal_quantile((1 + coverage) / 2) * stderr
        return values - half, values + half


def over_time(estimates: Sequence[Estimate], shared: Sequence[Floats], starts: Sequence[int]) -> OverTime:
    """Smooth unbiased estimates of the same numbers from windows that have no report in common.

    If devices keep responses, the errors that all windows share are not taken to average out: the level is that of the
    shares with the noise of the responses, whose error is added at the end. RequestError if there are fewer than 3
    windows.
    """
    if len(estimates) < 3:
        raise RequestError("smoothing needs 3 windows or more with counts; leave out --over, or choose shorter periods")
    gaps = np.diff(np.asarray(starts, dtype=np.float64))
    return smooth(
        np.array([each.values for each in estimates]),
        np.array([each.variance for each in estimates]),
        np.array([each.n for each in estimates], dtype=np.float64),
        np.array(shared),
        np.concatenate([[1.0], gaps / gaps.min()]),
    )


def smooth(observed: Floats, variance: Floats, n: Floats, shared: Floats, elapsed: Floats) -> OverTime:
    """Smooth independent estimates of m numbers at T times.

    The error of a window is that of one report, in the mean over windows, over the number of its reports: by its own, a
    count that is low by chance would weigh more. The filter takes the mean over windows up to each. ``shared`` is the
    part of the variance that is the same error in all windows, with its sign.
    """
    own = np.maximum(variance - shared, _LEAST * variance)
    error = _mean_error(own, n, causal=True)
    causal = _models(observed, error, elapsed)
    filtered, filtered_variance, jumped = _averaged(causal, _causal_weights(causal), smoothed=False)
    # The step to the next window is a part of what this measures, so it is at least the excess.
    excess = _excess(observed[1:], filtered[:-1], filtered_variance[:-1], error[1:], ~jumped[1:], causal=True)
    filtered_variance[1:] += np.minimum(excess, error[1:])
    error = _mean_error(own, n, causal=False)
    whole = _models(observed, error, elapsed)
    smoothed, smoothed_variance, jumps = _averaged(whole, _weights(whole), smoothed=True)
    # What the other windows say of one: its own part is taken out of the smoothed number.
    own_part = np.minimum(smoothed_variance / error, 0.9)
    others, others_variance = (smoothed - own_part * observed) / (1 - own_part), smoothed_variance / (1 - own_part)
    excess = _excess(observed, others, others_variance, error, np.ones_like(jumps), causal=False)
    smoothed_variance += (1 - own_part) ** 2 * excess
    common = _mean_error(shared, n, causal=False) if shared.any() else 0.0
    return OverTime(filtered, np.sqrt(filtered_variance + common), smoothed, np.sqrt(smoothed_variance + common), jumps)


def _mean_error(variance: Floats, n: Floats, *, causal: bool) -> Floats:
    """Return the variance of each window by the mean variance of a report, over all windows or those up to it."""
    reports, totals = n.cumsum(axis=0), (variance * n**2).cumsum(axis=0)
    each = totals / reports if causal else np.broadcast_to(totals[-1] / reports[-1], n.shape)
    rare = _RARE * each.max(axis=1, keepdims=True) / reports
    return np.asarray(np.maximum(np.maximum(each, rare if causal else rare[-1:]), _TINY) / n)


def _excess(
    observed: Floats, forecast: Floats, variance: Floats, error: Floats, counts: Mask, *, causal: bool
) -> Floats:
    """Return how much larger the mean square error of forecasts is than their variances; (T, m), 0 or more.

    (y - forecast)^2 - Var e - variance has this mean, if the forecast does not know y. Its mean over time, in units of
    Var e, has a large error for one number, so it is drawn towards the mean of all numbers (empirical Bayes).
    """
    found = np.where(counts, ((observed - forecast) ** 2 - variance) / error - 1, 0.0)
    noise = np.where(counts, 2 * (1 + variance / error) ** 2, 0.0)
    number = np.maximum(counts.cumsum(axis=0), 1)
    means, squares = found.cumsum(axis=0) / number, noise.cumsum(axis=0) / number**2
    if not causal:
        means, squares = means[-1:], squares[-1:]
    squares = np.maximum(squares, _LEAST)
    middle = means.mean(axis=1, keepdims=True)
    between = np.maximum(((means - middle) ** 2 - squares).mean(axis=1, keepdims=True), 0.0)
    drawn = (means * between + middle * squares) / (between + squares)
    drawn += np.sqrt(between * squares / (between + squares))  # a bias is not the same at all times
    return np.asarray(np.maximum(drawn, 0.0) * error)


def _models(observed: Floats, variance: Floats, elapsed: Floats) -> list[LocalLevel]:
    scale = np.median(variance, axis=0)
    return [LocalLevel(observed, variance, step * scale, elapsed) for step in _STEPS]


def _weights(models: Sequence[LocalLevel]) -> Floats:
    """Return the weight of each model for each number at all times, shape (models, 1, m)."""
    total = np.array([model.likelihoods.sum(axis=0) for model in models])
    prior = np.full((len(models), 1), 1 / len(models))
    for _ in range(_ROUNDS):
        weights = _softmax(total + np.log(prior))
        prior = _OPEN / len(models) + (1 - _OPEN) * weights.mean(axis=1, keepdims=True)
    return _softmax(total + np.log(prior))[:, np.newaxis]


def _causal_weights(models: Sequence[LocalLevel]) -> Floats:
    """Return the weight of each model for each number at each time, by what was observed up to it; (models, T, m)."""
    total = np.array([model.likelihoods.cumsum(axis=0) for model in models])
    alone = _softmax(total).mean(axis=2, keepdims=True)
    return _softmax(total + np.log(_OPEN / len(models) + (1 - _OPEN) * alone))


def _softmax(logs: Floats) -> Floats:
    weights: Floats = np.exp(logs - logs.max(axis=0))
    weights /= weights.sum(axis=0)
    return weights


def _averaged(models: Sequence[LocalLevel], weights: Floats, *, smoothed: bool) -> tuple[Floats, Floats, Mask]:
    """Return means, variances with those between models, and where most of the weight sees a jump."""
    shape = models[0].observed.shape
    mean, square, jumped = (np.zeros(shape) for _ in range(3))
    for model, weight in zip(models, weights, strict=True):
        means, variances = model.smoothed if smoothed else model.filtered
        mean += weight * means
        square += weight * (variances + means**2)
        jumped += weight * model.jumps
    return mean, np.maximum(square - mean**2, 0.0), jumped > 0.5
