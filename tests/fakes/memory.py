"""A file system of Beam's in the memory of this process: ``mem://``, to stand for one that is far away."""

import io
import posixpath
from collections.abc import Iterator
from typing import Any

from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem

#: Files by their URL, and what the store answers instead to whoever asks for a URL.
FILES: dict[str, bytes] = {}
REFUSALS: dict[str, Exception] = {}


class MemoryFileSystem(FileSystem):
    """As object stores are: it has names, and no directories."""

    @classmethod
    def scheme(cls) -> str:
        return "mem"

    def join(self, basepath: str, *paths: str) -> str:
        return posixpath.join(basepath, *paths)

    def split(self, path: str) -> tuple[str, str]:
        return posixpath.split(path)

    def has_dirs(self) -> bool:
        return False

    def mkdirs(self, path: str) -> None:
        raise NotImplementedError

    def _list(self, dir_or_prefix: str) -> Iterator[FileMetadata]:
        self._ask(dir_or_prefix)
        yield from (self.metadata(url) for url in FILES if url.startswith(dir_or_prefix))

    def _ask(self, url: str) -> None:
        if url in REFUSALS:
            raise REFUSALS[url]

    def open(self, path: str, *_: Any) -> io.BytesIO:
        self._ask(path)
        return io.BytesIO(FILES[path])

    def create(self, path: str, *_: Any) -> "_Writer":
        return _Writer(path)

    def exists(self, path: str) -> bool:
        return path in FILES

    def metadata(self, path: str) -> FileMetadata:
        return FileMetadata(path, len(FILES[path]))

    def size(self, path: str) -> int:
        return len(FILES[path])

    def last_updated(self, path: str) -> float:
        return 0.0

    def checksum(self, path: str) -> str:
        raise NotImplementedError

    def copy(self, source_file_names: list[str], destination_file_names: list[str]) -> None:
        raise NotImplementedError

    def rename(self, source_file_names: list[str], destination_file_names: list[str]) -> None:
        for source, destination in zip(source_file_names, destination_file_names, strict=True):
            FILES[destination] = FILES.pop(source)

    def delete(self, paths: list[str]) -> None:
        for path in paths:
            if FILES.pop(path, None) is None:
                raise BeamIOError("Delete operation failed", {path: FileNotFoundError(path)})


class _Writer(io.BytesIO):
    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    def close(self) -> None:
        if not self.closed:
            FILES[self._url] = self.getvalue()
        super().close()
