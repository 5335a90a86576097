"""Mechanisms of which a report is one symbol that supports many values: a linear map turns cells into support counts.

So a device sends a few bytes, a collector adds one to a cell, and the work for all values of a domain is done once a
window, by a fast transform.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.kernels.supports_text import supports_text
from uldp.mechanisms.protocol.cells import Cells, count_symbols
from uldp.mechanisms.protocol.mechanism import Guarantee, PayloadForm, PureMechanism, Randomness, UniformNoise
from uldp.schemas.arrays import Counts, Floats, Mask, Payloads, Symbols


class Fold(ABC):
    """The matrix M of 0 and 1 that says which payloads support which symbols: a row for each symbol.

    Attributes:
        numbers: How many numbers a transform has.
    """

    numbers: int

    @abstractmethod
    def apply(self, cells: Floats) -> Floats:
        """Return M @ cells, shape (|Z|, j) for cells of shape (cells, j): sums over the payloads of each symbol."""

    @abstractmethod
    def transpose(self, weights: Floats) -> Floats:
        """Return M.T @ weights, shape (cells, j) for weights of shape (|Z|, j): sums over the symbols of a payload."""

    @abstractmethod
    def supported(self, payload: int) -> Symbols:
        """Return the symbols that a payload supports, in ascending order."""

    def supports(self, cells: Counts) -> Counts:
        """Return the support counts, shape (|Z|,). They are exact, for up to 2^40 reports."""
        counts: Counts = np.rint(self.apply(cells.astype(np.float64)[:, np.newaxis])[:, 0]).astype(np.int64)
        return counts


class FoldedMechanism(PureMechanism, UniformNoise):
    """A mechanism whose payloads are the cells, and which sends a uniform one with some probability.

    Whatever its symbol, a device sends a payload with a probability between ``least_probability`` and e^epsilon times
    this.

    Attributes:
        fold: Turns cells into support counts.
    """

    fold: Fold
    partitions = True
    counts_payloads = True

    def __init__(self, size: int, epsilon: float) -> None:
        """Protect all symbols of Z, of which there are ``size``.

        Raises:
            ValueError: if size or epsilon is not positive.
        """
        if size < 1:
            raise ValueError(f"a domain has at least one symbol, got size {size}")
        if not epsilon > 0:
            raise ValueError(f"epsilon must be positive, got {epsilon}")
        self.size, self.sensitive = size, np.ones(size, dtype=np.bool_)
        self.guarantee = Guarantee.of(self.sensitive, epsilon)

    def _of_payloads(self, number: int) -> None:
        """Set the form and the size of the statistic."""
        self.form, self.statistic_size = PayloadForm(symbols=number), number

    @property
    @abstractmethod
    def payload_text(self) -> str:
        """The parts of a payload, for ``uldp check``."""

    @abstractmethod
    def parts_of(self, payload: int) -> str:
        """Return the parts of one payload, for ``uldp decode``."""

    def describe(self, payload: int | bytes) -> str:
        """Return the parts of a payload, and the symbols that it supports."""
        assert isinstance(payload, int)
        return f"{self.parts_of(payload)}, {supports_text(self.fold.supported(payload), self.size)}"

    @property
    def least_probability(self) -> float:
        """The probability of a payload under the symbols that make it the least probable."""
        return self.uniform_probability / self.statistic_size

    def law(self, r: Floats) -> Floats:
        """Return the probability of each payload, shape (statistic_size,), if symbols are distributed as ``r``.

        It is ``least_probability``, and e^epsilon times this under the symbols that the payload supports.
        """
        assert self.guarantee.epsilon is not None  # it has noise
        return self.least_probability * (
            1 + math.expm1(self.guarantee.epsilon) * self.fold.transpose(r[:, np.newaxis])[:, 0]
        )

    def uniform(self, n: int, randomness: Randomness) -> npt.NDArray[np.uint32]:
        """Draw n uniform payloads."""
        return randomness.integers(0, self.statistic_size, n).astype(np.uint32)

    def possible(self, payloads: Payloads) -> Mask:
        """Return which payloads are symbols."""
        return payloads < self.statistic_size

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        """Count the reports of each payload, in all groups at once."""
        return count_symbols(np.concatenate(parts), groups, k, self.statistic_size)
