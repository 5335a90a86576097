"""Randomized response in which a report from behind a tag also holds an answer about its zone, with a small budget."""

import math
from collections.abc import Sequence

import numpy as np

from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.device_form import RESOLUTION, DeviceForm, threshold
from uldp.mechanisms.protocol.mechanism import Guarantee, PureMechanism, Randomness
from uldp.mechanisms.randomizers.reports import CountedReports
from uldp.mechanisms.zones.projective_response import ProjectiveResponse
from uldp.schemas.arrays import Counts, Floats, Mask, Payloads, Symbols, Values


class NestedResponse(PureMechanism, CountedReports):
    """uRR over the values and the bots, with a point of ``ProjectiveResponse`` for the zone behind a nested bot.

    The inputs are the values, and then the zones of each bot; a bot that is not nested has one zone. Outer symbols are
    the values and the bots. A payload is a symbol: a value, or one of the points of a bot; those of a bot follow those
    of the bots before it. A bot that is not nested has one point.

    Noise has weights: 1 for a value of X_S and for a bot that is not nested, rho = P/D for a nested bot (P and D of
    its ``ProjectiveResponse``), and 0 for a value of X_N. Let V be the sum of the weights. With probability
    V/(E-1+V) the device reports noise: an outer symbol drawn by weight, and behind a nested bot a uniform point.
    Otherwise it reports the truth: a value, or the bot with the point for its zone. So an outer symbol of weight w has

        p = a + (1 - a) w/V        q = (1 - a) w/V        a = (E-1)/(E-1+V)

    Guarantee: one report is (X_S and all zones, Y_P, epsilon)-ULDP, where Y_P are the reports but those that name a
    value of X_N. The probability of a point is largest from a zone whose hyperplane holds it, and least from any other
    bot or value: their quotient is 1 + a V/D / ((1-a) rho/P) = E. Within a tag, two zones differ by at most the factor
    E / (1 + (E-1) c), which is e^zone_epsilon for c of ``ProjectiveResponse``. Without zones, this factor is 1.
    The channel is that of the outer symbols.
    """

    equal_pairs = False  # zones behind one tag have a budget of their own

    def __init__(self, sensitive: Mask, epsilon: float, nests: Sequence[ProjectiveResponse | None]) -> None:
        """Build the mechanism; ValueError if no bot is nested, or no value is sensitive."""
        if not any(nests) or not np.any(sensitive):
            raise ValueError("a nested response needs a bot with zones, and a sensitive value")
        size, self.nests = len(sensitive), tuple(nests)  # the answers about the zone of each bot, if it is nested
        zones = np.append(np.ones(size, dtype=np.int64), [nest.zones if nest else 1 for nest in nests])
        points = np.append(np.ones(size, dtype=np.int64), [nest.points if nest else 1 for nest in nests])
        #: Shape (outer symbols + 1,): the first payload of each outer symbol, and the number of all.
        self.first_payloads: Symbols = np.append(0, np.cumsum(points))
        self._outer = np.repeat(np.arange(len(zones)), zones)
        self._first_inputs = np.cumsum(zones) - zones
        self._zone = np.arange(len(self._outer)) - self._first_inputs[self._outer]
        self.size = len(self._outer)
        self._of_payloads(int(points.sum()))
        protected = np.append(sensitive, np.ones(len(nests), dtype=np.bool_))
        self.sensitive = protected[self._outer]
        self.guarantee = Guarantee.of(self.sensitive, epsilon)

        rho = [nest.points * nest.on_plane if nest else 1.0 for nest in nests]
        weights = np.append(sensitive.astype(np.float64), rho)
        total, gain = weights.sum(), math.expm1(epsilon)
        self.noise_probability = float(total / (gain + total))
        q = weights / (gain + total)
        self.channel = Channel(p=gain / (gain + total) + q, q=q, independent_bits=False)
        self._alike = np.flatnonzero(protected & np.append(np.ones(size, dtype=np.bool_), [not nest for nest in nests]))
        self._nested = size + np.flatnonzero([nest is not None for nest in nests])
        ends = np.cumsum(np.append(len(self._alike), weights[self._nested])) / total
        self._draws_below = np.rint(ends[:-1] * RESOLUTION).astype(np.int64)

    def perturb(self, symbols: Values, randomness: Randomness) -> Payloads:
        self.check_symbols(symbols)
        n, true = len(symbols), self._outer[symbols]
        noisy = randomness.random(n) < self.noise_probability
        outer = np.where(noisy, self._noise(n, randomness), true)
        payloads = self.first_payloads[outer]
        for bot, nest in enumerate(self.nests, start=self._values):
            if nest is not None:
                zones = np.where(true == bot, self._zone[symbols], 0)
                points = nest.perturb(zones, noisy, randomness)
                payloads = payloads + np.where(outer == bot, points, 0)
        return payloads.astype(np.uint32)

    def _noise(self, n: int, randomness: Randomness) -> Symbols:
        """Draw outer symbols by weight: first the nested bot or the others together, then one of the others."""
        kinds = np.searchsorted(self._draws_below, randomness.integers(0, RESOLUTION, n), side="right")
        others = self._alike[randomness.integers(0, len(self._alike), n)]
        return np.where(kinds == 0, others, self._nested[np.maximum(kinds, 1) - 1])

    def device_form(self) -> DeviceForm:
        return {
            "form": "nested",
            "noise": threshold(self.noise_probability),
            "kinds": self._draws_below.tolist(),
            "others": self._alike.tolist(),
            "outer": self._outer.tolist(),
            "zone": self._zone.tolist(),
            "first": self.first_payloads[:-1].tolist(),
            "nests": [
                {
                    "symbol": symbol,
                    "uniform": threshold(nest.uniform_probability),
                    "points": nest.points,
                    "planes": nest.hyperplanes.tolist(),
                }
                for symbol, nest in enumerate(self.nests, start=self._values)
                if nest is not None
            ],
        }

    def describe(self, payload: int | bytes) -> str:
        assert isinstance(payload, int)
        outer = int(np.searchsorted(self.first_payloads, payload, side="right")) - 1
        if outer < self._values:
            return super().describe(payload)
        first, end = self.first_payloads[outer : outer + 2].tolist()
        return f"{super().describe(payload)}: point {payload - first} of {end - first} of tag {outer - self._values}"

    def fold(self, cells: Counts) -> Counts:
        return np.asarray(np.add.reduceat(cells, self.first_payloads[:-1]))

    def law(self, r: Floats) -> Floats:
        r_outer = np.add.reduceat(r, self._first_inputs)
        parts = [self.channel.support_probability(r_outer)[: self._values]]
        for at, nest in enumerate(self.nests, start=self._values):
            gain, q = float(self.channel.gain[at]), float(self.channel.q[at])
            own = r[self._first_inputs[at] :][: nest.zones if nest else 1]
            parts.append(gain * (nest.law(own) if nest else own) + q / (nest.points if nest else 1))
        return np.concatenate(parts)

    @property
    def _values(self) -> int:
        return len(self.channel.p) - len(self.nests)
