"""Score intervals of ratios of two unbiased estimates: the ratios v for which top - v bottom may have the mean 0.

Source: Fieller, "Some problems in interval estimation" (Journal of the Royal Statistical Society B 16, 1954), for
normal estimates. Here top - v bottom is tested by its own score interval. Its variance is quadratic in v, and its third
cumulant cubic, so that those at four ratios give all others; its largest step is convex, and no larger than on the
lines between them.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.laws.interval import Ends, p_value
from uldp.mechanisms.laws.law import Cumulants
from uldp.schemas.arrays import Floats

_HALVINGS = 48
_NODES = np.linspace(0.0, 1.0, 4)


def ratio_interval(
    top: Floats,
    bottom: Floats,
    cumulants: Callable[[Floats], Cumulants],
    coverage: float,
    bounds: tuple[float, float] = (0.0, 1.0),
    moved: npt.ArrayLike = 0.0,
) -> Ends:
    """Return intervals of ratios of the means of estimates, inside their range.

    ``cumulants`` gives those of top - v bottom for ratios v, which forged reports may move by ``moved``. Where
    ``bottom`` may be 0, intervals may be the whole range.
    """
    least, most = bounds
    at_nodes = [cumulants(np.full(len(top), least + node * (most - least))) for node in _NODES]
    variance, third = (np.linalg.solve(np.vander(_NODES), np.stack([each[i] for each in at_nodes])) for i in (0, 1))
    step, nothing = np.stack([each.step for each in at_nodes]), np.full(len(top), np.nan)

    def inside(part: Floats) -> npt.NDArray[np.bool_]:
        node = np.minimum((part * 3).astype(np.int64), 2)
        between, each = part * 3 - node, np.arange(len(part))
        own = Cumulants(
            np.maximum(np.polyval(variance, part), 0.0),
            np.polyval(third, part),
            (1 - between) * step[node, each] + between * step[node + 1, each],
            nothing,
            nothing,
        )
        score = top - (least + part * (most - least)) * bottom
        return np.asarray(p_value(np.sign(score) * np.maximum(np.abs(score) - moved, 0.0), own) >= 1 - coverage)

    ratio = np.divide(top, bottom, out=np.full_like(top, (least + most) / 2), where=bottom != 0)
    middle = ((ratio - least) / (most - least)).clip(0.0, 1.0)

    def end(outer: float) -> Floats:
        of_inside, of_outside = middle, np.full_like(middle, outer)
        whole = inside(of_outside)
        for _ in range(_HALVINGS):
            part = (of_inside + of_outside) / 2
            there = inside(part)
            of_inside, of_outside = np.where(there, part, of_inside), np.where(there, of_outside, part)
        return np.asarray(least + np.where(whole, outer, of_outside) * (most - least))

    return end(0.0), end(1.0)
