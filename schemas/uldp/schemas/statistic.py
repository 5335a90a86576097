"""The sufficient statistic of a window: the cells of its mechanism. In Avro, the cells are packed bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from uldp.schemas.arrays import Counts
from uldp.schemas.pane import PaneHeader

#: The largest number of cells that a reader accepts. Sparse cells take few bytes, so a file does not bound the memory
#: that its cells take.
MAX_CELLS = 1 << 25

_ITEMSIZES = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic(PaneHeader):
    """The cells of ``n`` reports. If the mechanism has a channel, ``cells[z]`` reports support symbol z of Z.

    If n is 0, ``cells`` is a single 0, which NumPy adds to the cells of any other window.
    """

    cells: Counts = field(hash=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Statistic):
            return NotImplemented
        return self.header() == other.header() and np.array_equal(self.cells, other.cells)

    def to_avro(self) -> dict[str, Any]:
        return PaneHeader.to_avro(self) | {"cells": pack_cells(self.cells)}

    @classmethod
    def from_avro(cls, value: Mapping[str, Any]) -> Self:
        """Read a value that ``to_avro`` returned; ValueError if its cells are none that ``pack_cells`` returns."""
        return cls(**cls.header_from_avro(value), cells=unpack_cells(value["cells"]))


def counts_to_avro(pane: PaneHeader) -> dict[str, Any]:
    """Return a statistic, or the header alone of one whose cells are apart, as ``statistic.avsc`` describes it."""
    return {"cells": None} | pane.to_avro()


def counts_from_avro(value: Mapping[str, Any]) -> PaneHeader:
    """Read what ``counts_to_avro`` returned, or a header whose cells are apart; ValueError as ``unpack_cells``."""
    return PaneHeader(**PaneHeader.header_from_avro(value)) if value["cells"] is None else Statistic.from_avro(value)


def itemsize_of(cells: Counts) -> int:
    """Return the fewest bytes, of 1, 2, 4 and 8, that hold each of the cells."""
    # Not cells.min: for few cells, its wrapper takes more than half of the time.
    low, high = int(np.minimum.reduce(cells, initial=0)), int(np.maximum.reduce(cells, initial=0))
    return next(size for size in _ITEMSIZES if -(1 << (8 * size - 1)) <= low and high < 1 << (8 * size - 1))


def pack_cells(cells: Counts) -> dict[str, Any]:
    """Return cells as ``statistic.avsc`` describes them. The bytes follow from the cells alone."""
    itemsize = itemsize_of(cells)
    filled = np.flatnonzero(cells)
    if len(filled) * (4 + itemsize) < len(cells) * itemsize:
        indices, values = filled.astype("<u4").tobytes(), cells[filled]
    else:
        indices, values = None, cells
    return {
        "size": len(cells),
        "itemsize": itemsize,
        "indices": indices,
        "values": values.astype(f"<i{itemsize}").tobytes(),
    }


def unpack_cells(packed: Mapping[str, Any]) -> Counts:
    """Read cells that ``pack_cells`` returned, shape (size,); ValueError if sizes or indices are not as it has them."""
    size, itemsize = packed["size"], packed["itemsize"]
    if not 0 <= size <= MAX_CELLS or itemsize not in _ITEMSIZES:
        raise ValueError(f"{size} cells of {itemsize} bytes are impossible")
    values = np.frombuffer(packed["values"], f"<i{itemsize}").astype(np.int64)
    if packed["indices"] is None:
        if len(values) != size:
            raise ValueError(f"{len(values)} values are not {size} cells")
        return values
    indices = np.frombuffer(packed["indices"], "<u4").astype(np.int64)
    if len(indices) != len(values) or (np.diff(indices, append=size) <= 0).any():
        raise ValueError("the indices do not ascend below the size, one for each value")
    cells = np.zeros(size, dtype=np.int64)
    cells[indices] = values
    return cells
