"""The kind of domain that is the sets of up to a few strings, of which nobody has a list."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Floats, Texts
from uldp.schemas.specs.candidates import read_candidates
from uldp.schemas.specs.kinds.kind import Column, Kind, Value
from uldp.schemas.specs.kinds.strings import Strings
from uldp.schemas.specs.mistakes import quote
from uldp.schemas.specs.specfile import SpecFolder
from uldp.schemas.specs.strict import Strict

#: Stands between the strings of a set in a table.
SEPARATOR = ";"


class StringSets(Strict, Kind):
    """Sets of different strings, of which a device reports up to ``at_most``: of a larger set as many, at random.

    A spec writes them as a ``set`` whose items are ``strings``.
    """

    name: ClassVar = "string-set"
    holds: ClassVar = "sets of strings"
    one: ClassVar = "set"
    unit: ClassVar = "candidates"
    percent: ClassVar = "% of users, who may hold several,"
    has_law: ClassVar = False
    takes_candidates: ClassVar = True
    heading: ClassVar = "Sets"
    compared: ClassVar = "values"
    columns: ClassVar = ("items",)
    alone: ClassVar = ("item", "share")

    strings: Strings
    at_most: int

    @property
    def held(self) -> int:
        return self.at_most

    @property
    def text(self) -> str:
        return f"sets of {self.strings.text}, of which a device reports up to {self.at_most:,}"

    @property
    def extent(self) -> str:
        return f"of strings of up to {self.strings.longest:,} bytes, up to {self.at_most:,} of them"

    def read(self, text: str) -> tuple[Value, ...]:
        strings = [self.strings.read(each) for each in text.split(SEPARATOR)] if text else []
        if "" in strings:
            raise ValueError(f"{quote(text)} has an empty string; remove it")
        if len(set(strings)) < len(strings):
            raise ValueError(f"{quote(text)} has a string twice; remove one")
        return tuple(sorted(strings))

    def check(self, value: object, attribute: str) -> tuple[Value, ...]:
        """See ``Kind``. A set of Python, a list or a tuple of different strings; the order says nothing."""
        if not isinstance(value, set | frozenset | list | tuple):
            raise TypeError(f"the value is a {type(value).__name__}, not a set, a list or a tuple of strings")
        for each in value:
            if not isinstance(each, str):
                raise TypeError(f"an item is a {type(each).__name__}, not a string")
        if len(set(value)) < len(value):
            raise ValueError("the value has an item twice")
        return tuple(sorted(value))

    def examples(self, size: int, candidates: Sequence[str]) -> list[object]:
        texts = [*candidates] or ["", "a"]
        return [(), tuple(texts), tuple(texts[: self.held]), (texts[-1],)]

    def column(self, values: Sequence[Value]) -> Texts:
        """Return the sets as rows, shape (n, the most strings of any), with None behind their strings; see ``Kind``."""
        return rows_of(values, None, np.object_)

    def facts(self) -> Iterator[tuple[str, Any]]:
        yield from ((f"set.of.{key}", value) for key, value in self.strings.facts())
        yield "set.at_most", self.at_most

    def without_files(self, domain: dict[str, Any]) -> None:
        self.strings.without_files(domain["set"]["of"])

    def shares(self, column: Column, weights: Floats, candidates: Sequence[str]) -> Floats:
        return np.array([weights[(column == candidate).any(axis=1)].sum() for candidate in candidates])

    def candidates(
        self, listed: Sequence[str] | None, file: str | None, most: int, folder: SpecFolder
    ) -> Sequence[str]:
        return read_candidates(listed, file, self.strings.read, most, folder)


def rows_of(sets: Sequence[Value], nothing: int | None, kind: type[np.generic]) -> npt.NDArray[Any]:
    """Return tuples as rows of a kind of array, shape (n, the longest), with ``nothing`` behind the shorter ones."""
    tuples = [each if isinstance(each, tuple) else (each,) for each in sets]
    rows = np.full((len(tuples), max(map(len, tuples), default=0)), nothing, dtype=kind)
    for row, each in zip(rows, tuples, strict=True):
        row[: len(each)] = each
    return rows
