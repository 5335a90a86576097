"""The maximum of a likelihood over the simplex, by means that share nothing with the package."""

import numpy as np
from scipy.optimize import LinearConstraint, minimize

from uldp.schemas.arrays import Counts, Floats


def optimality_gap(r: Floats, Q: Floats, histogram: Counts) -> float:
    """Upper bound on how far r is from the maximum of the mean log-likelihood.

    That is concave in r, so no point of the simplex is above its tangent plane at r, which is highest at a corner.
    """
    seen = histogram > 0
    gradient = Q[:, seen] @ (histogram[seen] / (r @ Q[:, seen])) / histogram.sum()
    return float(gradient.max() - gradient @ r)


def numerical_optimum(Q: Floats, histogram: Counts) -> Floats:
    seen = histogram > 0
    fit = minimize(
        lambda r: -float(histogram[seen] @ np.log(r @ Q[:, seen] + 1e-300)) / histogram.sum(),
        np.full(len(Q), 1 / len(Q)),
        method="SLSQP",
        bounds=[(0, 1)] * len(Q),
        constraints=LinearConstraint(np.ones((1, len(Q))), 1, 1),
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return np.asarray(fit.x)
