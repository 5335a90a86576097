"""The vector of a sum, inside of a box, that is nearest to another, if variances grow with the entries."""

import numpy as np

from uldp.schemas.arrays import Floats

#: The least and the largest share of each symbol.
Box = tuple[Floats | float, Floats | float]
UNIT: Box = (0.0, 1.0)
# The part of the first interval of the root to which it is found, and the part of the sum that is enough.
_RESOLUTION, _ENOUGH = 2.0**-50, 2.0**-46


def box_of(low: Floats, high: Floats, total: float = 1.0) -> Box:
    """Return ends of intervals, cut to [0, 1]; in rows in which no shares between them have this sum, 0 and 1."""
    low, high = low.clip(0.0, 1.0), high.clip(0.0, 1.0)
    least, most = low.sum(axis=-1, keepdims=True), high.sum(axis=-1, keepdims=True)
    possible = (least < total) & (total < most)
    return np.where(possible, low, 0.0), np.where(possible, high, 1.0)


def onto_simplex(
    x: Floats,
    a: Floats | float = 1.0,
    c: Floats | float = 0.0,
    low: Floats | float = 0.0,
    high: Floats | float = 1.0,
    total: float = 1.0,
) -> Floats:
    """Return r_z = (x_z - l a_z) / (1 + l c_z), cut to low_z and high_z, with the l at which they sum to ``total``.

    Of all vectors in the box with this sum, r is nearest to x if the entry z has the variance a_z + c_z r_z up to a
    common factor: these are the conditions of Karush, Kuhn and Tucker. Each r_z falls with l. Newton's steps find l; in
    place of a step that leaves its bounds, or that is not half as long as the one before, these are halved.

    All arguments but ``total`` may have rows, each of which is projected as it would be alone, to the last bit.

    Args:
        x: Shape (k,).
        a: Shape (k,): not negative.
        c: Shape (k,): not negative where a is 0, and a + c > 0.
        low: Shape (k,): not negative, with a sum of ``total`` or less.
        high: Shape (k,): ``low`` or more, with a sum of ``total`` or more.
        total: The sum of the shares: 1 on the probability simplex; l where devices hold l symbols.
    """
    low = np.zeros_like(x) + low
    width = np.minimum(high, total) - low
    part = (total - low.sum(axis=-1, keepdims=True)) / width.sum(axis=-1, keepdims=True)
    # A point of the box with the right sum: at the least rate no entry is below it, and at the largest none above.
    between = low + width * np.maximum(part, _RESOLUTION)
    rates = np.divide(x - between, a + c * between, out=np.zeros_like(x), where=width > 0)
    least, most = rates.min(axis=-1, keepdims=True), rates.max(axis=-1, keepdims=True)
    # An end that no entry passes would hide how fast the entries fall.
    high, curved = np.where(high < total, high, np.inf), np.any(c)

    def solution(rate: Floats) -> tuple[Floats, Floats | float]:
        above, scale = x - rate * a, 1 + rate * c if curved else 1.0
        if curved:
            # Beyond the pole of an entry, where 1 + l c = 0, it is infinite.
            above = np.divide(above, scale, out=np.where(above > 0, np.inf, 0.0), where=scale > 0)
        return np.minimum(np.maximum(above, low), high), scale

    rate, step = np.minimum(np.maximum(least, 0.0), most), most - least
    enough, active = _RESOLUTION * step, step > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        while active.any():
            nearest, scale = solution(rate)
            excess = nearest.sum(axis=-1, keepdims=True) - total
            above = excess > 0
            least, most = np.where(above, rate, least), np.where(above, most, rate)
            # Entries at an end of the box stay there; the others fall by (a + c r) / (1 + l c).
            falls = (a + c * nearest) / scale if curved else a
            move = excess / (falls * ((nearest > low) & (nearest < high))).sum(axis=-1, keepdims=True)
            following = rate + move
            good = (np.abs(move) <= step / 2) & (least <= following) & (following <= most)
            active = active & (np.abs(excess) > _ENOUGH * total)
            following = np.where(active, np.where(good, following, (least + most) / 2), rate)
            step, rate = np.abs(following - rate), following
            active &= step > enough
    nearest, _ = solution(rate)
    # What is left is far below the precision of any estimate.
    inside = (nearest > low) & (nearest < high)
    rest = (total - nearest.sum(axis=-1, keepdims=True)) / np.maximum(inside.sum(axis=-1, keepdims=True), 1)
    return np.asarray(np.minimum(np.maximum(nearest + rest * inside, low), high))
