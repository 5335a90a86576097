"""A folder of Parquet files as an endpoint, which keeps the rows of estimates: one file for each pane."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from uldp.schemas.errors import EndpointError
from uldp.schemas.estimate import Estimate
from uldp.schemas.extras import needed
from uldp.transforms.io.arrow_rows import parquet_bytes
from uldp.transforms.io.durable_files import write_files
from uldp.transforms.io.folders import is_remote
from uldp.transforms.io.listing import paths_below
from uldp.transforms.io.remote import matching
from uldp.transforms.io.results.names import window_name
from uldp.transforms.io.row_sink import KeptPane, Made, RowSink

_SCHEME = "parquet:"
_ENDING = ".parquet"
#: The files of panes, below the folder.
_FILES = f"*/*/*{_ENDING}"
#: The last bytes of each file of Parquet.
_MAGIC = b"PAR1"
#: An age in the name of a file; see ``_name``.
_AGE = re.compile(r"[0-9a-f]+(-[0-9a-f]+){3}")


def parse(uri: str, config: Path | None = None) -> "ParquetEndpoint":
    """Read ``parquet:FOLDER``, or ``parquet:`` and a URL, without a config; EndpointError if it names no folder."""
    folder = uri.removeprefix(_SCHEME)
    if not folder:
        raise EndpointError(f"{uri}: names no folder; write parquet:FOLDER")
    return ParquetEndpoint(folder.rstrip("/") if is_remote(folder) else str(Path(folder).absolute()))


@dataclass(frozen=True)
class ParquetEndpoint(RowSink):
    """A folder. A pane that is written again replaces its own file, and no reader sees half of one."""

    folder: str  # an absolute path, or a URL

    def __str__(self) -> str:
        return f"{_SCHEME}{self.folder}"

    @property
    def on_network(self) -> bool:
        return is_remote(self.folder)

    def check_estimates(self) -> None:
        """Create the folder if it is on this machine; EndpointError if that is not possible, or pyarrow is missing."""
        with needed(f"{self}:", "export", refusal=EndpointError):
            import pyarrow.parquet  # noqa: F401 (report a missing package before the job runs)
        if is_remote(self.folder):
            return
        try:
            Path(self.folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EndpointError(f"{self}: {error.strerror}; name a folder that can be written") from error
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise EndpointError(f"{self}: may not be written by this user; name another folder")

    def write(self, estimates: Sequence[Made]) -> None:
        write_files(
            [(f"{self.folder}/{_name(estimate)}", parquet_bytes(estimate, spec)) for estimate, spec in estimates]
        )

    def panes(self) -> Iterator[KeptPane]:
        """List all file names, which name all panes, but of cut files; EndpointError if a file is a copy of another."""
        if is_remote(self.folder):
            paths = [file.path for file in matching(f"{self.folder}/{_FILES}")]
        else:
            paths = [path.as_posix() for path in paths_below(Path(self.folder), _FILES) if _is_whole(path)]
        for path in paths:
            *_, collection, span, name = path.split("/")
            match name.removesuffix(_ENDING).split("."):
                case [age, device_digest, estimator]:  # another file is none of ours
                    if not _AGE.fullmatch(age):
                        raise EndpointError(f"{self}: holds {path}, which no job has written; remove it")
                    yield KeptPane(f"{collection}/{span}", device_digest, estimator, age.replace("-", "/"))


def _is_whole(path: Path) -> bool:
    """Return whether a file ends as files of Parquet do."""
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - len(_MAGIC), 0))
        return file.read() == _MAGIC


def _name(estimate: Estimate) -> str:
    """Return the name of a pane's file: its window, and what tells it from the other panes of the window."""
    age = estimate.age_text.replace("/", "-")
    return f"{window_name(*estimate.key)}/{age}.{estimate.device_digest}.{estimate.estimator}{_ENDING}"
