"""The values of a domain, by index and by label, and what the files and lists of a spec say about them."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from uldp.schemas.arrays import Floats, Mask
from uldp.schemas.specs.mistakes import near, notes, prefixed, quote, repeated
from uldp.schemas.specs.specfile import SpecFolder
from uldp.schemas.specs.tables import Table, read_column, read_weight, sum_weights

#: The values that are sensitive for everybody.
Sensitive = Literal["all"] | list[int | str]
#: The draws that the weights of a background count for one that is worth as much. A background is seldom a sample of
#: the hidden users themselves: with this number, intervals cover where the places of the shipped example are assumed.
WEIGHT_OF_A_DRAW = 4
#: The largest size of a file of labels in bytes, and the most lines of it, with its header. Larger domains have a size.
MOST_LABEL_FILE_BYTES = 1 << 26
MOST_LABEL_LINES = 1 << 20


@dataclass(frozen=True, eq=False)
class Values:
    """The values of a domain."""

    size: int  # |X|, the number of values; 0 for a number
    names: list[str] | None  # A label for each value; None if the domain has only a size
    #: The columns of the grid whose cells are the values: value i is in row i // columns and column i % columns, and
    #: row 0 is the one at the bottom, or in the south. None if they are no grid.
    columns: int | None = field(default=None, kw_only=True)

    @property
    def labels(self) -> list[str]:
        """A name for each value of the domain."""
        return self.names or [str(value) for value in range(self.size)]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {label: index for index, label in enumerate(self.names or ())}

    def index(self, value: int | str) -> int:
        """Return the position of a value, which is an index or a label; ValueError if it is not in the domain."""
        if isinstance(value, str):
            if self.names is None:
                raise ValueError(f"{quote(value)} is a label, but the domain has only a size")
            if value not in self._positions:
                raise ValueError(f"{quote(value)} is not a label of the domain{notes(near(value, self.names))}")
            return self._positions[value]
        if not 0 <= value < self.size:
            raise ValueError(f"{quote(value)} is outside of the domain 0 to {self.size - 1}")
        return value

    def read_value(self, text: str) -> int:
        """Return the position of a value by its label, or without labels its index; ValueError if there is none."""
        # Python cannot read a number of thousands of digits, and no index has a hundred digits.
        is_index = self.names is None and text.isdecimal() and len(text) < 100
        return self.index(int(text) if is_index else text)

    def mask(self, sensitive: Sensitive) -> Mask:
        """Return which values are sensitive; ValueError if an entry is unknown, ambiguous or repeated, or none is."""
        if sensitive == "all":
            return np.ones(self.size, dtype=np.bool_)
        mask = np.zeros(self.size, dtype=np.bool_)
        for value in sensitive:
            index = self.index(value)
            if isinstance(value, int) and self._positions.get(str(value), index) != index:
                raise ValueError(
                    f"{value} is the index of one value and the label of another; for the label, write "
                    f"it in quotes: '{value}'"
                )
            if mask[index]:
                raise ValueError(f"{quote(value)} occurs twice; remove one")
            mask[index] = True
        if not mask.any():
            raise ValueError("the list is empty; name the sensitive values, or choose the mechanism identity")
        return mask

    def read_background(self, path: Path) -> tuple[Floats, float]:
        """Return the distribution over the values that the weights in a file give, and its strength.

        Whole weights may be counts of a sample, so the strength is their sum over ``WEIGHT_OF_A_DRAW``; NaN of others.
        ValueError, without the name of the file, if it cannot be read, or gives no distribution.
        """
        weights = np.zeros(self.size)
        table = Table.read(path, ["value", "weight"], optional=True)
        with np.errstate(over="ignore"):
            for value, weight in table.each(lambda row: (self.read_value(row[0]), read_weight(row[1]))):
                weights[value] += weight
        total = sum_weights(weights, "value")
        whole = bool((weights % 1 == 0).all())
        return weights / total, total / WEIGHT_OF_A_DRAW if whole else np.nan


def read_values(
    size: int | None, labels: list[str] | None, labels_file: str | None, folder: SpecFolder, columns: int | None = None
) -> Values:
    """Return the values of a domain; ValueError, which begins with the key, if a file or columns do not fit."""
    if labels_file is not None:
        with folder.file(labels_file, "labels_file") as path:
            labels = read_column(path, MOST_LABEL_FILE_BYTES, MOST_LABEL_LINES)
            refuse_repeated(labels)
            if len(labels) < 2:
                raise ValueError(f"the file has {len(labels)} labels; write two or more")
    values = Values(size or 0 if labels is None else len(labels), labels, columns=columns)
    with prefixed("columns: "):
        require_full_rows(values.size, columns or 1)
    return values


def require_full_rows(size: int, columns: int) -> None:
    """Raise ValueError if rows of so many columns leave one of the values in a row that is not full."""
    if not size % columns:
        return
    divisors = [number for number in range(2, size + 1) if not size % number]
    if divisors == [size]:  # a single row, which is the line that the values are without columns
        remedy = "remove columns, because no number does"
    else:
        remedy = f"the nearest number that does is {min(divisors, key=lambda number: abs(number - columns))}"
    raise ValueError(f"{columns} columns do not divide {size:,} values into full rows; {remedy}")


def refuse_repeated(labels: list[str]) -> None:
    """Raise ValueError if a label occurs twice."""
    if (label := repeated(labels)) is not None:
        raise ValueError(f"label {quote(label)} occurs twice; labels must differ")
