"""The CSV tables of specs and simulations: one reader, one set of rules, and errors that name the line.

A table is UTF-8 text, with or without a byte order mark. Its first row is a header of known columns, and each later
row has a field for each of them. No field holds an end of line, because the usual cause is a quote that is not closed.
"""

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Self, TypeVar

import numpy as np

from uldp.schemas.arrays import Floats
from uldp.schemas.specs.mistakes import quote
from uldp.schemas.specs.specfile import read_text

#: The largest size of a table in bytes; a longer file is probably the wrong file.
MAX_TABLE_BYTES = 512 << 20

T = TypeVar("T")


@dataclass(frozen=True)
class Table:
    """The names of the columns of a CSV file, and each nonempty row behind them, with the number of its line."""

    header: Sequence[str]
    rows: Sequence[tuple[int, list[str]]]

    @classmethod
    def read(cls, path: Path, *headers: Sequence[str], optional: bool = False) -> Self:
        """Read a file; see ``of``. ValueError too if it cannot be read; the message does not name it."""
        return cls.of(read_text(path, MAX_TABLE_BYTES), *headers, optional=optional)

    @classmethod
    def of(cls, text: str, *headers: Sequence[str], optional: bool = False) -> Self:
        """Read a table whose header is one of ``headers``; ValueError if it is not CSV, or has another header.

        An ``optional`` header may be missing, and is then the first; this is for tables in which none passes for a row.
        """
        rows = list(_rows(text))
        line, header = rows[0] if rows else (1, [])
        if header in map(list, headers):
            return cls(header, rows[1:])
        if not optional:
            known = " or ".join(",".join(names) for names in headers)
            raise ValueError(f"line {line}: {quote(','.join(header))} must be the header {known}")
        return cls(headers[0], rows)

    def each(self, parse: Callable[[list[str]], T]) -> Iterator[T]:
        """Yield what ``parse`` makes of each row; ValueError, with line and row, if it or the header does not fit."""
        for line, row in self.rows:
            try:
                if len(row) != len(self.header):
                    raise ValueError(f"the row has {len(row)} fields; write {','.join(self.header)}")
                yield parse(row)
            except ValueError as error:
                raise ValueError(f"line {line}: {quote(','.join(row))}: {error}") from error


def read_column(path: Path, most_bytes: int, most_lines: int) -> list[str]:
    """Read the table of one column, ``value``; ValueError if the file is no such table.

    A file that is too large is refused before a row of it is made: a row of one character takes 366 bytes. The message
    does not name the file.
    """
    text = read_text(path, most_bytes)
    # A line ends with one of these, or with both.
    if (lines := max(text.count("\n"), text.count("\r"))) > most_lines:
        raise ValueError(f"the file has {lines:,} lines, and {most_lines:,} is the most; is this the right file?")
    table = Table.of(text, ["value"])
    column = list(table.each(itemgetter(0)))
    if separator := next((mark for mark in ";\t" if column and all(mark in text for text in column)), None):
        raise ValueError(f"every row has the character {quote(separator)}; write the values alone, in one column")
    return column


def sum_weights(weights: Floats, of: str) -> float:
    """Return the sum of the weights of rows, of ``of``; ValueError if they give no distribution."""
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if total == math.inf:
        raise ValueError("the weights sum to more than 1.8e308; divide all of them by one number")
    if total == 0:
        raise ValueError(f"the weights sum to 0; give at least one {of} a weight above 0")
    return total


def read_weight(text: str) -> float:
    """Read the weight of a row; ValueError if the weight is not a finite number of 0 or more."""
    try:
        weight = float(text)
    except ValueError:
        weight = -1
    if not 0 <= weight < float("inf"):
        raise ValueError(f"weight {quote(text)} must be a finite number of 0 or more")
    return weight


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the nonempty rows of CSV text, each with the number of its line."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 0
    while True:
        line = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(f"line {line}: {_words(error)}") from error
        if rows.line_num > line:
            raise ValueError(f"line {line}: a field ends on line {rows.line_num}; close its quote")
        if row:
            yield line, row


def _words(error: csv.Error) -> str:
    """Say in plain words what csv cannot read."""
    said = str(error)
    if "field limit" in said:
        return f"a field has more than {csv.field_size_limit():,} characters; is a quote not closed?"
    if "unexpected end" in said:
        return "a quote is opened here and not closed"
    if "expected after" in said:
        return 'text follows a closed quote; write "" for a quote inside of a field'
    return f"{said}; write one row on a line"
