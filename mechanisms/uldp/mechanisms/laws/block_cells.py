"""The incidence of cells and symbols of a channel in which a cell supports several symbols: the blocks of a design."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from uldp.mechanisms.kernels.block_designs import BlockDesign
from uldp.schemas.arrays import Counts, Floats, Mask, Rows

#: Numbers of either kind; the result has the kind of the argument.
NumbersT = TypeVar("NumbersT", Counts, Floats)


@dataclass(frozen=True, eq=False)
class BlockCells:
    """The symbols that each cell supports: the blocks, and then a cell for each non-sensitive symbol."""

    design: BlockDesign  # the design; its first v points are the sensitive symbols, in ascending order
    sensitive: Mask  # shape (|Z|,): whether each symbol is in Z_S
    uniform: float  # the probability of each block from behind a non-sensitive symbol
    named: float  # the probability that a report names its true symbol, if that is not sensitive

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
        """Whether weights make the supports of each report sum to one: all blocks hold as many sensitive symbols."""
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
        """Return the probability of each cell if symbols have shares ``r``; what these lack is of unknown ones."""
        supported = self.supported(r)
        blocks, free = supported[: self.design.blocks], supported[self.design.blocks :]
        missing = 1 - min(max(free.sum(), 0.0), 1.0) - r[self.sensitive].sum()
        held = blocks + missing * self.design.together / self.design.holding
        return np.concatenate([self.uniform + self.named / self.design.holding * held, self.named * free])

    def joined(self) -> "BlockCells":
        """Return the same blocks, with one symbol in place of all that are not sensitive."""
        return replace(self, sensitive=np.append(self.sensitive[self.sensitive], False))
