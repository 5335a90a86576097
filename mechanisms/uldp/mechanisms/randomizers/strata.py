"""One of several mechanisms, drawn on the device: the reports of a record, where each device reports one variable.

Each device draws one part (a stratum), whatever it holds, and spends the whole budget on the variable of this part. The
statistic is the concatenation of the statistics of the parts, and each part has its own number of reports.

Source: Wang et al., "Collecting and Analyzing Multidimensional Data with Local Differential Privacy" (ICDE 2019), for
one sampled variable in place of a divided budget.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

import numpy as np

from uldp.mechanisms.protocol.cells import Cells, SparseCells
from uldp.mechanisms.protocol.mechanism import Guarantee, Mechanism, PayloadForm, Privacy, Randomness, WithMemory
from uldp.schemas.arrays import Counts, Floats, Mask, Packed, Payloads, Symbols, Values

# A payload of bytes names its part in two bytes.
_MOST_PARTS = 1 << 16
# A symbol takes four bytes in a payload of bytes.
_SYMBOL_WIDTH = 4

_WEAKEST_FIRST = (Privacy.NONE, Privacy.ULDP, Privacy.LDP)

# The device draws its part by a uniform integer below this, so shares are exact to 2^-53.
_DRAWS = 1 << 53
# Devices would hardly ever draw a smaller share, and a test could hardly tell its complement from 1.
_LEAST_SHARE = 1e-9


class Strata(Mechanism):
    """A mechanism that applies one of several mechanisms, its parts; the input symbol selects the part.

    The symbols of part s follow the symbols of the parts before it. A payload names its part openly.

    If all parts send symbols, and their numbers sum to at most 2^31, a payload is a symbol: those of part s follow
    those of the parts before it. Otherwise a payload is bytes: the number of the part (two bytes, little-endian), the
    payload of the part (a symbol is four bytes, little-endian), and zeros up to the width of the widest part.

    The cells of the parts follow each other. A part that does not partition its reports has one cell more, in front of
    its own: the number of its reports.

    Guarantee: that of the weakest part, if the part is drawn independently of all values, as ``RecordEncoding`` does.

    Attributes:
        parts: The mechanisms.
        shares: Shape (S,): the probability with which devices draw each of the S parts.
        first_symbols: Shape (S,): the first input symbol of each part.
        noun: What a part is for, as text.
    """

    parts: tuple[Mechanism, ...]
    shares: Floats
    first_symbols: Symbols

    def __init__(self, parts: Sequence[Mechanism], shares: Sequence[float], noun: str = "attribute") -> None:
        """Build the mechanism.

        Args:
            parts: The mechanisms.
            shares: The probability with which devices draw each part.
            noun: What a part is for, as text.

        Raises:
            ValueError: if there is no part, there are more than two bytes can number, or the shares are not one
                number of at least 1e-9 for each part, with a sum of 1.
        """
        if not 1 <= len(parts) <= _MOST_PARTS:
            raise ValueError(f"strata have 1 to {_MOST_PARTS} parts, got {len(parts)}")
        self.parts, self.noun = tuple(parts), noun
        self.shares = np.array(shares, dtype=np.float64)
        total = self.shares.sum()
        if self.shares.shape != (len(parts),) or not ((self.shares >= _LEAST_SHARE).all() and abs(total - 1) < 1e-9):
            raise ValueError(
                f"{len(parts)} parts need shares of at least {_LEAST_SHARE:g} that sum to 1,"
                f" got {', '.join(map(str, shares))}"
            )
        self.shares /= total
        self._draws_below = np.rint(np.cumsum(self.shares)[:-1] * _DRAWS).astype(np.int64)
        self.first_symbols, self.size = _offsets(part.size for part in parts)
        self._first_cells, self.statistic_size = _offsets(part.statistic_size + (not part.partitions) for part in parts)
        self._widths = [part.form.width or _SYMBOL_WIDTH for part in parts]
        self._first_payloads, payloads = _offsets(part.form.symbols or 0 for part in parts)
        symbols = all(part.form.symbols for part in parts) and payloads <= 1 << 31
        self.form = PayloadForm(symbols=payloads) if symbols else PayloadForm(width=2 + max(self._widths))
        self.largest_step = max(part.largest_step for part in parts)
        self.partitions = all(part.partitions for part in parts)
        self.guarantee = _weakest([part.guarantee for part in parts])

    @property
    def repeat_probability(self) -> float:
        """See ``Mechanism``: that of the part whose payloads repeat the most."""
        return max(part.repeat_probability for part in self.parts)

    def draw(self, n: int, randomness: Randomness) -> Symbols:
        """Draw the number of a part for each of n devices."""
        return np.searchsorted(self._draws_below, randomness.integers(0, _DRAWS, n), side="right")

    def perturb(self, symbols: Values, randomness: Randomness) -> Payloads:
        """Perturb each symbol by the mechanism of its part.

        Raises:
            ValueError: if a symbol is outside of Z.
        """
        return self._of_parts(symbols, lambda part, own: part.perturb(own, randomness))

    def _of_parts(self, symbols: Values, respond: Callable[[Mechanism, Values], Payloads]) -> Payloads:
        """Return the payload that the part of each symbol gives for it."""
        self.check_symbols(symbols)
        n = len(symbols)
        drawn = np.searchsorted(self.first_symbols, symbols, side="right") - 1
        payloads = np.zeros(n, np.uint32) if self.form.width is None else np.zeros((n, self.form.width), np.uint8)
        for number, part in enumerate(self.parts):
            rows = np.flatnonzero(drawn == number)
            payloads[rows] = self._wrap(number, respond(part, symbols[rows] - self.first_symbols[number]))
        return payloads

    def possible(self, payloads: Payloads) -> Mask:
        """Return which payloads name a part, hold a possible payload of this part, and have only zeros behind it."""
        return self.inspect(payloads)[0]

    def inspect(self, payloads: Payloads) -> tuple[Mask, Mask]:
        """Return which payloads are ``possible``, and which the mechanism of their part calls improbable."""
        possible, improbable = np.zeros((2, len(payloads)), dtype=np.bool_)
        for number, rows, own in self.split_payloads(payloads):
            possible[rows], improbable[rows] = self.parts[number].inspect(own)
            if self.form.width is not None:
                possible[rows] &= ~cast(Packed, payloads)[rows, 2 + self._widths[number] :].any(axis=1)
        return possible, improbable

    def describe(self, payload: int | bytes) -> str:
        """Return the part, by its number from 0, and what its own payload says."""
        column: Payloads = (
            np.array([payload], np.uint32) if isinstance(payload, int) else np.frombuffer(payload, np.uint8)[np.newaxis]
        )
        number, own = next((number, own) for number, rows, own in self.split_payloads(column) if len(rows))
        part = int(own[0]) if own.ndim == 1 else own[0].tobytes()
        return f"{self.noun} {number} of {len(self.parts)}: {self.parts[number].describe(part)}"

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        """Tally the payloads of each part by its mechanism, in each of k groups."""
        tallies: list[Sequence[Cells]] = []
        for number, rows, own in self.split_payloads(cast(Payloads, np.concatenate(parts))):
            if not self.parts[number].partitions:
                tallies.append(list(np.bincount(groups[rows], minlength=k).astype(np.int64)[:, np.newaxis]))
            tallies.append(self.parts[number].tally([own], groups[rows], k))
        return [_concatenate(of_group) for of_group in zip(*tallies, strict=True)]

    def split_cells(self, cells: Counts) -> list[tuple[Counts, int]]:
        """Return the cells of each part, and the number of its reports."""
        found = []
        for part, own in zip(self.parts, np.split(cells, self._first_cells[1:]), strict=True):
            found.append((own, int(own.sum())) if part.partitions else (own[1:], int(own[0])))
        return found

    def _wrap(self, number: int, own: Payloads) -> Payloads:
        """Return payloads of one part as payloads of all parts."""
        if self.form.width is None:
            return cast(Payloads, own + np.uint32(self._first_payloads[number]))
        if own.ndim == 1:
            own = own.astype("<u4")[:, np.newaxis].view(np.uint8)
        wrapped = np.zeros((len(own), self.form.width), dtype=np.uint8)
        wrapped[:, :2] = np.frombuffer(number.to_bytes(2, "little"), dtype=np.uint8)
        wrapped[:, 2 : 2 + own.shape[1]] = own
        return wrapped

    def split_payloads(self, payloads: Payloads) -> Iterator[tuple[int, Symbols, Payloads]]:
        """Yield for each part its number, the rows of its payloads, and these payloads as the part has sent them."""
        if self.form.width is None:
            named = np.searchsorted(self._first_payloads, payloads, side="right") - 1
        else:
            named = payloads[:, :2].copy().view("<u2")[:, 0]
        for number, part in enumerate(self.parts):
            rows = np.flatnonzero(named == number)
            if self.form.width is None:
                yield number, rows, payloads[rows] - np.uint32(self._first_payloads[number])
                continue
            own = payloads[rows, 2 : 2 + self._widths[number]]
            yield number, rows, own if part.form.symbols is None else own.copy().view("<u4")[:, 0].astype(np.uint32)


class MemoizedStrata(Strata, WithMemory):
    """Strata of parts that all have a permanent response.

    Guarantee: as long as a device keeps its part, all reports of one record have the lasting budget of this part,
    whatever the values of the other parts are.
    """

    def perturb(self, symbols: Values, randomness: Randomness) -> Payloads:
        """Perturb each symbol by the mechanism of its part, from a permanent response of its own."""
        return WithMemory.perturb(self, symbols, randomness)

    def permanent(self, symbols: Values, randomness: Randomness) -> Payloads:
        """Draw the permanent response to each symbol by its part."""
        return self._of_parts(symbols, lambda part, own: cast(WithMemory, part).permanent(own, randomness))

    def again(self, permanent: Payloads, randomness: Randomness) -> Payloads:
        """Perturb permanent responses by the mechanism of their part, which a payload names in any case."""
        payloads = permanent.copy()
        for number, rows, own in self.split_payloads(permanent):
            payloads[rows] = self._wrap(number, cast(WithMemory, self.parts[number]).again(own, randomness))
        return payloads


def _offsets(sizes: Iterable[int]) -> tuple[Symbols, int]:
    """Return the sum of the sizes before each size, shape (S,), and the sum of all."""
    ends = np.cumsum([0, *sizes], dtype=np.int64)
    return ends[:-1], int(ends[-1])


def _weakest(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Return a promise that each of these keeps."""
    privacy = min((guarantee.privacy for guarantee in guarantees), key=_WEAKEST_FIRST.index)
    budgets = [guarantee.epsilon for guarantee in guarantees if guarantee.epsilon is not None]
    lasting = [guarantee.lasting for guarantee in guarantees if guarantee.lasting is not None]
    epsilon = None if privacy is Privacy.NONE else max(budgets)
    return Guarantee(privacy, epsilon, max(lasting) if len(lasting) == len(guarantees) else None)


def _concatenate(parts: Sequence[Cells]) -> Cells:
    """Return the cells of all parts; they are sparse if a part is."""
    if not any(isinstance(cells, SparseCells) for cells in parts):
        return np.concatenate(cast(Sequence[Counts], parts))
    indices, values = [], []
    starts, size = _offsets(cells.size for cells in parts)
    for start, cells in zip(starts, parts, strict=True):
        own = cells.indices if isinstance(cells, SparseCells) else np.flatnonzero(cells)
        indices.append(start + own)
        values.append(cells.values if isinstance(cells, SparseCells) else cells[own])
    return SparseCells(size, np.concatenate(indices), np.concatenate(values))
