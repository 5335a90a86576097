"""Exact inference about one binomial proportion: confidence intervals and tails, at every number of trials.

Source: Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial"
(Biometrika 26, 1934).
"""

import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Counts, Floats

# SciPy before 1.15 may answer NaN for more successes and failures than this. The ends then differ from normal ones by
# less than 1e-4 of their distance.
_MANY = 10**10


def clopper_pearson(successes: npt.ArrayLike, n: npt.ArrayLike, coverage: float) -> tuple[Floats, Floats]:
    """Return intervals that cover each proportion alone with probability ``coverage`` or more, inside [0, 1].

    Each end leaves a tail of at most ``(1 - coverage) / 2``. Successes, and the positive numbers of trials, have the
    shape (m,), or ``n`` is one number for all.
    """
    # Imported here because SciPy takes a quarter of a second to import, and devices import the mechanisms too.
    from scipy import special

    counts, trials = _checked(successes, n)
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be inside (0, 1), got {coverage}")
    tail, failures = (1 - coverage) / 2, trials - counts
    # SciPy answers NaN where a parameter is 0; there, the end is that of [0, 1].
    low = special.betaincinv(counts, failures + 1, tail)
    high = special.betainccinv(counts + 1, failures, tail)
    many = np.minimum(counts, failures) > _MANY
    if many.any():
        fraction = counts / trials
        half = -special.ndtri(tail) * np.sqrt(fraction * (1 - fraction) / trials)
        low, high = np.where(many, fraction - half, low), np.where(many, fraction + half, high)
    return np.where(counts == 0, 0.0, low), np.where(failures == 0, 1.0, high)


def lower_tail(successes: int, n: int, probability: float) -> float:
    """Return the probability of ``successes`` or fewer in ``n`` trials, with all digits even if it is small."""
    from scipy import special

    _checked(successes, n)
    if not 0 <= probability <= 1:
        raise ValueError(f"probability must be in [0, 1], got {probability}")
    return float(special.betaincc(successes + 1, n - successes, probability)) if successes < n else 1.0


def outside_p_value(counts: Counts, n: npt.ArrayLike, least: npt.ArrayLike, most: npt.ArrayLike) -> float:
    """Bound the probability that some of m binomial counts are so far below or above what is expected, by Bonferroni.

    Their numbers of trials, and their least and largest probabilities, are of shape (m,), or one number for all.
    """
    from scipy import special

    trials = np.broadcast_to(np.asarray(n), counts.shape)
    few = np.where(counts < trials, special.betaincc(counts + 1, np.maximum(trials - counts, 1), least), 1.0)
    many = np.where(counts > 0, special.betainc(np.maximum(counts, 1), trials - counts + 1, most), 1.0)
    return min(1.0, 2 * len(counts) * float(min(few.min(), many.min())))


def _checked(successes: npt.ArrayLike, n: npt.ArrayLike) -> tuple[Counts, Counts]:
    counts, trials = np.asarray(successes, dtype=np.int64), np.asarray(n, dtype=np.int64)
    if (trials <= 0).any():
        raise ValueError("a proportion needs one trial or more")
    if ((counts < 0) | (counts > trials)).any():
        raise ValueError("successes must be from 0 to n")
    return counts, trials
