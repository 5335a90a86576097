"""The vector on the probability simplex that is nearest to another, if variances grow with the entries."""

import numpy as np

from uldp.schemas.arrays import Floats

# The part of the first interval of the root to which it is found.
_RESOLUTION = 2.0**-50


def onto_simplex(x: Floats, a: Floats, c: Floats) -> Floats:
    """Return r_z = max(0, x_z - l a_z) / (1 + l c_z) with the number l at which the r_z sum to one.

    This r is on the simplex and nearest to x, if the entry z has the variance a_z + c_z r_z up to a common factor. If c
    is 0, r is positive at the j entries with the largest x/a, and l = (their sum of x - 1) / (their sum of a): the
    largest of these quotients is that of the right j. Otherwise Newton's steps find l. In place of a step that leaves
    its bounds, or that is not half as long as the one before, these are halved.

    Args:
        x: Shape (k,). If c is 0, the arguments may have several rows of such vectors.
        a: Shape (k,): not negative.
        c: Shape (k,): not negative where a is 0, and a + c > 0.

    Returns:
        Shape (k,), on the probability simplex.
    """
    if not c.any():
        falling = np.argsort(-x / a)
        sums, variances = (np.cumsum(np.take_along_axis(each, falling, axis=-1), axis=-1) for each in (x, a))
        rate = ((sums - 1) / variances).max(axis=-1, keepdims=True)
        nearest: Floats = np.maximum(x - rate * a, 0)
        nearest /= nearest.sum(axis=-1, keepdims=True)
        return nearest
    # The bounds of l: at low every entry is 1/k or more, and at high 1/k or less.
    share = 1 / len(x)
    shares_at = (x - share) / (a + c * share)
    low, high = shares_at.min(), shares_at.max()

    def solution(rate: float) -> tuple[Floats, Floats]:
        above: Floats = np.maximum(x - rate * a, 0)
        scale = 1 + rate * c
        if scale.min() > 0:
            return above / scale, scale
        # Beyond the pole of an entry, where 1 + l c = 0, it is infinite.
        return np.divide(above, scale, out=np.where(above > 0, np.inf, 0.0), where=scale > 0), scale

    rate, step = min(max(0.0, low), high), high - low
    enough = _RESOLUTION * step
    with np.errstate(divide="ignore", invalid="ignore"):
        while step > enough:
            nearest, scale = solution(rate)
            excess = nearest.sum() - 1
            low, high = (rate, high) if excess > 0 else (low, rate)
            # Entries that are 0 stay so; the others fall by (a + c r) / (1 + l c).
            fall = ((a + c * nearest) / scale) @ (nearest > 0)
            following = rate + excess / fall
            if not (low <= following <= high and abs(following - rate) <= step / 2):
                following = (low + high) / 2
            step, rate = abs(following - rate), following
    nearest, _ = solution(rate)
    nearest /= nearest.sum()
    return nearest


def onto_capped(x: Floats, a: Floats, total: float) -> Floats:
    """Return r_z = x_z - l a_z, cut to [0, 1], with the number l at which the r_z sum to ``total``, by bisection.

    This r is nearest to x of all vectors in [0, 1]^k with this sum, if the entry z has the variance a_z up to a common
    factor. It is the shares of symbols of which each device holds ``total`` different ones.

    Args:
        x: Shape (k,).
        a: Shape (k,): positive.
        total: From 0 to k.
    """
    low, high = float(((x - 1) / a).min()), float((x / a).max())
    for _ in range(200):
        rate = (low + high) / 2
        nearest: Floats = np.clip(x - rate * a, 0.0, 1.0)
        low, high = (rate, high) if nearest.sum() > total else (low, rate)
        if high - low <= _RESOLUTION * max(abs(low), abs(high)):
            break
    inside = (nearest > 0) & (nearest < 1)
    # What bisection leaves is far below the precision of any estimate.
    nearest[inside] += (total - nearest.sum()) / max(int(inside.sum()), 1)
    return nearest.clip(0.0, 1.0)
