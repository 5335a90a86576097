"""What the collector received: the share of the reports that support each value, as they came."""

from typing import NamedTuple

import numpy as np

from uldp.mechanisms.questions.slices import counts_of, version_of
from uldp.mechanisms.questions.span import Version
from uldp.pipelines.results.tables import decimals
from uldp.schemas.arrays import Floats
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic


class Received(NamedTuple):
    """The share of n reports that support each value, shape (|X|,)."""

    shares: Floats
    n: int

    @property
    def places(self) -> int:
        """The number of decimals of a share in percent."""
        return decimals(np.sqrt(self.shares * (1 - self.shares) / self.n))


def received_of(statistic: Statistic | None, spec: CollectionSpec) -> dict[tuple[str, ...], Received]:
    """Return what was received of each variable whose values reports support, by the attributes of its table."""
    if statistic is None:
        return {}
    version = Version(spec)
    (whole,) = counts_of(version, [statistic])
    parts = version_of(version).decoder.variables(whole.cells, whole.n, [*spec.variables])
    found = {(part.name,) if part.name else (): (part.decoder.received(part.cells, part.n), part.n) for part in parts}
    return {of: Received(shares, n) for of, (shares, n) in found.items() if shares is not None}
