"""The truth of a simulation: the users' values, in the clear, and the tags behind which some users hide them.

A truth file is a CSV file with the header ``value,tag,weight``. The weight of a row is proportional to the number of
users who have this value and hide it behind this tag of the spec; users in rows with an empty tag do not hide it. A
value is an index into the domain, or a label if the domain has labels.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.pum import preprocess
from uldp.schemas.arrays import Floats
from uldp.schemas.collection import CollectionSpec
from uldp.schemas.mistakes import near, quote
from uldp.schemas.specfile import read_rows, read_weight

Indices = npt.NDArray[np.int64]

_HEADER = ["value", "tag", "weight"]
#: The guide table of a distribution divides [0, 1) into this many equal parts. The number is much larger than the
#: number of cells, and the table still fits a cache.
_PARTS = 1 << 14


class TruthError(ValueError):
    """A truth file is invalid. The message names file, line, value and remedy."""


@dataclass(frozen=True, eq=False)
class Truth:
    """The joint distribution of users' values and the tags behind which users hide them.

    Attributes:
        size: |X|, the number of values in the domain.
        tag_count: kappa, the number of tags in the spec.
        values: Shape (m,): the value of each cell of the distribution, an index into X.
        tags: Shape (m,): the index of the tag of each cell, -1 for no tag.
        probabilities: Shape (m,): the share of users in each cell; the shares sum to 1.
    """

    size: int
    tag_count: int
    values: Indices
    tags: Indices
    probabilities: Floats

    @classmethod
    def load(cls, path: Path, spec: CollectionSpec) -> Self:
        """Read a truth file for the domain and the tags of ``spec``.

        Raises:
            TruthError: at the first invalid line.
        """
        try:
            cells = list(_read_cells(path, spec))
        except ValueError as error:
            raise TruthError(f"{path}: {error}") from error
        values, tag_indices, weights = zip(*cells, strict=True) if cells else ((), (), ())
        total = sum(weights)
        if not 0 < total < math.inf:
            raise TruthError(f"{path}: the weights sum to {total:g}; give at least one row a weight above 0")
        return cls(
            spec.size,
            len(spec.tags),
            np.array(values, dtype=np.int64),
            np.array(tag_indices, dtype=np.int64),
            np.array(weights, dtype=np.float64) / total,
        )

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Indices, Indices]:
        """Draw n users i.i.d.

        Returns:
            Two arrays of shape (n,): the index of each user's value, and the index of her tag, -1 for no tag.
        """
        cells = self._cells(rng.random(n))
        return self.values.take(cells), self.tags.take(cells)

    def _cells(self, draws: Floats) -> npt.NDArray[np.intp]:
        """Invert the distribution function at ``draws`` from [0, 1), by a table for most draws, else by a search."""
        ends, guide = self._guide
        parts = (draws * _PARTS).astype(np.intp)  # exact, because _PARTS is a power of two
        cells = guide.take(parts)
        searched = np.flatnonzero(cells < 0)
        cells[searched] = np.searchsorted(ends, draws[searched], side="right")
        return cells

    @cached_property
    def _guide(self) -> tuple[Floats, npt.NDArray[np.intp]]:
        """Return the distribution function, and the cell of each part of [0, 1), -1 if the part has several cells."""
        ends = np.cumsum(self.probabilities)
        ends /= ends[-1]
        bounds = np.searchsorted(ends, np.arange(_PARTS + 1) / _PARTS, side="right")
        return ends, np.where(bounds[:-1] == bounds[1:], bounds[:-1], -1)

    @property
    def distribution(self) -> Floats:
        """The distribution p, shape (|X|,), of the users' values, hidden or not; p-hat estimates p."""
        return np.asarray(np.bincount(self.values, self.probabilities, minlength=self.size), dtype=np.float64)

    @property
    def intermediate(self) -> Floats:
        """The distribution r, shape (|Z|,), after each user's f_pre (eq. 20), over X and then one bot for each tag."""
        symbols = preprocess(self.values, self.tags, self.size)
        shares = np.bincount(symbols, self.probabilities, minlength=self.size + self.tag_count)
        return np.asarray(shares, dtype=np.float64)


def _read_cells(path: Path, spec: CollectionSpec) -> Iterator[tuple[int, int, float]]:
    """Yield value, tag and weight of each row.

    Raises:
        ValueError: at the first invalid line.
    """
    tags = {"": -1} | {tag.name: index for index, tag in enumerate(spec.tags)}
    rows = iter(read_rows(path))
    line, header = next(rows, (1, []))
    if header != _HEADER:
        raise ValueError(f"line {line}: {quote(','.join(header))} must be the header {','.join(_HEADER)}")
    for line, row in rows:
        try:
            yield _parse_row(row, tags, spec)
        except ValueError as error:
            raise ValueError(f"line {line}: {quote(','.join(row))}: {error}") from error


def _parse_row(row: list[str], tags: dict[str, int], spec: CollectionSpec) -> tuple[int, int, float]:
    """Return value, tag and weight of a row.

    Raises:
        ValueError: if the row is invalid; the message does not name the line, which the caller adds.
    """
    if len(row) != len(_HEADER):
        raise ValueError(
            f"the row has {len(row)} fields; write value,tag,weight, and leave the tag empty if there is none"
        )
    value, tag, weight = row
    try:
        index = spec.read_value(value)
    except ValueError as error:
        raise ValueError(f"{error}; write a value of the domain of {spec.collection} version {spec.version}") from error
    if tag not in tags:
        known = near(tag, tags) or ", ".join(name for name in tags if name) or "it has none"
        raise ValueError(f"tag {quote(tag)} is not in the spec ({known}); correct it or leave it empty")
    return index, tags[tag], read_weight(weight)
