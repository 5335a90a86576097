"""The shares of users in the zones of tags as reports have them, without any background, and the band that follows."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from uldp.mechanisms.decoders.pure import ShareEstimate
from uldp.mechanisms.laws.interval import normal_quantile
from uldp.mechanisms.zones.nested_response import NestedResponse
from uldp.schemas.arrays import Counts, Floats, Symbols


class Most(NamedTuple):
    """The share of each value if all users in the zones that hold it held it, each of shape (|X|,).

    Attributes:
        masses: The part of the zones.
        stderr: The standard error of the whole.
        high: The upper end of its interval.
    """

    masses: Floats
    stderr: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class ZoneMasses:
    """The unbiased estimates of the shares of users in the zones of each bot; a bot that is not nested is one zone.

    The share r_g of users in zone g of a nested bot is linear in the shares f of the cells: with the symbols of
    ``measured_shares``,

        r_g = (S_g / n - q s/P - h' (C / n - q)) / (gain (h - h')) = A_g f + c_g

    Cells are multinomial, and those of two bots differ, so Cov[r_g, r_g'] = -(A_g f) (A_g' f) / n for zones of these.

    Attributes:
        nested: The mechanism.
        linear: The estimate over the values and bots.
        cells: The reports of each payload.
    """

    nested: NestedResponse
    linear: ShareEstimate
    cells: Counts

    @cached_property
    def _moments(self) -> Floats:
        """Shape (5, zones): c, A f, A^2 f, and the least and the largest entry of A, where other cells are 0."""
        size, n = len(self.linear.values) - len(self.nested.nests), self.linear.reports
        found: list[Floats] = []
        for bot, nest in enumerate(self.nested.nests, start=size):
            gain, q = float(self.linear.channel.gain[bot]), float(self.linear.channel.q[bot])
            first, last = self.nested.first_payloads[bot : bot + 2]
            own = self.cells[first:last]
            if nest is None:
                near, near_to, far, constant = own, 1.0, 0.0, -q
            else:
                contrast, plane = nest.inside - nest.across, nest.hyperplanes.shape[1] / nest.points
                near, near_to, far = nest.on_hyperplanes(own), (1 - nest.across) / contrast, -nest.across / contrast
                constant = q * (nest.across - plane) / contrast
            on, off = near / n, (own.sum() - near) / n
            mean, square = on * near_to + off * far, on * near_to**2 + off * far**2
            ends = np.full_like(mean, min(far, 0.0)), np.full_like(mean, near_to)
            found.append(np.stack([np.full_like(mean, constant), mean, square / gain, *ends]) / gain)
        return np.hstack(found)

    @property
    def values(self) -> Floats:
        """Shape (zones,): the estimates."""
        return np.asarray(self._moments[0] + self._moments[1])

    def _above(self, z2: float) -> Floats:
        """Return how far the upper ends of normal intervals are above the estimates, shape (zones,).

        As Agresti and Coull do (The American Statistician 52, 1998), this adds z^2 reports, half with the largest entry
        of a row and half with the least, because few reports may agree by chance.
        """
        _, mean, square, least, largest = self._moments
        added, n = z2 / (self.linear.reports + z2), self.linear.reports + z2
        middle = (1 - added) * mean + added * (least + largest) / 2
        spread = (1 - added) * square + added * (least**2 + largest**2) / 2 - middle**2
        return np.asarray(middle - mean + np.sqrt(z2 * np.maximum(spread, 0.0) / n))

    def most(self, places: Symbols, coverage: float) -> Most:
        """Return the share of each value if all users in the zones that hold it held it; see ``pum_intervals``.

        Args:
            places: Shape (kappa, |X|): the zone of each value behind each tag.
            coverage: The probability with which two-sided intervals cover.
        """
        size, n, z2 = places.shape[1], self.linear.reports, normal_quantile(0.5 + coverage / 2) ** 2
        _, means, squares, _, _ = self._moments
        # The parts are the value, and a zone of each tag.
        values, variance = self.linear.values[:size], self.linear.variance[:size]
        parts = np.vstack([self.cells[:size] / n / self.linear.channel.gain[:size], means[places]])
        pairs = -(parts.sum(axis=0) ** 2 - (parts**2).sum(axis=0)) / n
        variances = variance + ((squares - means**2) / n)[places].sum(axis=0)
        above_value = self.linear.interval(coverage)[1][:size] - values
        squared = above_value**2 + (self._above(z2) ** 2)[places].sum(axis=0) + z2 * pairs
        return Most(
            self.values.clip(0.0, 1.0)[places].sum(axis=0),
            np.sqrt(np.maximum(variances + pairs, 0.0)),
            values + self.values[places].sum(axis=0) + np.sqrt(np.maximum(squared, 0.0)),
        )
