"""Files of rows, each named when it is whole: CSV, and Parquet and Arrow by the extra pyarrow, imported when used."""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol, TextIO

import numpy as np
import numpy.typing as npt

from uldp.pipelines.aside import written_aside
from uldp.schemas.errors import RequestError
from uldp.schemas.estimate import Estimate
from uldp.schemas.extras import needed
from uldp.schemas.records import iso
from uldp.schemas.rows import COLUMNS, Batch, Kind, Rows
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.arrow_rows import ArrowFile, ParquetRows

#: How a spreadsheet recognises a formula in a cell, behind spaces too; East Asian versions know the wide forms.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class RowFile(Protocol):
    """A file that takes batches of rows."""

    def write(self, batch: Batch) -> None:
        """Append a batch, which is not empty."""

    def close(self) -> None:
        """Write what belongs at the end."""


def check_target(target: Path) -> Callable[[Path, Rows], RowFile]:
    """Return the format of a file, by its ending; RequestError if it is unknown, or pyarrow or a folder is missing."""
    formats: dict[str, Callable[[Path, Rows], RowFile]] = {".parquet": ParquetRows, ".arrow": ArrowFile, ".csv": _Csv}
    name = plain(str(target))
    chosen = formats.get(target.suffix.lower())
    if chosen is None:
        raise RequestError(f"{name}: the ending decides the format; choose one of {', '.join(formats)}")
    if chosen is not _Csv:
        with needed(f"{name}: {target.suffix}, unlike .csv,", "export"):
            import pyarrow.parquet  # noqa: F401 (report a missing package before the results are read)
    if not target.parent.is_dir():
        raise RequestError(f"{name}: there is no folder {plain(str(target.parent))}; create it")
    return chosen


def write_rows(target: Path, estimates: Iterable[tuple[Estimate, CollectionSpec]]) -> int:
    """Write estimates' rows to a file in place of an older one; return their number; RequestError as its target."""
    chosen, rows, written = check_target(target), Rows(), 0
    with written_aside(target) as path:
        file = chosen(path, rows)
        try:
            for batch in rows.batches(estimates):
                file.write(batch)
                written += len(batch["position"])
        finally:
            file.close()
    return written


class _Csv:
    """Values separated by commas, in UTF-8, with the names of the columns in the first line; what is null is empty."""

    def __init__(self, path: Path, rows: Rows) -> None:
        self._file: TextIO = path.open("w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._texts = rows.texts
        self._words = {name: np.array([""], object) for name in rows.texts}
        self._writer.writerow(COLUMNS)

    def write(self, batch: Batch) -> None:
        columns = [self._cells(name, batch[name]).tolist() for name in COLUMNS]
        self._writer.writerows(zip(*columns, strict=True))

    def _cells(self, name: str, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        match COLUMNS[name]:
            case Kind.TEXT:
                texts = self._texts[name]
                if len(self._words[name]) <= len(texts):  # the last word is that of Texts.NONE, -1
                    self._words[name] = np.array([*map(_cell, texts), ""], object)
                cells: npt.NDArray[Any] = self._words[name][column]
                return cells
            case Kind.NUMBER:
                numbers = column.astype(object)
                numbers[np.isnan(column)] = ""
                return numbers
            case Kind.TIME:
                times, places = np.unique(column, return_inverse=True)
                return np.array([iso(time) for time in times.astype(np.int64).tolist()], object)[places]
            case Kind.TRUTH:
                return np.array(["false", "true"], object)[column.astype(np.intp)]
            case Kind.COUNT:
                return column

    def close(self) -> None:
        self._file.close()


def _cell(text: str) -> str:
    """Write a text so that no spreadsheet runs it as a formula: with a leading apostrophe, unless it is a number.

    >>> _cell("=1+1"), _cell("-1"), _cell("red")
    ("'=1+1", '-1', 'red')
    """
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    return text[1:].replace(".", "", 1).isdecimal() and text.isascii()
