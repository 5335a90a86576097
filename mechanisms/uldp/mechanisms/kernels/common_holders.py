"""What a device that may hold two items adds to the errors of sums and differences of their shares, at the most."""

import numpy as np

from uldp.schemas.arrays import Floats


def of_other_sign(r: Floats, w: Floats) -> Floats:
    """Return sum_j min(r_i, r_j) w_j over the j whose weight has another sign than that of i; shape of w, (k, sums).

    No more users hold both i and j than hold the rarer one. ``r``, shape (k,), are the shares of holders of each item.
    """
    order = np.argsort(r, kind="stable")
    ascending, place = r[order][:, np.newaxis], np.argsort(order)

    def of_minimum(weights: Floats) -> Floats:
        sorted_weights = weights[order]
        smaller = np.cumsum(ascending * sorted_weights, axis=0)
        larger = sorted_weights.sum(axis=0) - np.cumsum(sorted_weights, axis=0)
        return np.asarray((smaller + ascending * larger)[place], dtype=np.float64)

    if not ((w > 0).any(axis=0) & (w < 0).any(axis=0)).any():
        return np.zeros_like(w)
    return np.where(w > 0, of_minimum(np.minimum(w, 0.0)), np.where(w < 0, of_minimum(np.maximum(w, 0.0)), 0.0))
