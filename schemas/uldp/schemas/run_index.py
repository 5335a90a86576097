"""Which of many sets of runs share numbers with other runs, found without a walk over all of them."""

import numpy as np
import numpy.typing as npt

from uldp.schemas.places import Runs, bounds_of

#: Rows of a first number, the number behind the last, and the set that has the run; ascending by the first column.
_Rows = npt.NDArray[np.int64]


class RunIndex:
    """Sets of runs, numbered from 0.

    Rows are in parts of which each has more than the one behind it, and at least twice as many after a merge. So a set
    is sorted again a few times at most, and a question takes a few binary searches.
    """

    def __init__(self) -> None:
        #: Each with the highest end of a row and those before it.
        self._parts: list[tuple[_Rows, npt.NDArray[np.int64]]] = []
        self._sets = 0

    def add(self, runs: Runs) -> None:
        """Add a set, which is not empty."""
        bounds = bounds_of(runs).reshape(-1, 2)
        rows = np.column_stack([bounds, np.full(len(bounds), self._sets)])
        self._sets += 1
        while self._parts and len(self._parts[-1][0]) <= len(rows):
            rows = np.concatenate([self._parts.pop()[0], rows])
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
        self._parts.append((rows, np.maximum.accumulate(rows[:, 1])))

    def overlapping(self, runs: Runs) -> list[int]:
        """Return the sets that have a number of these runs, ascending."""
        firsts, ends = bounds_of(runs).reshape(-1, 2).T
        found = [np.empty(0, dtype=np.int64)]
        for part, highest in self._parts:
            low = np.searchsorted(highest, firsts, side="right")
            high = np.searchsorted(part[:, 0], ends)
            for run in np.flatnonzero(low < high).tolist():
                rows = part[low[run] : high[run]]
                found.append(rows[rows[:, 1] > firsts[run], 2])
        sets: list[int] = np.unique(np.concatenate(found)).tolist()
        return sets
