"""How many intervals of an estimate cover the truth, where a simulation knows it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from uldp.pipelines.simulation.truth import KnownShares
from uldp.schemas.arrays import Mask
from uldp.schemas.table import Table

#: The end of an interval may differ from a true share of 0 by a rounding error.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Covered:
    """The share of the intervals of one kind that cover the truth, None where there is no such value."""

    intervals: str  # ``shown`` of shares, ``visible`` of what was measured, or ``band`` whatever is behind the tags
    everywhere: float  # of all values
    occupied: float | None  # of those that some user holds
    hidden: float | None  # of those that some user hides


def covered(share: Table, visible: Table | None, band: Table | None, truth: KnownShares) -> list[Covered]:
    """Compare the intervals of shares, of visible shares and of bands with the truth; skip tables without intervals."""
    occupied = truth.shares > 0
    hidden = np.zeros_like(occupied) if truth.visible is None else truth.shares - truth.visible > _ROUNDING
    return [
        Covered(name, float(inside.mean()), _mean(inside, occupied), _mean(inside, hidden))
        for name, inside in _inside(share, visible, band, truth)
    ]


def _inside(share: Table, visible: Table | None, band: Table | None, truth: KnownShares) -> Iterator[tuple[str, Mask]]:
    for name, table, shares in (
        ("visible", visible, truth.visible),
        ("shown", share, truth.shares),
        ("band", band, truth.shares),
    ):
        if table is not None and shares is not None and table.low is not None and table.high is not None:
            yield name, (table.low - _ROUNDING <= shares) & (shares <= table.high + _ROUNDING)


def _mean(inside: Mask, which: Mask) -> float | None:
    return float(inside[which].mean()) if which.any() else None
