"""Forced response: some devices, drawn at random, report a value that is drawn, too."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from uldp.mechanisms import (
    Cells,
    Channel,
    Guarantee,
    LdpProtocol,
    PayloadForm,
    Privacy,
    PureMechanism,
    Randomness,
    count_symbols,
    of_shares,
)
from uldp.schemas import PrivateSpec, Variable
from uldp.schemas.arrays import Floats, Mask, Payloads, Symbols, Values


class ForcedResponse(PureMechanism):
    """A uniform symbol with probability f = k/(k - 1 + e^epsilon), and the true one otherwise, over k symbols.

    Guarantee: one report is epsilon-LDP, because (1 - f + f/k) / (f/k) = e^epsilon.
    """

    partitions = True
    reports_symbols = True

    def __init__(self, sensitive: Mask, epsilon: float) -> None:
        self.sensitive, self.size = sensitive, len(sensitive)
        self.statistic_size, self.form = self.size, PayloadForm(symbols=self.size)
        self.guarantee = Guarantee(Privacy.LDP, epsilon)
        self.forced = self.size / (self.size + math.expm1(epsilon))
        q = np.full(self.size, self.forced / self.size)
        self.channel = Channel(p=1 - self.forced + q, q=q, independent_bits=False)

    def perturb(self, symbols: Values, randomness: Randomness) -> Payloads:
        """Perturb n symbols; the draws are the same for each."""
        self.check_symbols(symbols)
        forced = randomness.random(len(symbols)) < self.forced
        drawn = randomness.integers(0, self.size, len(symbols))
        return np.where(forced, drawn, symbols).astype(np.uint32)

    def possible(self, payloads: Payloads) -> Mask:
        """Return which payloads are symbols."""
        return payloads < self.size

    def law(self, r: Floats) -> Floats:
        """Return the probability of each symbol."""
        return self.channel.support_probability(r)

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        """Count the reports of each symbol, in k groups."""
        return count_symbols(np.concatenate(parts), groups, k, self.size)


class ForcedResponseSpec(PrivateSpec):
    """Forced response in specs."""

    title = "forced response"

    name: Literal["forced-response"]

    def protocol(self, variable: Variable) -> LdpProtocol:
        """Build all steps; with lasting_epsilon, the mechanism would also need UniformNoise."""
        return of_shares(variable, self, ForcedResponse)
