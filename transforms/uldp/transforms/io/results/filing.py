"""How the records of a bundle are divided into files, of which each is written once it is whole."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

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


class Joined:
    """Records of a bundle that share a file, encoded: their size is then known, and the objects freed."""

    def __init__(self, folder: str, schema: str) -> None:
        self._folder, self._schema = folder, schema
        self._held: Held[bytes] = Held()

    def add(self, encoded: bytes) -> Iterator[File]:
        """Add a record, and yield a file once the records reach a limit."""
        if self._held.add(None, encoded, len(encoded)):
            yield from self.rest()

    def rest(self) -> Iterator[File]:
        """Yield the file."""
        for encoded in self._held.clear().values():
            yield File(*stored_file(self._folder, encoded, self._schema))


class TogetherFiling(Filing[R]):
    """Files all records of a bundle together."""

    def __init__(self, folder: str, schema: str, to_avro: Callable[[R], Mapping[str, Any]]) -> None:
        self._schema, self._to_avro = schema, to_avro
        self._joined = Joined(folder, schema)

    def add(self, record: R) -> Iterator[File]:
        return self._joined.add(encode_record(self._schema, self._to_avro(record)))

    def rest(self) -> Iterator[File]:
        return self._joined.rest()
