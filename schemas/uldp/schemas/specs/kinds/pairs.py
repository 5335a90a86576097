"""The kind of domain that is a few keys of a list, each with a number: how long each app was used."""

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, cast

import numpy as np

from uldp.schemas.arrays import Floats
from uldp.schemas.specs.kinds.kind import Column, Value
from uldp.schemas.specs.kinds.number import Ended, read_number
from uldp.schemas.specs.kinds.sets import Sets
from uldp.schemas.specs.kinds.string_sets import SEPARATOR
from uldp.schemas.specs.mistakes import quote

#: Stands between a key and its number in a table.
EQUALS = "="


class Pairs(Ended, Sets):
    """Pairs of different keys and a number of a range for each, of which a device reports up to ``at_most``.

    Attributes:
        of: The keys.
        at_most: How many pairs a device reports: of more as many, chosen uniformly at random.
        low: The lower end of the range of the numbers.
        high: The upper end.
    """

    name: ClassVar = "pairs"
    form: ClassVar = "{of: {labels: [cat, dog]}, at_most: 2, low: 0, high: 10}"
    holds: ClassVar = "keys with numbers"
    one: ClassVar = "key"
    unit: ClassVar = "keys"
    compared: ClassVar = "keys, or ranges of numbers,"
    heading: ClassVar = "Keys"
    columns: ClassVar = ("pairs",)
    alone: ClassVar = ("key", "value", "share")
    separators: ClassVar = (SEPARATOR, EQUALS)
    withheld: ClassVar = "a mean is withheld where the share of its key is not significant"

    @property
    def symbols(self) -> int:
        return 2 * self.values.size

    @property
    def text(self) -> str:
        numbers = f"with a number from {self.low:g} to {self.high:g} each"
        return f"{self.values.size:,} keys {numbers}, of which a device reports up to {self.at_most:,}"

    @property
    def extent(self) -> str:
        return f"{self.values.size:,}, up to {self.at_most:,} of them, with {self.low:g} to {self.high:g} each"

    def read(self, text: str) -> tuple[Value, ...]:
        pairs = [self._pair(pair) for pair in text.split(SEPARATOR)] if text else []
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError(f"{quote(text)} has a key twice; remove one")
        return tuple(sorted(pairs))

    def _pair(self, text: str) -> tuple[int, float]:
        key, equals, number = text.partition(EQUALS)
        if not equals:
            raise ValueError(f"{quote(text)} is no pair; write KEY{EQUALS}NUMBER, with {SEPARATOR} between pairs")
        return self._items.read(key), read_number(number, self.low, self.high)

    def check(self, value: object, attribute: str) -> tuple[Value, ...]:
        """See ``Kind``. A mapping of indices of keys to numbers; one outside of the range becomes its nearest end."""
        if not isinstance(value, Mapping):
            raise TypeError(f"the value is a {type(value).__name__}, not a mapping of keys to numbers")
        super().check(list(value), attribute)
        for number in value.values():
            if not isinstance(number, Real):  # NumPy would name text that it cannot convert
                raise TypeError(f"the number of a key is a {type(number).__name__}, not a number")
        return tuple(sorted((self._items.check(key, attribute), float(number)) for key, number in value.items()))

    def examples(self, size: int, candidates: Sequence[str]) -> list[object]:
        places, width = (0.0, 1.0, 0.3, 1.5, -0.5), self.high - self.low
        keys = cast(list[tuple[int, ...]], super().examples(size, candidates))
        return [{key: self.low + places[key % 5] * width for key in each} for each in keys]

    def column(self, values: Sequence[Value]) -> Floats:
        """Return the pairs as rows, shape (n, the most of any, 2), with the key -1 behind them; see ``Kind``."""
        rows = [cast(tuple[tuple[int, float], ...], each) for each in values]
        pairs = np.zeros((len(rows), max(map(len, rows), default=0), 2))
        pairs[:, :, 0] = -1
        for row, each in zip(pairs, rows, strict=True):
            row[: len(each)] = np.array(each).reshape(-1, 2)
        return pairs

    def facts(self) -> Iterator[tuple[str, Any]]:
        yield from super().facts()
        yield from ((f"{self.name}.{end}", value) for end, value in (("low", self.low), ("high", self.high)))

    def shares(self, column: Column, weights: Floats, candidates: Sequence[str]) -> Floats:
        return super().shares(cast(Floats, column)[:, :, 0], weights, candidates)

    @property
    def quantities(self) -> tuple[object, ...]:
        return *super().quantities, self.low, self.high
