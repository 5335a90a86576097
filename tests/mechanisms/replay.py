"""All draws of a device, replayed: the exact law of a payload, from the code that sends it.

A device compares the numbers that it draws with others, or takes them as they are. So each draw is one of a few pieces
of its range, between the numbers with which it is compared, or one of a few numbers. A first report notes which.
Then one call of ``perturb`` makes a report for each choice of pieces, and their lengths are the probability.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.kernels.hashing import SEEDS as HASHES
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.schemas.arrays import Payloads, Values

#: A float is a multiple of one over this.
FLOATS = 1 << 53
#: A draw from so many numbers or fewer is each of them.
FEW = 64
#: Of the seeds of hashes some stand for all: a report names its seed, which is drawn in the same way for all symbols.
SEEDS = 12
# Mechanisms draw for so many reports at once.
_AT_ONCE = 2048

Size = int | tuple[int, ...]
Law = Mapping[bytes, Fraction]
Perturb = Callable[[Values, Randomness], Payloads]


class Noting(np.ndarray[Any, Any]):
    """Numbers that note what they are compared with."""

    cuts: set[Fraction]

    def __array_finalize__(self, other: Any) -> None:
        self.cuts = getattr(other, "cuts", set())

    @classmethod
    def of(cls, drawn: npt.NDArray[Any], cuts: set[Fraction]) -> Self:
        noting = drawn.view(cls)
        noting.cuts = cuts
        return noting

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **options: Any) -> Any:
        if ufunc in {np.less, np.greater_equal}:
            assert isinstance(inputs[0], Noting), "the number that is drawn is the first one"
            self.cuts.update(map(Fraction, np.unique(inputs[1]).tolist()))
        return getattr(ufunc, method)(*(np.asarray(each) for each in inputs), **options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function is np.searchsorted:
            assert options == {"side": "right"}
            self.cuts.update(map(Fraction, np.unique(arguments[0]).tolist()))
        return super().__array_function__(function, types, arguments, options)


@dataclass
class Draw:
    """One call for random numbers, for each report.

    Attributes:
        low: The least number, or of floats 0.
        high: The number after the largest, or of floats ``FLOATS``.
        floats: Whether they are floats, of which a number is a multiple.
        numbers: How many are drawn for a report.
        cuts: What they are compared with.
    """

    low: int
    high: int
    floats: bool
    numbers: int
    cuts: set[Fraction] = field(default_factory=set)

    @property
    def pieces(self) -> list[tuple[int, int]]:
        """The pieces of the range: their least number, and the one after their largest."""
        if self.high - self.low <= FEW:
            return [(number, number + 1) for number in range(self.low, self.high)]
        if not self.cuts:
            assert self.high - self.low == HASHES, "a device takes all these numbers as they are"
            return [(self.low + number, self.low + number + 1) for number in range(SEEDS)]
        scale = FLOATS if self.floats else 1
        cuts = {min(max(math.ceil(cut * scale), self.low), self.high) for cut in self.cuts} | {self.low, self.high}
        ends = sorted(cuts)
        return list(itertools.pairwise(ends))


class Noted:
    """Randomness for one report of each of some symbols, that notes what is drawn, and what it is compared with."""

    def __init__(self) -> None:
        self.draws: list[Draw] = []

    def random(self, size: Size) -> Any:
        """Give zeros."""
        return self._draw(Draw(0, FLOATS, floats=True, numbers=_numbers(size)), np.zeros(size))

    def integers(self, low: int, high: int, size: Size) -> Any:
        """Give the least integers."""
        return self._draw(Draw(low, high, floats=False, numbers=_numbers(size)), np.full(size, low))

    def _draw(self, draw: Draw, drawn: npt.NDArray[Any]) -> Noting:
        if len(drawn):  # no draw is for the attributes of a record that are not asked
            self.draws.append(draw)
        return Noting.of(drawn, draw.cuts)


class Replayed:
    """Randomness that gives one number of a piece for each draw of each report."""

    def __init__(self, draws: list[Draw], numbers: list[npt.NDArray[np.int64]]) -> None:
        self._draws, self._numbers = iter(draws), iter(numbers)

    def random(self, size: Size) -> npt.NDArray[np.float64]:
        """Give the next floats."""
        return np.ldexp(self._next(0, FLOATS, size).astype(np.float64), -53)

    def integers(self, low: int, high: int, size: Size) -> npt.NDArray[np.int64]:
        """Give the next integers."""
        return self._next(low, high, size)

    def _next(self, low: int, high: int, size: Size) -> npt.NDArray[np.int64]:
        if not (size if isinstance(size, int) else size[0]):
            return np.zeros(size, dtype=np.int64)
        draw = next(self._draws)
        assert (draw.low, draw.high, draw.numbers) == (low, high, _numbers(size))
        return next(self._numbers).reshape(size)


def laws(perturb: Perturb, symbols: list[Any]) -> list[Law]:
    """Return the probability of each payload, by its bytes, under each symbol."""
    draws = _draws(perturb, symbols)
    pieces = [draw.pieces for draw in draws for _ in range(draw.numbers)]
    weights = np.array([1], dtype=object)
    for each in pieces:
        weights = np.multiply.outer(weights, np.array([end - start for start, end in each], dtype=object)).ravel()
    total = sum(weights.tolist())
    found: list[Law] = []
    for symbol in symbols:
        law: dict[bytes, int] = {}
        for payload, weight in zip(_replay(perturb, symbol, draws, pieces), weights.tolist(), strict=True):
            law[payload] = law.get(payload, 0) + weight
        found.append({payload: Fraction(weight, total) for payload, weight in law.items()})
    return found


def _draws(perturb: Perturb, symbols: list[Any]) -> list[Draw]:
    """Return the draws of a report, which are the same for all symbols, with what those of any are compared with."""
    of_symbols = []
    for symbol in symbols:
        noted = Noted()
        perturb(np.array([symbol]), noted)
        of_symbols.append(noted.draws)
    for first, *others in zip(*of_symbols, strict=True):
        for other in others:
            assert (first.low, first.high, first.numbers) == (other.low, other.high, other.numbers)
            first.cuts |= other.cuts
    return of_symbols[0]


def _replay(perturb: Perturb, symbol: Any, draws: list[Draw], pieces: list[list[tuple[int, int]]]) -> list[bytes]:
    """Return the payload for each choice of pieces, which is that of their least and of their largest numbers."""
    shape = [len(each) for each in pieces]
    n = math.prod(shape)
    payloads: list[bytes] = []
    for start in range(0, n, _AT_ONCE):
        number = np.arange(start, min(start + _AT_ONCE, n))
        chosen = np.unravel_index(number, shape) if shape else ()
        of_ends = []
        for largest in (False, True):
            numbers = [
                np.array([end - 1 if largest else low for low, end in each])[choice]
                for each, choice in zip(pieces, chosen, strict=True)
            ]
            columns = iter(numbers)
            of_draws = [np.stack([next(columns) for _ in range(draw.numbers)], axis=1) for draw in draws]
            sent = perturb(np.repeat(np.array([symbol]), len(number), axis=0), Replayed(draws, of_draws))
            of_ends.append([row.tobytes() for row in np.asarray(sent)])
        assert of_ends[0] == of_ends[1]
        payloads += of_ends[0]
    return payloads


def _numbers(size: Size) -> int:
    return 1 if isinstance(size, int) else math.prod(size[1:])
