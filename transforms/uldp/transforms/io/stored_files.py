"""The headers of files of late and rejected reports, by which a reader knows a copy, and a message that two files hold.

A copy of a file has another name, but names the file in its header. And a runner that tries a bundle again may cut it
otherwise: then two files hold some late messages. So a file of late messages says from which source they come, and
their numbers there, one for each record.
"""

import base64
import binascii
import hashlib
import json
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate, chain
from typing import IO, NamedTuple

import numpy as np

from uldp.schemas.codec.blocks import MAX_BLOCK_BYTES, Container, ContainerError
from uldp.schemas.codec.inflate import inflate
from uldp.schemas.codec.packed import PackedMessages
from uldp.schemas.places import RunIndex, Runs, numbered, size, united, without
from uldp.schemas.records import Message
from uldp.transforms.io.message_files import StreamError, packed_messages

_FILE, _PLACES = "uldp.file", "uldp.places"
#: All records of a file.
_ALL: Runs = ((0, 1 << 62),)
#: Opens a file, here or elsewhere.
Open = Callable[[str], AbstractContextManager[IO[bytes]]]


class StoredFile(NamedTuple):
    """What the header of a file of late or rejected reports says."""

    name: str  # the name under which the job wrote it, without its ending
    source: str = ""  # what the numbers of its late messages are of; empty if they have none
    runs: Runs = ()  # these numbers

    def to_metadata(self) -> dict[str, str]:
        """Return the entries of the header."""
        if not self.runs:
            return {_FILE: self.name}
        gaps = np.diff([0, *chain.from_iterable(self.runs)]).tolist()
        packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        packed = packer.compress(json.dumps([self.source, gaps]).encode()) + packer.flush()
        return {_FILE: self.name, _PLACES: base64.b64encode(packed).decode()}

    @classmethod
    def of(cls, metadata: Mapping[str, bytes]) -> "StoredFile | None":
        """Read the entries of a header; None if it has none of these. Damaged places are no places."""
        if _FILE not in metadata:
            return None
        name = metadata[_FILE].decode("utf-8", "backslashreplace")
        try:
            text = inflate("deflate", base64.b64decode(metadata.get(_PLACES, b""), validate=True), MAX_BLOCK_BYTES)
            source, gaps = json.loads(text)
            bounds = [*accumulate(map(int, gaps))]
            runs = tuple(zip(bounds[::2], bounds[1::2], strict=True))
            if not isinstance(source, str) or runs != united(runs) or (bounds and bounds[0] < 0):
                return cls(name)
        except (ValueError, TypeError, RecursionError, binascii.Error):
            return cls(name)
        return cls(name, source, runs)


def numbers_of(messages: Iterable[Message]) -> Runs:
    """Return the numbers of messages of one source, in which they are ascending; none if they are not numbered alone.

    >>> numbers_of([Message(b"", 0, {}, f"t/0/{number}") for number in (3, 4, 9)])
    ((3, 5), (9, 10))
    """
    found = [numbered(each.source) for each in messages]
    numbers = [each[1] for each in found if each is not None]
    runs = united((number, number + 1) for number in numbers)
    return runs if size(runs) == len(found) else ()


def read_stored(path: str, opened: Open) -> StoredFile | None:
    """Return what the header of a file says; None of another or a damaged file, for whoever reads it says why."""
    try:
        with opened(path) as file:
            return StoredFile.of(Container.open(file).metadata)
    except (OSError, ValueError):
        return None


def copies(paths: Iterable[str], opened: Open) -> tuple[dict[str, StoredFile], set[str]]:
    """Return what the headers of files say, and which files are copies of the ones before them, to the byte."""
    headers: dict[str, StoredFile] = {}
    by_name: dict[str, list[str]] = defaultdict(list)
    found: set[str] = set()
    for path in paths:
        if (header := read_stored(path, opened)) is None:
            continue
        headers[path] = header
        before = by_name[header.name]
        if before and _digest(path, opened) in {_digest(other, opened) for other in before}:
            found.add(path)
        else:
            before.append(path)
    return headers, found


def _digest(path: str, opened: Open) -> bytes:
    with opened(path) as file:
        return hashlib.sha256(file.read()).digest()


def held_before(paths: Iterable[str], opened: Open) -> dict[str, Runs]:
    """Return which records of files hold a late message of equal place and data in an earlier file; opens each once."""
    headers, copied = copies(paths, opened)
    found = dict.fromkeys(copied, _ALL)
    by_source: dict[str, list[tuple[str, Runs]]] = defaultdict(list)
    indices: dict[str, RunIndex] = defaultdict(RunIndex)
    for path, header in headers.items():
        if path in copied or not header.runs:
            continue
        files, index = by_source[header.source], indices[header.source]
        before = [files[each] for each in index.overlapping(header.runs)]
        if before and (rows := _rows_held(path, header.runs, before, opened)):
            found[path] = rows
        files.append((path, header.runs))
        index.add(header.runs)
    return found


def _rows_held(path: str, runs: Runs, before: Sequence[tuple[str, Runs]], opened: Open) -> Runs:
    """Return which records of a file the files before it hold."""
    known: dict[int, set[bytes]] = defaultdict(set)
    for other, of_other in before:
        for number, data in _numbered_data(other, of_other, opened):
            known[number].add(data)
    of_path = enumerate(_numbered_data(path, runs, opened))
    return united((row, row + 1) for row, (number, data) in of_path if data in known.get(number, ()))


def _numbered_data(path: str, runs: Runs, opened: Open) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the data of each message of a file; none if it is damaged, or holds not one a number."""
    try:
        with opened(path) as file:
            datas = [part.bodies[row] for part in packed_messages(file, path) for row in range(len(part))]
    except (StreamError, ContainerError, OSError):
        return
    if len(datas) == size(runs):
        yield from zip(chain.from_iterable(range(*run) for run in runs), datas, strict=True)


def left(parts: Iterable[PackedMessages], held: Runs) -> Iterator[PackedMessages]:
    """Yield the messages of a file without those that are held before."""
    first = 0
    for part in parts:
        end = first + len(part)
        rest = without(((first, end),), held)
        rows = [np.arange(*run) - first for run in rest]
        if size(rest) == len(part):
            yield part
        elif rest:
            yield part.take(np.concatenate(rows))
        first = end
