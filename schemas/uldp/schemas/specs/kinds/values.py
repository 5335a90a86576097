"""The kind of domain that lists its values: by their number, or by their labels."""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from uldp.schemas.arrays import Floats
from uldp.schemas.arrays import Values as Indices
from uldp.schemas.specs.kinds.kind import Column, End, Kind, Range, Value, list_labels
from uldp.schemas.specs.mistakes import quote
from uldp.schemas.specs.values import Values


@dataclass(frozen=True, eq=False)
class ListedValues(Kind):
    """The values of a domain, each of which a device holds by its index."""

    name = "values"
    holds = "several values"
    one = "value"
    unit = "values"
    listed = True
    heading = "Values"
    compared = "values"

    table: Values

    @property
    def values(self) -> Values:
        return self.table

    @property
    def text(self) -> str:
        return f"{self.values.size:,} values"

    @property
    def extent(self) -> str:
        return f"{self.values.size:,}"

    def without_files(self, domain: dict[str, Any]) -> None:
        list_labels(domain, self.values)

    def read(self, text: str) -> int:
        return self.values.read_value(text)

    def check(self, value: object, attribute: str) -> int:
        index = self.index(value, attribute, "the value")
        if not 0 <= index < self.values.size:
            raise ValueError(f"the value is outside of the domain 0 to {self.values.size - 1}")
        return index

    def index(self, value: object, attribute: str, what: str) -> int:
        """Return an index of a value; TypeError, which begins with ``what`` and has no value, if it is none."""
        try:
            return operator.index(cast(int, value))
        except TypeError:
            labelled = f"; spec.variables[{attribute!r}].index(label) gives that of a label"
            raise TypeError(
                f"{what} is a {type(value).__name__}, not an int: its index, 0 to"
                f" {self.values.size - 1}{labelled if self.values.names else ''}"
            ) from None

    def examples(self, size: int, candidates: Sequence[str]) -> list[object]:
        return [0, size - 1, (size - 1) // 2]

    def column(self, values: Sequence[Value]) -> Indices:
        return np.array(values, dtype=np.int64)

    def facts(self) -> Iterator[tuple[str, Any]]:
        labelled = self.values.names is not None
        yield ("labels", self.values.names) if labelled else ("size", self.values.size)

    def entries(self, size: int, *, whole: bool) -> Sequence[str] | None:
        return self.values.names if size == self.values.size else None

    def shares(self, column: Column, weights: Floats, candidates: Sequence[str]) -> Floats:
        shares = np.bincount(cast(Indices, column), weights, minlength=self.values.size)
        return np.asarray(shares, dtype=np.float64)

    @property
    def quantities(self) -> tuple[object, ...]:
        return self.name, self.values.labels

    def bin_text(self, position: float, bins: int) -> str:
        index = min(int(position), self.values.size - 1)
        return str(index) if self.values.names is None else self.values.names[index]

    def range(self, low: End, high: End, bins: int) -> Range:
        first, last = (self.values.read_value(str(value)) for value in (low, high))
        if first > last:
            raise ValueError(f"the values are in the order of the domain, and {quote(low)} comes after {quote(high)}")
        return Range(first, last + 1, f"{self.bin_text(first, bins)} to {self.bin_text(last, bins)}")
