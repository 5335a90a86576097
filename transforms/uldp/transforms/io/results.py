"""Files of results: each file's name follows from its content, so that writing twice gives the same files.

The file of a pane is named by collection, version, window, revision and estimator. The number of late and rejected
reports is unknown in advance, so the sink collects them within a bundle and names the file by the digest of its
content. The sink writes a file under a temporary name and renames it, so that a reader never sees half of one.
"""

import hashlib
import io
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import apache_beam as beam
import fastavro
from apache_beam.io.filesystems import FileSystems

from uldp.schemas.framing import load_schema
from uldp.schemas.records import Estimate, Message, Rejected, SupportCounts
from uldp.transforms.aggregate import Aggregated

#: Records of one file of late or rejected reports; this bounds the memory of a bundle.
MAX_RECORDS = 10_000


def container_bytes(schema: str, records: Sequence[Mapping[str, Any]]) -> bytes:
    """Return an Avro container file; equal records give equal bytes."""
    digest = hashlib.sha256()
    for record in records:
        body = io.BytesIO()
        fastavro.schemaless_writer(body, load_schema(schema), record)
        digest.update(body.getbuffer())
    out = io.BytesIO()
    fastavro.writer(out, load_schema(schema), records, sync_marker=digest.digest()[:16])
    return out.getvalue()


def write_file(path: str, content: bytes) -> None:
    """Write a file in one step, replacing any file at ``path``, which may be on any of Beam's file systems."""
    folder, name = FileSystems.split(path)
    aside = FileSystems.join(folder, f".tmp-{secrets.token_hex(8)}-{name}")
    try:
        with FileSystems.create(aside) as file:
            file.write(content)
        FileSystems.rename([aside], [path])
    except BaseException:
        if FileSystems.exists(aside):
            FileSystems.delete([aside])
        raise


def window_folder(counts: SupportCounts) -> str:
    """Return the folder of a window's panes, below the folder of its kind of result."""
    start, end = (_stamp(moment) for moment in (counts.window_start, counts.window_end))
    return FileSystems.join(f"{counts.collection}-v{counts.version}", f"{start}--{end}")


def _stamp(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    fraction = f".{milliseconds % 1000:03d}" if milliseconds % 1000 else ""
    return f"{moment:%Y%m%dT%H%M%S}{fraction}Z"


def estimate_file(estimate: Estimate) -> tuple[str, bytes]:
    """Return the name of an estimate's file, below the results' folder, and its content."""
    name = f"{estimate.support.pane.revision:06d}.{estimate.estimator}.avro"
    path = FileSystems.join("estimates", window_folder(estimate.support), name)
    return path, container_bytes("estimate", [estimate.to_avro()])


def counts_file(counts: SupportCounts) -> tuple[str, bytes]:
    """Return the name of the file of a pane's counts, below the results' folder, and its content."""
    path = FileSystems.join("counts", window_folder(counts), f"{counts.pane.revision:06d}.avro")
    return path, container_bytes("support_counts", [counts.to_avro()])


def late_file(late: Sequence[Message]) -> tuple[str, bytes]:
    """Return the name of a file of late messages, below the results' folder, and its content."""
    content = container_bytes("message", [message.to_avro() for message in late])
    return FileSystems.join("late", _digest(content)), content


def rejected_file(rejected: Sequence[Rejected]) -> tuple[str, bytes]:
    """Return the name of a file of rejected reports, below the results' folder, and its content."""
    content = container_bytes("rejected", [record.to_avro() for record in rejected])
    return FileSystems.join("rejected", _digest(content)), content


def _digest(content: bytes) -> str:
    return f"{hashlib.sha256(content).hexdigest()[:32]}.avro"


@dataclass
class WriteResults(beam.PTransform[Any, None]):
    """Write all outputs of ``Aggregate`` below one folder.

    Attributes:
        out: The folder, on any of Beam's file systems.
    """

    out: str

    def expand(self, aggregated: Any) -> None:
        """Write each kind of result in a step of its own; takes ``Aggregated``."""
        assert isinstance(aggregated, Aggregated)
        _ = aggregated.estimates | "WriteEstimates" >> beam.ParDo(_WriteEachFn(self.out, estimate_file))
        _ = aggregated.counts | "WriteCounts" >> beam.ParDo(_WriteEachFn(self.out, counts_file))
        _ = aggregated.late | "WriteLate" >> beam.ParDo(_WriteBundleFn(self.out, late_file))
        _ = aggregated.rejected | "WriteRejected" >> beam.ParDo(_WriteBundleFn(self.out, rejected_file))


class _WriteEachFn(beam.DoFn):
    def __init__(self, out: str, file_of: Callable[[Any], tuple[str, bytes]]) -> None:
        self._out, self._file_of = out, file_of

    def process(self, record: Any) -> None:
        path, content = self._file_of(record)
        write_file(FileSystems.join(self._out, path), content)


class _WriteBundleFn(beam.DoFn):
    def __init__(self, out: str, file_of: Callable[[Sequence[Any]], tuple[str, bytes]]) -> None:
        self._out, self._file_of = out, file_of

    def start_bundle(self) -> None:
        self._records: list[Any] = []

    def process(self, record: Any) -> None:
        self._records.append(record)
        if len(self._records) >= MAX_RECORDS:
            self._write()

    def finish_bundle(self) -> None:
        if self._records:
            self._write()

    def _write(self) -> None:
        path, content = self._file_of(self._records)
        write_file(FileSystems.join(self._out, path), content)
        self._records = []
