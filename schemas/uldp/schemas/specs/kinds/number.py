"""The kind of domain that is a number of a range."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import Annotated, Any, ClassVar, Self, cast

import numpy as np
from pydantic import Field, StringConstraints, ValidationError, model_validator

from uldp.schemas.arrays import Floats
from uldp.schemas.specs.kinds.kind import End, Kind, Range, Value
from uldp.schemas.specs.mistakes import quote
from uldp.schemas.specs.strict import Strict
from uldp.schemas.specs.values import refuse_repeated

# An end of a range is the edge of a bin if it is within this part of a bin of it: specs write decimals.
_EDGE = 1e-6


class Ended(Strict):
    """The two ends of a range of numbers."""

    low: float = Field(allow_inf_nan=False)
    high: float = Field(allow_inf_nan=False)

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        check_ends(self.low, self.high)
        return self


class Number(Ended, Kind):
    """The range of a number, with both ends."""

    name: ClassVar = "number"
    form: ClassVar = "{low: 0, high: 10}"
    holds: ClassVar = "a number"
    one: ClassVar = "number"
    unit: ClassVar = "bins"
    ordered: ClassVar = True
    heading: ClassVar = "Range"
    compared: ClassVar = "ranges of numbers"

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def text(self) -> str:
        return f"a number from {self.low:g} to {self.high:g}"

    @property
    def extent(self) -> str:
        return f"{self.low:g} to {self.high:g}"

    def read(self, text: str) -> float:
        return read_number(text, self.low, self.high)

    def check(self, value: object, attribute: str) -> float:
        """See ``Kind``. A number outside of the range becomes its nearest end, so it is none of the errors."""
        if not isinstance(value, Real):  # NumPy would name text that it cannot convert
            raise TypeError(f"the value is a {type(value).__name__}, not a number")
        return cast(float, value)

    def examples(self, size: int, candidates: Sequence[str]) -> list[object]:
        return [self.low + part * (self.high - self.low) for part in (0, 1, 0.3, 0.5, 2, -1)]

    def column(self, values: Sequence[Value]) -> Floats:
        return np.array(values, dtype=np.float64)

    def facts(self) -> Iterator[tuple[str, Any]]:
        yield from ((f"number.{key}", value) for key, value in self.model_dump().items())

    def entries(self, size: int, *, whole: bool) -> Sequence[str] | None:
        if not whole:
            return None
        edges = np.linspace(self.low, self.high, size + 1)
        return [f"{low:.6g} to {high:.6g}" for low, high in pairwise(edges)]

    def edge(self, position: float, bins: int) -> float:
        """Return the number at a position among so many bins."""
        return self.low + (self.high - self.low) * (position / bins)

    def bin_text(self, position: float, bins: int) -> str:
        return f"{self.edge(position, bins):.6g}"

    def range(self, low: End, high: End, bins: int) -> Range:
        first, end = (self._position(number, bins) for number in (low, high))
        if not first < end:
            raise ValueError(f"a range goes from a lower to a higher number, got {quote(low)} and {quote(high)}")
        return Range(first, end, f"{self.bin_text(first, bins)} to {self.bin_text(end, bins)}")

    def _position(self, number: End, bins: int) -> int:
        """Return the bin that begins at a number."""
        inside = self.read(number if isinstance(number, str) else repr(number))
        position = (inside - self.low) / (self.high - self.low) * bins
        nearest = round(position)
        if abs(position - nearest) > _EDGE:
            raise ValueError(
                f"{quote(number)} is inside of a bin; the nearest edge of the {bins:,} bins is"
                f" {self.edge(nearest, bins):.16g}"
            )
        return nearest


def check_ends(low: float, high: float) -> None:
    """Raise ValueError unless two finite numbers are the ends of a range."""
    if not low < high:
        raise ValueError(f"low must be less than high, got {low:g} and {high:g}")
    if math.isinf(high - low):
        raise ValueError(f"the range from {low:g} to {high:g} is too wide; use another unit")


def read_number(text: str, low: float, high: float) -> float:
    """Return a number of a range that is given as text; ValueError if it is none."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{quote(text)} is not a number") from None
    if not low <= number <= high:
        raise ValueError(f"{quote(text)} is outside of the range {low:g} to {high:g}")
    return number


#: The mechanism of a record, which draws an attribute.
_OF_RECORD = "sample-one"


class Numbers(Strict):
    """Numbers that all have one range.

    Attributes:
        names: The name of each.
        low: The lower end of the range.
        high: The upper end.
    """

    names: list[Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]{1,64}$")]] = Field(min_length=1)
    low: float = Field(allow_inf_nan=False)
    high: float = Field(allow_inf_nan=False)

    @model_validator(mode="after")
    def _is_a_range(self) -> "Numbers":
        check_ends(self.low, self.high)
        refuse_repeated(self.names)
        return self


def as_record(keys: Any) -> Any:
    """Return the keys of a spec with a record in place of ``domain.numbers``; wrong keys stay, for the error."""
    domain, mechanism = (keys.get(key) if isinstance(keys, dict) else None for key in ("domain", "mechanism"))
    if not isinstance(domain, dict) or "numbers" not in domain or "record" in domain:
        return keys
    try:
        numbers = Numbers.model_validate(domain["numbers"])
    except ValidationError:
        return keys
    others = {key: value for key, value in domain.items() if key != "numbers"}
    record = {name: {"number": {"low": numbers.low, "high": numbers.high}} for name in numbers.names}
    keys = keys | {"domain": others | {"record": record}}
    if isinstance(mechanism, dict) and mechanism.get("name") != _OF_RECORD:
        keys["mechanism"] = _of_each(mechanism, numbers.names)
    return keys


def _of_each(mechanism: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Return the mechanism of a record whose attributes all have this one."""
    budgets = {key: mechanism[key] for key in ("epsilon", "lasting_epsilon") if key in mechanism}
    own = {key: value for key, value in mechanism.items() if key not in budgets}
    return {"name": _OF_RECORD, **budgets, "of": dict.fromkeys(names, own)}
