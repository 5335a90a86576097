"""The kind of domain that is the sets of up to a few items, of a list or of strings that nobody lists."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import Field, PrivateAttr, model_validator

from uldp.schemas.arrays import Floats
from uldp.schemas.specs.kinds.kind import Column, Kind, Value, list_labels
from uldp.schemas.specs.kinds.string_sets import SEPARATOR, StringSets, rows_of
from uldp.schemas.specs.kinds.strings import Strings
from uldp.schemas.specs.kinds.values import ListedValues
from uldp.schemas.specs.mistakes import prefixed, quote
from uldp.schemas.specs.specfile import SpecFolder
from uldp.schemas.specs.strict import Strict
from uldp.schemas.specs.values import Values, read_values, refuse_repeated

#: The most items of a set that a device reports.
MOST_HELD = 256


class Items(Strict):
    """The items of sets: ``size`` of them, one for each of ``labels``, or strings that nobody lists."""

    size: int | None = Field(default=None, ge=2, le=1 << 24)
    labels: list[str] | None = Field(default=None, min_length=2)
    labels_file: str | None = None
    strings: Strings | None = None

    @model_validator(mode="after")
    def _one_form(self) -> "Items":
        forms = ("size", "labels", "labels_file", "strings")
        given = [name for name in forms if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of {', '.join(forms)} (given: {', '.join(given) or 'none'})")
        refuse_repeated(self.labels or [])
        return self


class Sets(Strict, Kind):
    """Sets of different items, of which a device reports up to ``at_most``.

    Attributes:
        of: The items.
        at_most: How many items of a set a device reports: of a larger set as many, chosen uniformly at random.
        separators: What stands between the parts of a set in a table, so that no label has it.
    """

    name: ClassVar = "set"
    form: ClassVar = "{of: {labels: [cat, dog]}, at_most: 2}"
    holds: ClassVar = "sets of items"
    one: ClassVar = "set"
    unit: ClassVar = "items"
    percent: ClassVar = "% of users, who may hold several,"
    in_records: ClassVar = False
    heading: ClassVar = "Sets"
    compared: ClassVar = "items"
    columns: ClassVar[tuple[str, ...]] = ("items",)
    alone: ClassVar[tuple[str, ...]] = ("item", "share")
    separators: ClassVar[tuple[str, ...]] = (SEPARATOR,)

    of: Items
    at_most: int = Field(ge=1, le=MOST_HELD)

    _items: ListedValues = PrivateAttr()

    @model_validator(mode="after")
    def _lists_its_items(self) -> "Sets":
        if self.of.strings is not None and self.name != Sets.name:
            raise ValueError(f"of: {self.holds} are of a list; give size, labels or labels_file in place of strings")
        return self

    @property
    def located_name(self) -> str:
        return self.name if self.of.strings is None else StringSets.name

    def located(self, folder: SpecFolder) -> Kind:
        with prefixed(f"{self.name}.of."):
            if self.of.strings is not None:
                return StringSets(strings=self.of.strings.located(folder), at_most=self.at_most)
            values = read_values(self.of.size, self.of.labels, self.of.labels_file, folder)
        if self.at_most > values.size:
            raise ValueError(
                f"{self.name}.at_most: there are {values.size:,} different {self.unit}, got {self.at_most:,}; write"
                f" {min(values.size, MOST_HELD):,} or fewer"
            )
        for label in values.names or ():
            if not label or any(each in label for each in self.separators):
                between = " or ".join(map(quote, self.separators))
                raise ValueError(
                    f"{self.name}.of: the label {quote(label)} is empty or has {between}, which stands between"
                    f" {self.unit} in files; write it in another way"
                )
        located = self.model_copy()
        located._items = ListedValues(values)
        return located

    @property
    def values(self) -> Values:
        return self._items.values

    @property
    def held(self) -> int:
        return self.at_most

    @property
    def symbols(self) -> int:
        """How many symbols stand for what a device holds, without the dummies: one for each item."""
        return self.values.size

    @property
    def text(self) -> str:
        return f"sets of {self.values.size:,} items, of which a device reports up to {self.at_most:,}"

    @property
    def extent(self) -> str:
        return f"of {self.values.size:,} items, up to {self.at_most:,} of them"

    def read(self, text: str) -> tuple[Value, ...]:
        items = [self._items.read(item) for item in text.split(SEPARATOR)] if text else []
        if len(set(items)) < len(items):
            raise ValueError(f"{quote(text)} has an item twice; remove one")
        return tuple(sorted(items))

    def check(self, value: object, attribute: str) -> tuple[Value, ...]:
        """See ``Kind``. A set of Python, a list or a tuple of different indices; the order says nothing."""
        if not isinstance(value, set | frozenset | list | tuple):
            raise TypeError(f"the value is a {type(value).__name__}, not a set, a list or a tuple of items")
        try:
            items = [self._items.check(item, attribute) for item in value]
        except TypeError as error:
            raise TypeError(str(error).replace("the value is a", "an item is a", 1)) from None
        except ValueError:
            raise ValueError(f"an item is outside of the domain 0 to {self.values.size - 1}") from None
        if len(set(items)) < len(items):
            raise ValueError("the value has an item twice")
        return tuple(sorted(items))

    def examples(self, size: int, candidates: Sequence[str]) -> list[object]:
        last = size - 1
        return [(), (0, last), tuple(range(self.held)), tuple(range(size)), (last // 2,)]

    def column(self, values: Sequence[Value]) -> Column:
        """Return the sets as rows, shape (n, the most items of any), with -1 behind their items; see ``Kind``."""
        return rows_of(values, -1, np.int64)

    def facts(self) -> Iterator[tuple[str, Any]]:
        yield from ((f"{self.name}.of.{key}", value) for key, value in self._items.facts())
        yield f"{self.name}.at_most", self.at_most

    def without_files(self, domain: dict[str, Any]) -> None:
        list_labels(domain[self.name]["of"], self.values)

    def entries(self, size: int, *, whole: bool) -> Sequence[str] | None:
        return None if whole else self._items.entries(size, whole=whole)

    def shares(self, column: Column, weights: Floats, candidates: Sequence[str]) -> Floats:
        there = column >= 0
        of_rows = np.broadcast_to(weights[:, np.newaxis], column.shape)
        shares = np.bincount(column[there].astype(np.int64), of_rows[there], minlength=self.values.size)
        return np.asarray(shares, dtype=np.float64)

    @property
    def quantities(self) -> tuple[object, ...]:
        return self.name, *self._items.quantities
