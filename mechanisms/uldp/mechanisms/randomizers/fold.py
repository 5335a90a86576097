"""Mechanisms of which a report is one symbol that supports many values: a linear map turns cells into support counts.

So a device sends a few bytes, a collector adds one to a cell, and the work for all values of a domain is done once a
window, by a fast transform.
"""

import math
from abc import abstractmethod

import numpy as np

from uldp.mechanisms.protocol.mechanism import Guarantee, PureMechanism
from uldp.mechanisms.randomizers.packed_bits import supports_text
from uldp.mechanisms.randomizers.reports import UniformReports
from uldp.schemas.arrays import Counts, Floats, Symbols


class FoldedMechanism(PureMechanism, UniformReports):
    """A mechanism whose payloads are the cells, and which sends a uniform one with some probability.

    Whatever its symbol, a device sends a payload with ``least_probability`` to e^epsilon times this.

    The matrix M of 0 and 1, with a row for each symbol, says which payloads support which symbols.
    """

    numbers: int  # how many numbers a transform has

    def __init__(self, size: int, epsilon: float) -> None:
        """Protect all symbols of Z, of which there are ``size``; ValueError if size or epsilon is not positive."""
        if size < 1:
            raise ValueError(f"a domain has at least one symbol, got size {size}")
        self.size, self.sensitive = size, np.ones(size, dtype=np.bool_)
        self.guarantee = Guarantee.of(self.sensitive, epsilon)

    @abstractmethod
    def supports(self, cells: Floats) -> Floats:
        """Return M @ cells, shape (|Z|, j) for cells of shape (cells, j): sums over the payloads of each symbol."""

    @abstractmethod
    def supported(self, symbols: Floats) -> Floats:
        """Return M.T @ symbols, shape (cells, j) for weights of shape (|Z|, j): sums over the symbols of a payload."""

    @abstractmethod
    def symbols_of(self, payload: int) -> Symbols:
        """Return the symbols that a payload supports, in ascending order."""

    def fold(self, cells: Counts) -> Counts:
        """See the base class. The counts are exact, for up to 2^40 reports."""
        return np.asarray(np.rint(self.supports(cells.astype(np.float64)[:, np.newaxis])[:, 0]).astype(np.int64))

    @property
    @abstractmethod
    def payload_text(self) -> str:
        """The parts of a payload, for ``uldp check``."""

    @abstractmethod
    def parts_of(self, payload: int) -> str:
        """Return the parts of one payload, for ``uldp decode``."""

    def describe(self, payload: int | bytes) -> str:
        assert isinstance(payload, int)
        return f"{self.parts_of(payload)}, {supports_text(self.symbols_of(payload), self.size)}"

    @property
    def least_probability(self) -> float:
        """The probability of a payload under the symbols that make it the least probable."""
        return self.uniform_probability / self.statistic_size

    def law(self, r: Floats) -> Floats:
        """See the base class: ``least_probability``, but e^epsilon times this under the symbols of a payload."""
        assert self.guarantee.epsilon is not None  # it has noise
        return self.least_probability * (
            1 + math.expm1(self.guarantee.epsilon) * self.supported(r[:, np.newaxis])[:, 0]
        )
