"""Intervals of what PUM estimates of each value: what was measured of it, what is assumed, and what cannot be excluded.

Sources: Clopper & Pearson (Biometrika 26, 1934) for the parts, each a binomial proportion; Newcombe (Statistics in
Medicine 17, 1998) and Zou & Donner (Statistics in Medicine 27, 2008) for their sums: the squares of the distances from
the estimate to the ends add up (MOVER). Murakami & Kawamoto (USENIX Security 2019), equation (22), for the sum.
"""

from typing import NamedTuple

import numpy as np

from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.laws.interval import Ends, normal_quantile
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Floats


class PumIntervals(NamedTuple):
    """Intervals of each value alone, around the unbiased estimate. They are not cut to [0, 1]."""

    #: Of r(x), the share of users who hold x and do not hide it. They assume that users are drawn i.i.d. and that
    #: devices obfuscate as the spec says, and cover with this probability or more.
    visible: Ends
    #: Of p(x), the share of users who hold x. They also assume of a background of strength m that m draws from the
    #: users behind the tag gave it. Behind a tag whose background has no strength, any part of the users may hold x: if
    #: no tag has one, these are the intervals of the band.
    share: Ends
    band: Ends  # of p(x), whatever the backgrounds: from the lower end of r(x) to the upper end of r(x) and all tags


def pum_intervals(pum: Pum, linear: Estimate, coverage: float = 0.95) -> PumIntervals:
    """Return intervals of each value alone; ValueError if ``linear`` does not fit Z."""
    low, high = linear.interval(coverage)
    if not pum.tags:
        return PumIntervals((low, high), (low, high), (low, high))
    r_hat, z2, size = linear.values, normal_quantile(0.5 + coverage / 2) ** 2, pum.size
    covariances = linear.times(np.eye(len(r_hat), len(pum.tags), -size))
    among = covariances[size:] - np.diag(np.diag(covariances[size:]))

    def of_sum(end: Floats, weights: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Return r-hat(x) + sum_k weights_k(x) r-hat(bot_k), and how far the end of its interval is."""
        squares = (end - r_hat) ** 2
        pairs = 2 * (covariances[:size] * weights.T).sum(axis=1) + (among @ weights * weights).sum(axis=0)
        square = squares[:size] + squares[size:] @ weights**2 + z2 * (pairs + variance)
        return r_hat[:size] + r_hat[size:] @ weights, np.sqrt(np.maximum(square, 0.0))

    known = ~np.isnan(pum.strength)[:, np.newaxis]
    reach = np.broadcast_to(pum.reached, pum.background.shape)
    spread = pum.background_variance(r_hat)
    least, below = of_sum(low, np.where(known, pum.background, 0.0), spread)
    most, above = of_sum(high, np.where(known, pum.background, reach), spread)
    anywhere, over = of_sum(high, reach, np.zeros(size))
    visible = low[:size], high[:size]
    return PumIntervals(visible, (least - below, most + above), (visible[0], anywhere + over))
