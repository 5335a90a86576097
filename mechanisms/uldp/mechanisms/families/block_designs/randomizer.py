"""Mechanisms that report a block of a design for sensitive symbols: uHR and uBD.

Sources: Yoon, Park, Nam & Lee, "Fundamental Limit of Discrete Distribution Estimation under Utility-Optimized Local
Differential Privacy" (arXiv 2509.24173) for the family, and that one of it is optimal; Park, Nam & Lee, "Exactly
Optimal and Communication-Efficient Private Estimation via Block Designs" (arXiv 2305.01261) and Acharya, Sun & Zhang,
"Hadamard Response" (AISTATS 2019) for their forms without non-sensitive symbols. Probabilities and estimates are
derived here.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.kernels.block_designs import BlockDesign
from uldp.mechanisms.kernels.supports_text import supports_text
from uldp.mechanisms.laws.channel import Channel, NumbersT
from uldp.mechanisms.protocol.device_form import DeviceForm, sensitive_symbols, threshold
from uldp.mechanisms.protocol.mechanism import Guarantee, PureMechanism, Randomness, UniformNoise
from uldp.mechanisms.randomizers.reports import CountedReports
from uldp.schemas.arrays import Counts, Floats, Mask, Rows, Values


@dataclass(frozen=True, eq=False)
class BlockCells:
    """The symbols that each cell supports: the blocks, and then a cell for each non-sensitive symbol; see ``Blocks``.

    Attributes:
        design: The design; its first v points are the sensitive symbols, in ascending order.
        sensitive: Shape (|Z|,): whether each symbol is in Z_S.
        uniform: The probability of each block from behind a non-sensitive symbol.
        named: The probability that a report names its true symbol, if that is not sensitive.
    """

    design: BlockDesign
    sensitive: Mask
    uniform: float
    named: float

    @property
    def cells(self) -> int:
        """The number of cells."""
        return self.design.blocks + int(np.count_nonzero(~self.sensitive))

    @cached_property
    def _places(self) -> tuple[Rows, Rows]:
        """The symbols that are sensitive, and the others: as indices, which NumPy follows faster than masks."""
        return np.flatnonzero(self.sensitive), np.flatnonzero(~self.sensitive)

    @cached_property
    def fixed(self) -> bool:
        """Whether all blocks hold the same number of sensitive symbols."""
        return self.design.equal_blocks and self.design.points == np.count_nonzero(self.sensitive)

    def fold(self, cells: Counts) -> Counts:
        """Return the support counts of cells, exactly."""
        return self._join(self.design.sums(cells[: self.design.blocks]), cells)

    def supports(self, cells: Floats) -> Floats:
        """Sum vectors over the cells that support each symbol; shape (cells, j) becomes (|Z|, j)."""
        return self._join(self.design.over_blocks(cells[: self.design.blocks]), cells)

    def _join(self, points: NumbersT, cells: NumbersT) -> NumbersT:
        inside, outside = self._places
        joined: NumbersT = np.empty((len(self.sensitive), *cells.shape[1:]), dtype=cells.dtype)
        joined[inside] = points[: len(inside)]
        joined[outside] = cells[self.design.blocks :]
        return joined

    def supported(self, symbols: Floats) -> Floats:
        """Sum vectors over the symbols that each cell supports: the transpose of ``supports``."""
        inside, outside = self._places
        points = np.zeros((self.design.points, *symbols.shape[1:]))
        points[: len(inside)] = symbols[inside]
        return np.concatenate([self.design.over_points(points), symbols[outside]])

    def law(self, r: Floats) -> Floats:
        """Return the probability of each cell, shape (cells,), if true symbols are distributed as ``r``.

        A share that is missing to one is that of unknown sensitive symbols, which are in each pair of blocks alike.
        """
        supported = self.supported(r)
        blocks, free = supported[: self.design.blocks], supported[self.design.blocks :]
        missing = 1 - min(max(free.sum(), 0.0), 1.0) - r[self.sensitive].sum()
        held = blocks + missing * self.design.together / self.design.holding
        return np.concatenate([self.uniform + self.named / self.design.holding * held, self.named * free])

    def joined(self) -> "BlockCells":
        """Return the same blocks, with one symbol in place of all that are not sensitive."""
        return replace(self, sensitive=np.append(self.sensitive[self.sensitive], False))


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

    Attributes:
        design: The design.
        blocks: The symbols that each cell supports.
        noise_probability: b c.
    """

    def __init__(self, sensitive: Mask, epsilon: float, design: BlockDesign) -> None:
        """Build the mechanism over Z, of which ``sensitive``, shape (|Z|,), says which symbols are in Z_S.

        Raises:
            ValueError: if epsilon is not positive, no symbol is sensitive, or the design has no point for each.
        """
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
        """See the base class. The draws are the same for all symbols."""
        self.check_symbols(symbols)
        n = len(symbols)
        noisy = randomness.random(n) < self.noise_probability
        uniform = self.uniform(n, randomness)
        block = self.design.holding_block(self._point[symbols], randomness.integers(0, self.design.draws, n))
        truth = np.where(self.sensitive[symbols], block, self._own[symbols])
        return np.where(noisy, uniform, truth).astype(np.uint32)

    def law(self, r: Floats) -> Floats:
        """See the base class."""
        return self.blocks.law(r)

    @property
    def uniform_probability(self) -> float:
        """The probability of a uniform block."""
        return self.noise_probability

    def uniform(self, n: int, randomness: Randomness) -> npt.NDArray[np.uint32]:
        """Draw n blocks uniformly."""
        return randomness.integers(0, self.design.blocks, n).astype(np.uint32)

    def describe(self, payload: int | bytes) -> str:
        """Return the block and the sensitive symbols in it, or the symbol that is not sensitive."""
        assert isinstance(payload, int)
        chosen = np.zeros(self.statistic_size, dtype=np.int64)
        chosen[payload] = 1
        symbols = np.flatnonzero(self.blocks.fold(chosen))
        if payload >= self.design.blocks:
            return f"symbol {symbols[0]} of {self.size:,}, which is not sensitive"
        of_sensitive = supports_text(symbols, int(self.sensitive.sum()), "sensitive symbols")
        return f"block {payload:,} of {self.design.blocks:,}, {of_sensitive}"

    def device_form(self) -> DeviceForm:
        """See ``Mechanism``."""
        return {
            "form": "design",
            "size": self.size,
            "sensitive": sensitive_symbols(self.sensitive),
            "noise": threshold(self.noise_probability),
            **self.design.device_numbers(),
        }
