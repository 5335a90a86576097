"""Drawn bit: whether a device holds one drawn value, by randomized response; most reports support no value."""

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


class DrawnBit(PureMechanism):
    """The payload 2j + b of a uniform symbol j, drawn whatever the device holds, and a bit b of k symbols.

    b says whether j is the true symbol, and is wrong with probability 1/(e^epsilon + 1). A report supports j if b is 1,
    and no symbol if not, so the support counts sum to less than n.

    Guarantee: one report is epsilon-LDP, because the odds of b are, for each j.
    """

    partitions = False

    def __init__(self, sensitive: Mask, epsilon: float) -> None:
        self.sensitive, self.size = sensitive, len(sensitive)
        self.statistic_size, self.form = self.size, PayloadForm(symbols=2 * self.size)
        self.guarantee = Guarantee(Privacy.LDP, epsilon)
        self.wrong = 1 / (math.exp(epsilon) + 1)
        of_each = np.full(self.size, 1 / self.size)
        self.channel = Channel(p=of_each * (1 - self.wrong), q=of_each * self.wrong, independent_bits=False)

    def perturb(self, symbols: Values, randomness: Randomness) -> Payloads:
        """Perturb n symbols; the draws are the same for each."""
        self.check_symbols(symbols)
        drawn = randomness.integers(0, self.size, len(symbols))
        bits = (drawn == symbols) ^ (randomness.random(len(symbols)) < self.wrong)
        payloads: Payloads = (2 * drawn + bits).astype(np.uint32)
        return payloads

    def possible(self, payloads: Payloads) -> Mask:
        """Return which payloads are a symbol with a bit."""
        return payloads < 2 * self.size

    def law(self, r: Floats) -> Floats:
        """Return the probability of each payload."""
        supports = self.channel.support_probability(r)
        return np.column_stack([1 / self.size - supports, supports]).ravel()

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        """Count the reports that support each symbol, in k groups."""
        payloads = np.concatenate(parts)
        supporting = payloads % 2 == 1
        return count_symbols(payloads[supporting] // 2, groups[supporting], k, self.size)


class DrawnBitSpec(PrivateSpec):
    """Drawn bit in specs."""

    title = "one drawn bit"

    name: Literal["drawn-bit"]

    def protocol(self, variable: Variable) -> LdpProtocol:
        """Build all steps."""
        return of_shares(variable, self, DrawnBit)
