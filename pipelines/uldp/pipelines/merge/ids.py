"""Sets of the ids of reports, as two sorted columns of words: to sort bytes takes ten times as long.

Devices choose ids, so the first words may be equal; these rows alone are sorted by both words.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from uldp.schemas.arrays import Mask, Words

#: Bytes of an id.
ID = 16
_NONE = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Ids:
    """A set of ids; words have shape (n,) and ascend by the first word, and then by the second."""

    first: Words = field(default_factory=_NONE.copy)
    second: Words = field(default_factory=_NONE.copy)

    @classmethod
    def of(cls, parts: Iterable[bytes]) -> Self:
        """Return the set of ids that stand one behind the other in each part."""
        words = np.frombuffer(b"".join(parts), dtype=np.uint64).reshape(-1, 2)
        first, second, copies = _sorted(words[:, 0].copy(), words[:, 1].copy())
        return cls(first[~copies], second[~copies])

    @classmethod
    def union(cls, sets: Iterable[Self]) -> Self:
        """Return the ids that are in any of the sets."""
        some = [each for each in sets if len(each)]
        if len(some) == 1:
            return some[0]
        first, second, copies = _joined(some)
        return cls(first[~copies], second[~copies])

    def __len__(self) -> int:
        return len(self.first)

    def in_common(self, other: Self) -> int:
        """Return how many ids both sets have."""
        return int(_joined((self, other))[2].sum())

    def without(self, other: Self) -> Self:
        """Return the ids that are not in ``other``, a subset."""
        first, second, copied = _joined((self, other))
        copied[:-1] |= copied[1:]
        return type(self)(first[~copied], second[~copied])

    def has_first_of(self, other: Self) -> bool:
        """Return whether the least ids of both, which have some, are the same."""
        return bool(self.first[0] == other.first[0] and self.second[0] == other.second[0])


def _joined(sets: Iterable[Ids]) -> tuple[Words, Words, Mask]:
    some = [*sets, Ids()]
    return _sorted(np.concatenate([each.first for each in some]), np.concatenate([each.second for each in some]))


def _sorted(first: Words, second: Words) -> tuple[Words, Words, Mask]:
    """Return ids in order, and which of them equal the one before."""
    order = np.argsort(first)
    first, second = first[order], second[order]
    same = first[1:] == first[:-1]
    copies = np.zeros(len(first), dtype=np.bool_)
    if same.any():
        tied = copies.copy()
        tied[1:] |= same
        tied[:-1] |= same
        rows = np.flatnonzero(tied)
        second[rows] = second[rows[np.lexsort((second[rows], first[rows]))]]
        copies[1:] = same & (second[1:] == second[:-1])
    return first, second, copies
