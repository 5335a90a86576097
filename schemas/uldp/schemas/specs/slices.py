"""Public attributes of a report: each combination of their values is a slice, with tables of its own."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Annotated

from pydantic import Field

from uldp.schemas.specs.domains import AttributeName
from uldp.schemas.specs.mistakes import near, notes, prefixed, quote
from uldp.schemas.specs.values import refuse_repeated

#: The most slices of a collection.
MAX_SLICES = 4096
#: What stands between a public attribute and its value in the name of a part of a slice, as ``os=ios``.
EQUALS = "="

PublicValue = Annotated[
    str,
    Field(
        pattern=r"^[^\x00-\x1f\x7f=,;]{1,64}$",
        description="1 to 64 characters, but none of = , ; in quotes if they look like a number",
    ),
]
#: The values of each public attribute, as a spec lists them.
By = dict[AttributeName, Annotated[list[PublicValue], Field(min_length=2)]]


@dataclass(frozen=True)
class Slices:
    """The slices of a collection, numbered with the last public attribute as the fastest."""

    values: Mapping[str, Sequence[str]]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each public attribute."""
        return tuple(map(len, self.values.values()))

    def __len__(self) -> int:
        return math.prod(self.sizes)

    @cached_property
    def names(self) -> Sequence[tuple[str, ...]]:
        """Of each slice, its values, as ``("os=ios", "version=1.0")``."""
        parts = [[f"{name}{EQUALS}{value}" for value in values] for name, values in self.values.items()]
        return list(product(*parts))

    def positions(self, given: object) -> list[int]:
        """Return the position of each public attribute's value; TypeError or ValueError, which may name it."""
        names = list(self.values)
        if not isinstance(given, Mapping):
            raise TypeError(f"by is a {type(given).__name__}, not a mapping with {names}")
        if given.keys() != self.values.keys():
            raise ValueError(f"by needs a value for each of {names}, and for no other")
        return [self.position(name, given[name]) for name in names]

    def position(self, name: str, value: object) -> int:
        """Return the position of a value of a public attribute; ValueError if there is no such value."""
        values = self.values[name]
        if not isinstance(value, str) or value not in values:
            hint = notes(near(value, values)) if isinstance(value, str) else ""
            raise ValueError(f"by.{name} has no value {quote(value)}{hint}")
        return values.index(value)

    def of(self, given: Mapping[str, str]) -> Iterator[int]:
        """Yield the numbers of all slices that have these values; ValueError if there is no such value."""
        for name, value in given.items():
            if name not in self.values:
                raise ValueError(f"{quote(name)} is no public attribute; by has {', '.join(self.values)}")
            self.position(name, value)
        wanted = {f"{name}{EQUALS}{value}" for name, value in given.items()}
        return (number for number, names in enumerate(self.names) if wanted <= set(names))


def check_by(by: By, attributes: Sequence[str]) -> None:
    """Raise ValueError if the public attributes of a spec are none: the message begins with the key."""
    for name, values in by.items():
        if name in attributes:
            raise ValueError(f"by.{name}: an attribute of the record has this name; devices protect it, so rename this")
        with prefixed(f"by.{name}: "):
            refuse_repeated(values)
    if (slices := len(Slices(by))) > MAX_SLICES:
        raise ValueError(f"by: {slices:,} slices, and {MAX_SLICES:,} is the most; merge values")


def attributes_of(of: Sequence[str]) -> tuple[str, ...]:
    """Return what a table is about within its slice: attributes of a record, or a level.

    >>> attributes_of(("hours", "os=ios"))
    ('hours',)
    """
    return tuple(part for part in of if EQUALS not in part)


def slice_of(of: Sequence[str]) -> tuple[str, ...]:
    """Return the slice that a table is about; () if it is about all slices.

    >>> slice_of(("hours", "os=ios", "version=1.0"))
    ('os=ios', 'version=1.0')
    """
    return tuple(part for part in of if EQUALS in part)


def slice_text(of: Sequence[str]) -> str:
    """Write the slice that a table is about; empty if it is about all slices."""
    return ", ".join(slice_of(of))
