"""How the records of a bundle are divided into files, of which each is written once it is whole."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from uldp.transforms.io.durable_files import encode_record
from uldp.transforms.io.results.names import stored_file

#: The maximum number of records that a bundle holds for its files, and so of panes of a file.
MAX_RECORDS = 10_000
#: The maximum bytes of these records, encoded; the last one may exceed them. With ``MAX_RECORDS``, this bounds the
#: memory of a bundle, whatever clients send.
MAX_BYTES = 8 << 20

#: A record, and the form in which it waits for its file.
R = TypeVar("R")
H = TypeVar("H")


class File(NamedTuple):
    """A file that is whole."""

    name: str  # its name below the folder of results
    content: bytes


class Filing(ABC, Generic[R, H]):
    """Divides the records of a bundle into files, by what the records of a file share."""

    def __init__(self) -> None:
        self._held: dict[Any, list[H]] = defaultdict(list)
        self._records = self._nbytes = 0

    @abstractmethod
    def add(self, record: R) -> Iterator[File]:
        """Add a record, and yield the files that are whole now."""

    @abstractmethod
    def files_of(self, shared: Any, held: Sequence[H]) -> Iterator[File]:
        """Yield the files of records that share this."""

    def hold(self, shared: object, record: H, nbytes: int) -> Iterator[File]:
        """Let a record wait for its file; if a limit is reached, yield the files of all that wait."""
        self._held[shared].append(record)
        self._records += 1
        self._nbytes += nbytes
        if self._records >= MAX_RECORDS or self._nbytes >= MAX_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[File]:
        """Yield the files of all that wait, as at the end of the bundle."""
        held, self._held = self._held, defaultdict(list)
        self._records = self._nbytes = 0
        for shared, records in held.items():
            yield from self.files_of(shared, records)

    def superseded(self) -> Sequence[str]:
        """Return the names of the files to remove once all files of the bundle are there."""
        return ()

    def line_of(self, record: R) -> bytes:
        """Return the line of a journal about a record, once it is written; by default none."""
        return b""

    def line_of_file(self, file: File) -> bytes:
        """Return the line of a journal about a file, once it is written; by default none."""
        return b""


class JoinedFiling(Filing[R, bytes]):
    """Files all records of a bundle together, encoded: their size is then known, and the objects freed."""

    folder: ClassVar[str]
    schema: ClassVar[str]

    @abstractmethod
    def values_of(self, record: R) -> Iterable[Mapping[str, Any]]:
        """Return the values of the schema that hold a record."""

    def add(self, record: R) -> Iterator[File]:
        for value in self.values_of(record):
            encoded = encode_record(self.schema, value)
            yield from self.hold(None, encoded, len(encoded))

    def files_of(self, shared: None, held: Sequence[bytes]) -> Iterator[File]:
        yield File(*stored_file(self.folder, held, self.schema))
