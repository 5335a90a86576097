"""The mean of a number from its steps with noise, and a test of whether too many reports are far out, or alike."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from uldp.mechanisms.families.geometric.randomizer import Geometric
from uldp.mechanisms.kernels.intervals import outside_p_value
from uldp.mechanisms.numbers.outputs import OutputsDecoder
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag


class StepsDecoder(OutputsDecoder):
    """Reads the counts of noisy steps."""

    def __init__(self, *fields: Any, mechanism: Geometric, **more: Any) -> None:
        super().__init__(*fields, **more)
        self._mechanism = mechanism

    @cached_property
    def _of_ends(self) -> tuple[Floats, Floats]:
        """Shape (outputs,) each: the law of outputs of the first symbol, and that of the last."""
        first, last = (
            self._mechanism.law(np.eye(1, self._mechanism.size, end)[0]) for end in (0, self._mechanism.grid)
        )
        return first, last

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Return how probable it is that some output, or all from one to an end, has so few or so many of n reports.

        An output is the less probable the farther its step is from the symbol: the least for an end of the grid, and
        the most for the nearest symbol. All up to one are the most probable for the first symbol. So whatever users
        hold, given or drawn, these numbers of reports are stochastically between binomial ones, at every n.
        Bonferroni's bound takes all.
        """
        self.check(cells, n)
        if n <= 0:
            return {}
        (first, last), margin = self._of_ends, self._mechanism.margin
        most = np.maximum(first, last)
        most[margin:-margin] = first[margin]
        of_each = outside_p_value(cells, n, np.minimum(first, last), most)
        least_up_to, most_up_to = (np.cumsum(law)[:-1].clip(0.0, 1.0) for law in (last, first))
        up_to = outside_p_value(np.cumsum(cells)[:-1], n, least_up_to, most_up_to)
        return {Flag.IMPROBABLE_COUNTS: min(1.0, 2 * min(of_each, up_to))}
