"""One test of whether all differences of two estimates are 0, at the errors that they have if nothing differs."""

import numpy as np

from uldp.mechanisms.laws.estimate import Estimate
from uldp.schemas.arrays import Floats

# Covariances of so many differences are exact, and of more from random weights.
_EXACT, _PROBES = 256, 64


def whole_p_value(difference: Estimate) -> tuple[float, float]:
    """Return the sum of squared differences in standard errors, over its expectation, and its p-value.

    If nothing differs, the differences d are about normal with Cov = C. So T = sum d_z^2 / C_zz has the expectation
    tr A and the variance 2 tr A^2, for A = D C D with D = C_zz^(-1/2); its law is about that of a chi-square with the
    same two moments. Source: Satterthwaite (Biometrics 2, 1946).

    Values of which less than one report is expected have no normal difference. They are added up, as the cells of other
    chi-square tests are: such a value has a variance below the square of the step of one user.

    Args:
        difference: The differences, with errors at parameters under which all may be 0; see ``Estimate.under``.
    """
    from scipy import special  # takes a quarter of a second, and devices need none

    cumulants = difference.cumulants
    rare = cumulants.variance < cumulants.step**2
    tested, variance = difference.values[~rare], cumulants.variance[~rare]
    if rare.any():
        together = rare.astype(np.float64)[:, np.newaxis]
        tested = np.append(tested, difference.values @ together)
        variance = np.append(variance, difference.variance_of(together))
    scale = np.where(variance > 0, 1 / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0)
    k, some = len(tested), float((variance > 0).sum())
    if not some:
        return 0.0, 1.0

    def spread(w: Floats) -> Floats:
        wide = np.empty((len(rare), w.shape[1]))
        wide[~rare], wide[rare] = w[: int((~rare).sum())], w[-1]
        return wide

    probes = np.eye(k) if k <= _EXACT else np.random.default_rng(0).choice([-1.0, 1.0], (k, _PROBES))
    moved = difference.times(spread(scale[:, np.newaxis] * probes))
    of_tested = np.vstack([moved[~rare], moved[rare].sum(axis=0)]) if rare.any() else moved
    squares = float(((scale[:, np.newaxis] * of_tested) ** 2).sum()) / (1 if k <= _EXACT else _PROBES)
    degrees, factor = some**2 / squares, squares / some
    statistic = float(((tested * scale) ** 2).sum())
    return statistic / some, float(special.chdtrc(degrees, statistic / factor))
