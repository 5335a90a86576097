"""Rows of estimates as Arrow's columns, and as Parquet files, by the extra pyarrow, imported at its first use."""

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from uldp.schemas.estimate import Estimate
from uldp.schemas.rows import STORED_COLUMNS, Batch, Kind, Rows, Texts
from uldp.schemas.specs.collection import CollectionSpec


class ArrowRows:
    """Turns the batches of ``Rows`` into Arrow's: null is null, texts are dictionaries, times are UTC."""

    def __init__(self, rows: Rows) -> None:
        import pyarrow as pa

        types = {
            Kind.TEXT: pa.dictionary(pa.int32(), pa.string()),
            Kind.COUNT: pa.int64(),
            Kind.NUMBER: pa.float64(),
            Kind.TIME: pa.timestamp("ms", "UTC"),
            Kind.TRUTH: pa.bool_(),
        }
        self.schema = pa.schema([(name, types[kind]) for name, kind in rows.columns.items()])
        self._kinds, self._texts = rows.columns, rows.texts
        self._words: dict[str, Any] = {name: pa.array([], pa.string()) for name in rows.texts}

    def record_batch(self, batch: Batch) -> Any:
        """Return a batch as a ``pyarrow.RecordBatch``."""
        import pyarrow as pa

        arrays = [self._array(field, batch[field.name]) for field in self.schema]
        return pa.record_batch(arrays, schema=self.schema)

    def _array(self, field: Any, column: npt.NDArray[Any]) -> Any:
        import pyarrow as pa

        match self._kinds[field.name]:
            case Kind.TEXT:
                if len(self._words[field.name]) < len(self._texts[field.name]):
                    self._words[field.name] = pa.array(list(self._texts[field.name]), pa.string())
                codes, words = self._coded(column, self._words[field.name])
                return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32(), mask=column == Texts.NONE), words)
            case Kind.NUMBER:
                return pa.array(column, field.type, from_pandas=True)  # NaN becomes null
            case Kind.TIME:
                return pa.array(column.astype(np.int64), pa.int64()).cast(field.type)
            case _:
                return pa.array(column, field.type)

    def _coded(self, codes: npt.NDArray[np.int32], words: Any) -> tuple[npt.NDArray[np.int32], Any]:
        """Return the codes of a column, and the words that they are positions of."""
        return codes, words


class ArrowFile(ArrowRows):
    """A file of Arrow's IPC format, also called Feather version 2. Its dictionaries grow from batch to batch."""

    def __init__(self, target: Path | io.BytesIO, rows: Rows) -> None:
        super().__init__(rows)
        self._writer = self._begin(target)

    def _begin(self, target: Path | io.BytesIO) -> Any:
        import pyarrow as pa

        return pa.ipc.new_file(target, self.schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True))

    def write(self, batch: Batch) -> None:
        """Append a batch, which is not empty."""
        self._writer.write_batch(self.record_batch(batch))

    def close(self) -> None:
        """Write the end of the file."""
        self._writer.close()


class ParquetRows(ArrowFile):
    """A Parquet file at a path, or one that is open; each batch is a row group."""

    def _begin(self, target: Path | io.BytesIO) -> Any:
        import pyarrow.parquet as pq

        return pq.ParquetWriter(target, self.schema)

    def _coded(self, codes: npt.NDArray[np.int32], words: Any) -> tuple[npt.NDArray[np.int32], Any]:
        """Keep the words of this column alone: each row group has its own, and would hold those of all others too."""
        used, places = np.unique(codes, return_inverse=True)
        return places.astype(np.int32), words.take(np.maximum(used, 0)) if len(words) else words


def arrow_batches(estimates: Iterable[tuple[Estimate, CollectionSpec]]) -> Iterator[Any]:
    """Yield the rows of estimates, with all columns, as batches of Arrow."""
    rows = Rows(STORED_COLUMNS)
    arrow = ArrowRows(rows)
    return map(arrow.record_batch, rows.batches(estimates))


def parquet_bytes(estimate: Estimate, spec: CollectionSpec) -> bytes:
    """Return a Parquet file of the rows of one estimate, with all columns; equal rows give equal bytes."""
    rows, content = Rows(STORED_COLUMNS), io.BytesIO()
    file = ParquetRows(content, rows)
    for batch in rows.batches([(estimate, spec)]):
        file.write(batch)
    file.close()
    return content.getvalue()
