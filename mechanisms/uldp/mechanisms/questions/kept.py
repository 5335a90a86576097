"""Windows whose devices keep their responses, so that the reports of a device depend on each other.

With ``lasting_epsilon``, two reports of a device are drawn from one permanent response, and are independent given this.
So two windows with the same devices have the covariance of an estimate from the permanent responses: of n reports each,
kappa_2' / n, where kappa_2' is that of a report of the mechanism of the permanent response; see ``Estimate.repeated``.
Windows of n_s and n_t reports share min(n_s, n_t) devices at the most.

The collector does not know which devices are in two windows. A covariance is never negative. So a mean or a sum is
taken to be of the same devices, and a difference of others, unless the caller says that they are the same.
"""

from collections.abc import Sequence

import numpy as np

from uldp.mechanisms.laws.estimate import Estimate


def repeats(sizes: Sequence[float]) -> float:
    """Return in how many other windows the device of a report has another, in the mean over all reports, at the most.

    It is the sum of min(n_s, n_t) over all s != t, over the sum of n: of T equal windows T - 1.

    Args:
        sizes: The number n of reports of each window.
    """
    ordered = np.sort(np.asarray(sizes, dtype=np.float64))
    later = np.arange(len(ordered))[::-1]
    return float(2 * (ordered * later).sum() / ordered.sum())


def of_same_devices(after: Estimate, before: Estimate, sizes: tuple[Sequence[int], Sequence[int]]) -> Estimate:
    """Return a difference of windows, where the devices of those with fewer reports are among those of the others.

    They hold what they held, so the difference has less noise than of other devices. If the law of the responses is not
    known, no covariance is taken off, which leaves the difference more error than it has.

    Args:
        after: The estimate of the first windows.
        before: That of the other ones, of which it takes off as much.
        sizes: The number of reports of each window of both, of all variables.
    """
    shares = [np.asarray(each, dtype=np.float64) / sum(each) for each in sizes]

    def shared(after_n: float, before_n: float) -> float:
        """Return how many pairs of reports of both have one device, over the number of all pairs."""
        pairs = np.minimum.outer(shares[0] * after_n, shares[1] * before_n).sum()
        return float(pairs / (after_n * before_n))

    return after.less_dependent(before, shared)
