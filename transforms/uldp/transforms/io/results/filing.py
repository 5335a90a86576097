"""How the records of a bundle are divided into files, of which each is written once it is whole."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from uldp.transforms.io.durable_files import encode_record
from uldp.transforms.io.results.names import stored_file

#: The maximum number of records that a bundle holds for files of several records, such as late reports.
MAX_RECORDS = 10_000
#: The maximum bytes of these records, encoded; the last one may exceed them. With ``MAX_RECORDS``, this bounds the
#: memory of a bundle, whatever clients send.
MAX_BYTES = 8 << 20

#: A record.
R = TypeVar("R")


class File(NamedTuple):
    """A file that is whole."""

    name: str  # its name below the folder of results
    content: bytes


class Filing(ABC, Generic[R]):
    """Divides the records of a bundle into files."""

    @abstractmethod
    def add(self, record: R) -> Iterator[File]:
        """Add a record, and yield the files that are whole now."""

    @abstractmethod
    def rest(self) -> Iterator[File]:
        """Yield all other files, at the end of the bundle."""

    def superseded(self) -> Sequence[str]:
        """Return the names of the files to remove once all files of the bundle are there."""
        return ()

    def line_of(self, record: R) -> bytes:
        """Return the line of a journal about a record, once it is written; by default none."""
        return b""

    def line_of_file(self, file: File) -> bytes:
        """Return the line of a journal about a file, once it is written; by default none."""
        return b""


class Held(Generic[R]):
    """Records that wait for a file, by what they share, up to a number of them and of their bytes."""

    def __init__(self) -> None:
        self._held: dict[Any, list[R]] = defaultdict(list)
        self._records = self._nbytes = 0

    def add(self, key: object, record: R, nbytes: int) -> bool:
        """Add a record, and return whether a limit is reached."""
        self._held[key].append(record)
        self._records += 1
        self._nbytes += nbytes
        return self._records >= MAX_RECORDS or self._nbytes >= MAX_BYTES

    def clear(self) -> Mapping[Any, list[R]]:
        """Take all records."""
        held = self._held
        self._held, self._records, self._nbytes = defaultdict(list), 0, 0
        return held


class JoinedFiling(Filing[R]):
    """Files all records of a bundle together, encoded: their size is then known, and the objects freed."""

    folder: ClassVar[str]
    schema: ClassVar[str]

    def __init__(self) -> None:
        self._held: Held[bytes] = Held()

    @abstractmethod
    def values_of(self, record: R) -> Iterator[Mapping[str, Any]]:
        """Yield the values of the schema that hold a record."""

    def add(self, record: R) -> Iterator[File]:
        for value in self.values_of(record):
            encoded = encode_record(self.schema, value)
            if self._held.add(None, encoded, len(encoded)):
                yield from self.rest()

    def rest(self) -> Iterator[File]:
        for encoded in self._held.clear().values():
            yield File(*stored_file(self.folder, encoded, self.schema))
