"""What every kind of domain answers, so that nobody else asks which kind a domain is of."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field

from uldp.schemas.arrays import Floats, Texts
from uldp.schemas.arrays import Values as Indices
from uldp.schemas.specs.specfile import SpecFolder
from uldp.schemas.specs.values import Values

#: An end of a range in a spec: a number, or a value by its label or index.
End = int | float | str
#: The ends of a range in a spec.
Ends = Annotated[list[End], Field(min_length=2, max_length=2)]


class Range(NamedTuple):
    """Neighbouring bins."""

    first: int
    end: int  # the bin after the last one
    text: str  # the range in the words of its domain


#: What devices hold of a variable, shape (n,): indices of values, numbers as floats, or strings. Of sets, shape (n, l):
#: indices of items, and -1 for none, or strings, and None; of pairs, shape (n, l, 2): the index of a key, and its
#: number. Of rankings, shape (n, k): the place of each candidate.
Column = Indices | Floats | Texts
#: What one device holds: an index, a number, a string, of a set its strings or the indices of its items, of pairs such
#: an index and a number for each, or of a ranking the places.
Value = int | float | str | tuple["Value", ...]


class Kind(ABC):
    """A domain of some kind.

    Attributes:
        name: The name of the kind, which families give as their ``domain_kind``.
        form: What a spec writes of one, to copy from an error; empty for values.
        holds: What a device holds, in the words of an error.
        one: One of these.
        unit: The entries of a table of shares.
        percent: What a share is, in a heading.
        listed: Whether the domain lists its values: then some may be sensitive, and tags may hide them.
        ordered: Whether the entries of a table of shares have an order of their own.
        in_records: Whether an attribute of a record may be of this kind.
        has_law: Whether a small number of symbols stands for what a device holds, so that laws of reports can be
            computed in a record.
        takes_candidates: Whether a spec asks for the shares of candidates.
        heading: What bounds the domain, as the heading of ``extent`` on a page.
        compared: What two versions must have in common, in the words of an error.
        columns: The heading of what users hold in a file of a truth.
        alone: The heading of a file of a truth in which items are held independently of each other, with their shares.
        withheld: Why estimates lack some entries of their tables, in the words of a sentence; empty if they have all.
    """

    name: ClassVar[str]
    form: ClassVar[str] = ""
    holds: ClassVar[str]
    one: ClassVar[str]
    unit: ClassVar[str]
    percent: ClassVar[str] = "%"
    listed: ClassVar[bool] = False
    ordered: ClassVar[bool] = False
    in_records: ClassVar[bool] = True
    has_law: ClassVar[bool] = True
    takes_candidates: ClassVar[bool] = False
    heading: ClassVar[str]
    compared: ClassVar[str]
    columns: ClassVar[tuple[str, ...]] = ("value",)
    alone: ClassVar[tuple[str, ...]] = ()
    withheld: ClassVar[str] = ""

    @property
    def located_name(self) -> str:
        """The name of the kind that ``located`` returns."""
        return self.name

    def located(self, folder: SpecFolder) -> "Kind":
        """Return the domain with what its files say; ValueError, which begins with the key, if one does not fit."""
        return self

    def without_files(self, domain: dict[str, Any]) -> None:
        """Put what files hold in place of their names, in the domain as a spec has it."""
        list_labels(domain[self.name], self.values)

    @property
    def held(self) -> int:
        """How many symbols of the domain a device holds at once, at the most."""
        return 1

    @property
    def values(self) -> Values:
        """The values that the domain lists; none if it lists none."""
        return Values(0, None)

    @property
    @abstractmethod
    def text(self) -> str:
        """What a device holds, in a few words."""

    @property
    @abstractmethod
    def extent(self) -> str:
        """How large the domain is, under ``heading``."""

    @property
    def ends(self) -> tuple[float, float] | None:
        """The least and the largest number; None if the domain is no range of numbers."""
        return None

    @abstractmethod
    def read(self, text: str) -> Value:
        """Return what a table holds about a device; ValueError if it is not in the domain."""

    @abstractmethod
    def check(self, value: object, attribute: str) -> Value:
        """Return what the program of a device gives about its user.

        TypeError if it is of another type, ValueError if it is not in the domain. The message contains no value.
        """

    @abstractmethod
    def examples(self, size: int, candidates: Sequence[str]) -> list[object]:
        """Return what ``check`` takes, to test clients by: the ends, what is between them, and what a device cuts."""

    @abstractmethod
    def column(self, values: Sequence[Value]) -> Column:
        """Return what n devices hold as an array, shape (n,); of sets and rankings, of two dimensions."""

    @abstractmethod
    def facts(self) -> Iterator[tuple[str, Any]]:
        """Yield what devices must know, by the keys of the domain in a spec."""

    def entries(self, size: int, *, whole: bool) -> Sequence[str] | None:
        """Return the names of a table's entries, which may be the shares of a ``whole``; None if they have none."""
        return None

    def shares(self, column: Column, weights: Floats, candidates: Sequence[str]) -> Floats:
        """Return the share of each value of the domain, or of each candidate; ValueError if there is no list of such.

        Users of m cells hold ``column``, and ``weights`` is the share of users in each cell: both of shape (m,).
        """
        raise ValueError(f"{self.holds} has no shares")

    @property
    def quantities(self) -> tuple[object, ...]:
        """What estimates are of: versions of a collection estimate the same if these are equal."""
        return (self.name,) if self.takes_candidates else (self,)

    def bin_text(self, position: float, bins: int) -> str:
        """Return the point at which a bin begins, or inside of it for a fraction; ValueError if there is no order."""
        raise ValueError(f"{self.holds} has no order")

    def range(self, low: End, high: End, bins: int) -> Range:
        """Return the bins between two ends; ValueError if the domain has no order, or an end is no edge of a bin."""
        raise ValueError(f"{self.holds} has no ranges; remove ranges")

    def candidates(
        self, listed: Sequence[str] | None, file: str | None, most: int, folder: SpecFolder
    ) -> Sequence[str]:
        """Return the strings whose shares a spec asks for; ValueError, which begins with the key, if they are wrong."""
        if listed is None and file is None:
            return ()
        key = "candidates" if listed is not None else "candidates_file"
        raise ValueError(f"{key}: only strings have candidates; remove it, or give domain: {{strings: ...}}")


def list_labels(keys: dict[str, Any], values: Values) -> None:
    """Put the labels of values in place of the name of their file, among the keys that say which they are."""
    if keys.pop("labels_file", None) is not None:
        keys["labels"] = list(values.names or ())
