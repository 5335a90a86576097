"""Mechanisms that report a block of a design for sensitive symbols: uHR and uBD.

Sources: Yoon, Park, Nam & Lee, "Fundamental Limit of Discrete Distribution Estimation under Utility-Optimized Local
Differential Privacy" (arXiv 2509.24173) for the family, and that one of it is optimal; Park, Nam & Lee, "Exactly
Optimal and Communication-Efficient Private Estimation via Block Designs" (arXiv 2305.01261) and Acharya, Sun & Zhang,
"Hadamard Response" (AISTATS 2019) for their forms without non-sensitive symbols. Probabilities and estimates are
derived here.
"""

import math

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.kernels.block_designs import BlockDesign
from uldp.mechanisms.laws.block_cells import BlockCells
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.device_form import DeviceForm, sensitive_symbols, threshold
from uldp.mechanisms.protocol.mechanism import Guarantee, PureMechanism, Randomness
from uldp.mechanisms.protocol.noise import UniformNoise
from uldp.mechanisms.randomizers.packed_bits import supports_text
from uldp.mechanisms.randomizers.reports import CountedReports
from uldp.schemas.arrays import Floats, Mask, Values


class BlockResponse(PureMechanism, CountedReports, UniformNoise):
    """Utility-optimized Hadamard response (uHR) and block designs (uBD): a report is a block, or a symbol of Z_N.

    The design has b blocks; each point is in h of them, and each two points are in t together. The points are the
    sensitive symbols, and maybe more that nobody holds. With E = e^epsilon and c = 1/(h (E-1) + b), a block y has the
    probability

        c E    for a true symbol of Z_S in y       c    for any other true symbol

    and a true symbol of Z_N reports itself with the probability that is left, a = h (E-1) c. Both follow one rule: with
    probability b c report a uniform block, otherwise the truth, which is the symbol itself in Z_N, and a uniform one of
    the h blocks that hold a symbol of Z_S. A report supports the symbols of Z_S in its block, or its symbol of Z_N:

        p = h c E     q = c (h + t (E-1))     q' = h c    on Z_S        p = a     q = 0    on Z_N

    where q is for another true symbol of Z_S, and q' for one of Z_N. The design of single points is uRR.

    Guarantee: one report is (Z_S, Y_P, epsilon)-ULDP, where Y_P are the blocks. For every block, its likelihoods under
    any two true symbols differ by at most a factor E. A report outside of Y_P reveals its true symbol, which is in Z_N.
    The device rounds the probability of a uniform block up, so the finite resolution of the noise keeps this.

    A payload is a symbol: the number of a block, or b and the position in Z_N of a symbol of Z_N.
    """

    def __init__(self, sensitive: Mask, epsilon: float, design: BlockDesign) -> None:
        self.sensitive = np.array(sensitive, dtype=np.bool_)
        self.guarantee = Guarantee.of(self.sensitive, epsilon)
        v = int(self.sensitive.sum())
        if design.points < v:
            raise ValueError(f"{v} sensitive symbols need a design of as many points, got {design.points}")
        self.size, self.design = len(self.sensitive), design
        b, h, t = design.blocks, design.holding, design.together
        c = 1 / (h * math.expm1(epsilon) + b)
        self.noise_probability = b * c
        self.chance_support = t / h
        self.blocks = BlockCells(design, self.sensitive, uniform=c, named=1 - b * c)
        self._of_payloads(self.blocks.cells)
        self.channel = Channel(
            p=np.where(self.sensitive, 1 - (b - h) * c, 1 - b * c),
            q=np.where(self.sensitive, c * (h + t * math.expm1(epsilon)), 0.0),
            independent_bits=False,
            q_non_sensitive=np.where(self.sensitive, h * c, 0.0),
            blocks=self.blocks,
        )
        # The point of each symbol of Z_S, and the payload of each symbol of Z_N.
        self._point = np.where(self.sensitive, np.cumsum(self.sensitive) - 1, 0)
        self._own = b + np.cumsum(~self.sensitive) - 1

    def perturb(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
        self.check_symbols(symbols)
        n = len(symbols)
        noisy = randomness.random(n) < self.noise_probability
        uniform = self.uniform(n, randomness)
        block = self.design.holding_block(self._point[symbols], randomness.integers(0, self.design.draws, n))
        truth = np.where(self.sensitive[symbols], block, self._own[symbols])
        return np.where(noisy, uniform, truth).astype(np.uint32)

    def law(self, r: Floats) -> Floats:
        return self.blocks.law(r)

    def uniform(self, n: int, randomness: Randomness) -> npt.NDArray[np.uint32]:
        return randomness.integers(0, self.design.blocks, n).astype(np.uint32)

    def describe(self, payload: int | bytes) -> str:
        assert isinstance(payload, int)
        chosen = np.zeros(self.statistic_size, dtype=np.int64)
        chosen[payload] = 1
        symbols = np.flatnonzero(self.fold(chosen))
        if payload >= self.design.blocks:
            return f"symbol {symbols[0]} of {self.size:,}, which is not sensitive"
        of_sensitive = supports_text(symbols, int(self.sensitive.sum()), "sensitive symbols")
        return f"block {payload:,} of {self.design.blocks:,}, {of_sensitive}"

    def device_form(self) -> DeviceForm:
        return {
            "form": "design",
            "size": self.size,
            "sensitive": sensitive_symbols(self.sensitive),
            "noise": threshold(self.noise_probability),
            **self.design.device_numbers(),
        }
