"""One of several mechanisms, drawn on the device: the reports of a record, where each device reports one variable.

Each device draws one part (a stratum), whatever it holds, and spends the whole budget on the variable of this part. The
statistic is the concatenation of the statistics of the parts, and each part has its own number of reports.

Source: Wang et al., "Collecting and Analyzing Multidimensional Data with Local Differential Privacy" (ICDE 2019), for
one sampled variable in place of a divided budget.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple, cast

import numpy as np

from uldp.mechanisms.protocol.cells import Cells, count_symbols, stack_cells
from uldp.mechanisms.protocol.device_form import RESOLUTION, DeviceForm
from uldp.mechanisms.protocol.mechanism import (
    MOST_CELLS,
    Guarantee,
    Mechanism,
    PayloadForm,
    Privacy,
    Randomness,
    WithMemory,
)
from uldp.schemas.arrays import Counts, Mask, Packed, Payloads, Symbols, Values

# A payload of bytes names its part in two bytes.
_MOST_PARTS = 1 << 16
# A symbol takes four bytes in a payload of bytes.
_SYMBOL_WIDTH = 4

_WEAKEST_FIRST = (Privacy.NONE, Privacy.ULDP, Privacy.LDP)

# Sizes and sums of sizes up to this are exact in int64.
_MOST = 1 << 62
# Devices would hardly ever draw a smaller share, and a test could hardly tell its complement from 1.
_LEAST_SHARE = 1e-9


class _Alike(NamedTuple):
    """A mechanism and the numbers of its parts, ascending, which read their payloads together."""

    mechanism: Mechanism
    numbers: Symbols


class Strata(Mechanism):
    """A mechanism that applies one of several mechanisms, its parts; the input symbol selects the part.

    The symbols of part s follow the symbols of the parts before it. A payload names its part openly. Where a part takes
    several symbols and another one takes one, a row repeats the symbol of the latter.

    If all parts send symbols, and their numbers sum to at most 2^31, a payload is a symbol: those of part s follow
    those of the parts before it. Otherwise a payload is bytes: the number of the part (two bytes, little-endian), the
    payload of the part (a symbol is four bytes, little-endian), and zeros up to the width of the widest part.

    The cells of the parts follow each other. A part that does not partition its reports has one cell more, in front of
    its own: the number of its reports.

    Guarantee: that of the weakest part, if the part is drawn independently of all values, as ``RecordEncoding`` does.
    """

    def __init__(
        self,
        parts: Sequence[Mechanism],
        shares: Sequence[float] | None = None,
        noun: str = "attribute",
        names: Sequence[str] = (),
    ) -> None:
        """Build the mechanism of parts, and the probabilities with which devices draw them: equal ones if None.

        ValueError if there is no part, there are more than two bytes can number, the shares are not one number of at
        least 1e-9 for each part, with a sum of 1, the parts have more than 2^62 symbols or cells, or two of them take
        two numbers of symbols above 1.
        """
        if not 1 <= len(parts) <= _MOST_PARTS:
            raise ValueError(f"strata have 1 to {_MOST_PARTS} parts, got {len(parts)}")
        self.parts, self.noun, self.names = tuple(parts), noun, tuple(names)
        shares = [1 / len(parts)] * len(parts) if shares is None else shares
        self.shares = np.array(shares, dtype=np.float64)
        total = self.shares.sum()
        if self.shares.shape != (len(parts),) or not ((self.shares >= _LEAST_SHARE).all() and abs(total - 1) < 1e-9):
            raise ValueError(
                f"{len(parts)} parts need shares of at least {_LEAST_SHARE:g} that sum to 1,"
                f" got {', '.join(map(str, shares))}"
            )
        self.held = max(part.held for part in parts)
        if not {part.held for part in parts} <= {1, self.held}:
            raise ValueError("all parts that take several symbols need the same number of them")
        self.shares /= total
        self._draws_below = np.rint(np.cumsum(self.shares)[:-1] * RESOLUTION).astype(np.int64)
        self.first_symbols, self.size = _offsets(part.size for part in parts)
        self._first_cells, self.statistic_size = _offsets(part.statistic_size + (not part.partitions) for part in parts)
        mechanisms = list({id(part): part for part in parts}.values())
        which = {id(mechanism): index for index, mechanism in enumerate(mechanisms)}
        # Payloads of no part are of no mechanism.
        self._which = np.array([*(which[id(part)] for part in parts), len(mechanisms)])
        rows = _rows_of(self._which, len(mechanisms))
        self._alike = [_Alike(*each) for each in zip(mechanisms, rows, strict=True)]
        self._place = np.empty(len(parts), dtype=np.int64)  # of each part, among those of its mechanism
        for _, numbers in self._alike:
            self._place[numbers] = np.arange(len(numbers))
        self._first_payloads, payloads = _offsets(part.form.symbols or 0 for part in parts)
        symbols = all(part.form.symbols for part in parts) and payloads <= 1 << 31
        width = 2 + max(part.form.width or _SYMBOL_WIDTH for part in parts)
        self.form = PayloadForm(symbols=payloads) if symbols else PayloadForm(width=width)
        self.largest_step = max(part.largest_step for part in parts)
        self.few_symbols = any(part.few_symbols for part in parts)
        self.partitions = all(part.partitions for part in parts)
        self.counts_payloads = symbols and all(part.counts_payloads for part in parts)
        self.guarantee = _weakest([part.guarantee for part in parts])

    @property
    def repeat_probability(self) -> float:
        return max(part.repeat_probability for part in self.parts)

    @property
    def largest_probability(self) -> float:
        return max(part.largest_probability for part in self.parts)

    def draw(self, n: int, randomness: Randomness) -> Symbols:
        """Draw the number of a part for each of n devices."""
        return np.searchsorted(self._draws_below, randomness.integers(0, RESOLUTION, n), side="right")

    def perturb(self, symbols: Values, randomness: Randomness) -> Payloads:
        return self._of_parts(symbols, lambda part, own: part.perturb(own, randomness))

    def _of_parts(self, symbols: Values, respond: Callable[[Mechanism, Values], Payloads]) -> Payloads:
        """Return the payload that the part of each symbol gives for it."""
        self.check_symbols(symbols)
        n = len(symbols)
        drawn = self.parts_of(symbols)
        payloads = np.zeros(n, np.uint32) if self.form.width is None else np.zeros((n, self.form.width), np.uint8)
        for number, part in enumerate(self.parts):
            rows = np.flatnonzero(drawn == number)
            own = symbols[rows] - self.first_symbols[number]
            payloads[rows] = self._wrap(number, respond(part, own[:, 0] if part.held < self.held else own))
        return payloads

    def device_form(self) -> DeviceForm:
        return {
            "form": "strata",
            "draw": self._draws_below.tolist(),
            "mechanisms": [mechanism.device_form() for mechanism, _ in self._alike],
            "which": self._which[:-1].tolist(),
            "first": None if self.form.symbols is None else self._first_payloads.tolist(),
            "width": self.form.width,
        }

    def parts_of(self, symbols: Values) -> Symbols:
        """Return the number of the part of each symbol, or of the symbols that a device holds together; shape (n,)."""
        return np.searchsorted(self.first_symbols, symbols if symbols.ndim == 1 else symbols[:, 0], side="right") - 1

    def possible(self, payloads: Payloads) -> Mask:
        return self.inspect(payloads)[0]

    def inspect(self, payloads: Payloads) -> tuple[Mask, Mask]:
        possible, improbable = np.zeros((2, len(payloads)), dtype=np.bool_)
        if self.counts_payloads:
            return payloads < self.statistic_size, improbable
        named = self.part_numbers(payloads)
        for (mechanism, _), rows in self._split(named):
            possible[rows], improbable[rows] = mechanism.inspect(self._own(mechanism, payloads[rows], named[rows]))
            if self.form.width is not None:
                end = 2 + (mechanism.form.width or _SYMBOL_WIDTH)
                possible[rows] &= ~cast(Packed, payloads)[rows, end:].any(axis=1)
        known = named < len(self.parts)
        return possible & known, improbable & known

    def describe(self, payload: int | bytes) -> str:
        column: Payloads = (
            np.array([payload], np.uint32) if isinstance(payload, int) else np.frombuffer(payload, np.uint8)[np.newaxis]
        )
        number, own = next((number, own) for number, rows, own in self.split_payloads(column) if len(rows))
        part = int(own[0]) if own.ndim == 1 else own[0].tobytes()
        return f"{self.name_of(number)}: {self.parts[number].describe(part)}"

    def name_of(self, number: int) -> str:
        """Return what a part is called: its number from 0, and its name."""
        name = f", {self.names[number]}" if self.names else ""
        return f"{self.noun} {number} of {len(self.parts)}{name}"

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        payloads = parts[0] if len(parts) == 1 else cast(Payloads, np.concatenate(parts))
        if self.counts_payloads:
            return count_symbols(cast(Symbols, payloads), groups, k, self.statistic_size)
        named = self.part_numbers(payloads)
        rows_of_groups: list[list[Cells]] = [[np.zeros(0, np.int64)] * len(self.parts) for _ in range(k)]
        for (mechanism, numbers), rows in self._split(named):
            own = self._own(mechanism, payloads[rows], named[rows])
            joint = groups[rows] * len(numbers) + self._place[named[rows]]
            cells = mechanism.tally([own], joint, k * len(numbers))
            if not mechanism.partitions:
                reports = np.bincount(joint, minlength=k * len(numbers)).astype(np.int64)[:, np.newaxis]
                cells = [stack_cells(each) for each in zip(reports, cells, strict=True)]
            for at, of_part in enumerate(cells):
                rows_of_groups[at // len(numbers)][numbers[at % len(numbers)]] = of_part
        return [stack_cells(of_group) for of_group in rows_of_groups]

    def split_cells(self, cells: Counts) -> list[tuple[Counts, int]]:
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
        named = self.part_numbers(payloads)
        for number, (part, rows) in enumerate(zip(self.parts, _rows_of(named, len(self.parts)), strict=True)):
            yield number, rows, self._own(part, payloads[rows], named[rows])

    def part_numbers(self, payloads: Payloads) -> Symbols:
        """Return the number of the part of each payload, shape (n,); that of an impossible one may be of no part."""
        if self.form.width is not None:
            return _bytes_of(cast(Packed, payloads), 0, 2).view("<u2")[:, 0]
        if self._part_of is None:
            return np.searchsorted(self._first_payloads, payloads, side="right") - 1
        return self._part_of[np.minimum(payloads, len(self._part_of) - 1)]

    @cached_property
    def _part_of(self) -> Symbols | None:
        """Shape (symbols,): the number of the part that sends each symbol; None if that takes too much memory."""
        if self.form.symbols is None or self.form.symbols > MOST_CELLS:
            return None
        sizes = np.diff(self._first_payloads, append=self.form.symbols)
        return np.repeat(np.arange(len(self.parts), dtype=np.uint16), sizes)

    def _split(self, named: Symbols) -> Iterator[tuple[_Alike, Symbols | slice]]:
        """Yield each mechanism with its parts, and the rows of their payloads, of which ``named`` has the parts."""
        if len(self._alike) == 1:
            yield self._alike[0], slice(None)  # which copies nothing; a payload of no part is among them
            return
        which = self._which[np.minimum(named.astype(np.int64), len(self.parts))]
        yield from zip(self._alike, _rows_of(which, len(self._alike)), strict=True)

    def _own(self, mechanism: Mechanism, payloads: Payloads, named: Symbols) -> Payloads:
        """Return payloads of parts of one mechanism as these have sent them; ``named`` has their parts, shape (n,)."""
        if self.form.width is None:
            return payloads - self._first_payloads[named].astype(np.uint32)
        own = _bytes_of(cast(Packed, payloads), 2, 2 + (mechanism.form.width or _SYMBOL_WIDTH))
        return own if mechanism.form.symbols is None else own.view("<u4")[:, 0].astype(np.uint32)


class MemoizedStrata(WithMemory, Strata):
    """Strata of parts that all have a permanent response.

    Guarantee: as long as a device keeps its part, all reports of one record have the lasting budget of this part,
    whatever the values of the other parts are.
    """

    def permanent(self, symbols: Values, randomness: Randomness) -> Payloads:
        return self._of_parts(symbols, lambda part, own: cast(WithMemory, part).permanent(own, randomness))

    def again(self, permanent: Payloads, randomness: Randomness) -> Payloads:
        """See the base class; a payload names its part in any case."""
        payloads = permanent.copy()
        for number, rows, own in self.split_payloads(permanent):
            payloads[rows] = self._wrap(number, cast(WithMemory, self.parts[number]).again(own, randomness))
        return payloads


def strata_of(
    parts: Sequence[Mechanism],
    shares: Sequence[float] | None = None,
    noun: str = "attribute",
    names: Sequence[str] = (),
) -> Strata:
    """Return the strata of these parts, which all keep a permanent response, or none of them; see ``Strata``."""
    return (MemoizedStrata if all(part.memory for part in parts) else Strata)(parts, shares, noun, names)


def _offsets(sizes: Iterable[int]) -> tuple[Symbols, int]:
    """Return the sum of the sizes before each size, shape (S,), and the sum of all; ValueError above 2^62."""
    ends = list(accumulate(sizes, initial=0))
    if ends[-1] > _MOST:
        raise ValueError(f"the parts have {ends[-1]:,} symbols or cells together, and 2^62 is the most")
    return np.array(ends[:-1], dtype=np.int64), ends[-1]


def _rows_of(numbers: Symbols, count: int) -> Iterator[Symbols]:
    """Yield the rows of each number below ``count``, which is at most 2^16, ascending."""
    numbers = numbers.astype(np.uint16)  # of which sorting takes one pass
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=count)[:count])
    yield from np.split(order, ends)[:count]


def _bytes_of(rows: Packed, first: int, end: int) -> Packed:
    """Copy the bytes from ``first`` until ``end`` of each row: as items of records, which NumPy copies whole."""
    record = {"names": ["own"], "formats": [f"V{end - first}"], "offsets": [first], "itemsize": rows.shape[1]}
    items = np.ascontiguousarray(rows).view(np.dtype(cast(Any, record)))["own"]
    return np.asarray(items.copy().view(np.uint8).reshape(len(rows), end - first))


def _weakest(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Return a promise that each of these keeps."""
    if len(set(guarantees)) == 1:
        return guarantees[0]
    privacy = min((guarantee.privacy for guarantee in guarantees), key=_WEAKEST_FIRST.index)
    budgets = [guarantee.epsilon for guarantee in guarantees if guarantee.epsilon is not None]
    lasting = [guarantee.lasting for guarantee in guarantees if guarantee.lasting is not None]
    epsilon = None if privacy is Privacy.NONE else max(budgets)
    return Guarantee(privacy, epsilon, max(lasting) if len(lasting) == len(guarantees) else None)
