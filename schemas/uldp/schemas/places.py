"""Places of messages in a source, as runs of their numbers; united and subtracted exactly, however bundles are cut.

A place is a text. If it ends with a number, as ``000000000003.avro:17`` and ``orders/2/4711`` do, the number counts the
messages of what the text before it names: a segment, a file or a partition.
"""

import re
from collections.abc import Iterable
from itertools import chain, starmap
from operator import sub

import numpy as np
import numpy.typing as npt

#: Runs of numbers, each from its first number to before its second; ascending, with gaps between them.
Runs = tuple[tuple[int, int], ...]

_NUMBERED = re.compile(r"(.*\D)(0|[1-9][0-9]{0,17})", re.ASCII | re.DOTALL)


def numbered(place: str) -> tuple[str, int] | None:
    """Split a place into what its number is of, and the number; None if it has no number.

    >>> numbered("000000000003.avro:17"), numbered("nowhere")
    (('000000000003.avro:', 17), None)
    """
    found = _NUMBERED.fullmatch(place)
    return (found[1], int(found[2])) if found else None


def united(runs: Iterable[tuple[int, int]]) -> Runs:
    """Unite runs in any order.

    >>> united([(5, 7), (0, 2), (2, 3), (6, 9)])
    ((0, 3), (5, 9))
    """
    found: list[tuple[int, int]] = []
    for first, end in sorted(runs):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((first, end))
    return tuple(found)


def without(runs: Runs, others: Runs) -> Runs:
    """Return what is in ``runs`` and not in ``others``.

    >>> without(((0, 10),), ((2, 3), (5, 6)))
    ((0, 2), (3, 5), (6, 10))
    """
    found = []
    at = 0
    for first, end in runs:
        while at < len(others) and others[at][1] <= first:
            at += 1
        here = at
        while here < len(others) and others[here][0] < end:
            if first < others[here][0]:
                found.append((first, others[here][0]))
            first = max(first, others[here][1])
            here += 1
        if first < end:
            found.append((first, end))
    return tuple(found)


def size(runs: Runs) -> int:
    """Return how many numbers there are."""
    negative: int = sum(starmap(sub, runs))
    return -negative


def bounds_of(runs: Runs) -> npt.NDArray[np.int64]:
    """Return the first number of each run and the one behind it, one after the other."""
    return np.fromiter(chain.from_iterable(runs), dtype=np.int64, count=2 * len(runs))


def numbers_in(runs: Runs) -> npt.NDArray[np.int64]:
    """Return the numbers, ascending.

    >>> numbers_in(((0, 2), (5, 7))).tolist()
    [0, 1, 5, 6]
    """
    firsts, ends = bounds_of(runs).reshape(-1, 2).T
    lengths = ends - firsts
    before = np.cumsum(lengths) - lengths
    numbers: npt.NDArray[np.int64] = np.repeat(firsts - before, lengths) + np.arange(lengths.sum())
    return numbers


def runs_of(numbers: npt.NDArray[np.int64]) -> Runs:
    """Return the runs of different numbers, which are ascending.

    >>> runs_of(np.array([0, 1, 5, 6]))
    ((0, 2), (5, 7))
    """
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    firsts = numbers[np.concatenate([[0], breaks])]
    ends = numbers[np.concatenate([breaks - 1, [-1]])] + 1
    return tuple(zip(firsts.tolist(), ends.tolist(), strict=True))


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
