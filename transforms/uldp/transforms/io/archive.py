"""The files of an archive: which they are, whether they are whole, and what tells them from other files."""

import hashlib
import json
import logging
import os
import re
from collections import Counter, deque
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from uldp.schemas.codec.container import sync_marker
from uldp.schemas.errors import EndpointError
from uldp.schemas.places import Runs
from uldp.schemas.records import Missing
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.archive_files import ArchiveFiles, listed, walked
from uldp.transforms.io.folders import SOURCE_DIGITS, Kind, is_remote, kind_of, mismatch
from uldp.transforms.io.listing import Reason, left_out_text
from uldp.transforms.io.local.segments import name_of, number_of
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import SEGMENT_NAME, StreamError, count_messages, opened, packed_messages
from uldp.transforms.io.remote import fetched, matching
from uldp.transforms.io.stored_files import held_before

if TYPE_CHECKING:
    from apache_beam.io.filesystem import FileMetadata

LOGGER = logging.getLogger(__name__)


def message_files(path: str | Path) -> list[str]:
    """Return files as ``archive_files``, with its errors, and if some are unreadable; the log says what is left out."""
    found = archive_files(path)
    if found.unreadable:
        raise StreamError("\n".join(found.unreadable))
    if found.left_out:
        LOGGER.warning("%s: %s", plain(str(path)), left_out_text(found.left_out))
    return found.read


def archive_files(path: str | Path) -> ArchiveFiles:
    """Return the files of messages at a path or URL, and which others are left out.

    StreamError or EndpointError if there is no file, or the file system does not answer. A local stream may be empty,
    but may not lack a segment.
    """
    if is_remote(str(path)):
        return _remote_files(str(path))[0]
    local = Path(path)
    if local.is_file():
        return ArchiveFiles([str(local)])
    if not local.is_dir():
        if local.exists():
            opened(local).close()  # refuses what is neither a file nor a directory
        raise StreamError(f"{path}: no such file or directory; check the path, and give files or a stream of messages")
    kind = kind_of(local)
    if kind is Kind.RESULTS:
        raise StreamError(mismatch(local, Kind.MESSAGES))
    found = walked(local)
    if kind is Kind.STREAM:
        _leave_out_given_up(LocalStream.open(local), found)
    if kind is not Kind.STREAM and not found.read and not found.unreadable:
        others = f"; {left_out_text(found.left_out)}" if found.left_out else ""
        raise StreamError(f"{path}: holds no .avro file of messages; is this the stream's directory?{others}")
    return found


def _leave_out_given_up(stream: LocalStream, found: ArchiveFiles) -> None:
    """Leave out segments that came back after they were given up; StreamError if the stream lacks another one."""
    stream.refuse_holes()
    read, found.read = found.read, []
    for file in read:
        path = Path(file)
        of_stream = path.parent == stream.path and SEGMENT_NAME.fullmatch(path.name)
        if of_stream and stream.given_up_at(number_of(path.name)) is not None:
            found.leave_out(Reason.GIVEN_UP, path.name)
        else:
            found.read.append(file)


def missing_segments(path: str | Path) -> dict[str, Missing]:
    """Return the messages, by path of a segment, that a local stream has given up; StreamError as its settings."""
    if is_remote(str(path)) or not Path(path).is_dir() or kind_of(Path(path)) is not Kind.STREAM:
        return {}
    stream = LocalStream.open(Path(path))
    records = ((each, each.missing(stream.id)) for each in stream.given_up if each.last >= stream.first)
    return {str(stream.path / name_of(each.first)): record for each, record in records if record is not None}


def _remote_files(url: str) -> "tuple[ArchiveFiles, list[FileMetadata]]":
    """Return the files at a URL, and what is known of those that are read."""
    url = url.rstrip("/")
    below = {file.path: file for file in matching(f"{url}/**", hidden=True)}
    found = listed(url, below)
    if not found.read:
        below = {file.path: file for file in matching(url)}
        found.read.extend(below)
    if not found.read:
        others = f"; {left_out_text(found.left_out)}" if found.left_out else ""
        raise StreamError(f"{url}: no such file, and no .avro file below it; check the URL{others}")
    return found, [below[file] for file in found.read]


def archive_digest(path: str | Path) -> str:
    """Return a digest of the files of messages that are at a path or URL now: other files have another one.

    Names, sizes and sync markers identify files here, so that a copy has the same digest; path, size and time of update
    those behind a URL. Errors are those of ``archive_files``.
    """
    known: list[tuple[object, ...]]
    if is_remote(str(path)):
        files = _remote_files(str(path))[1]
        known = [(file.path, file.size_in_bytes, file.last_updated_in_seconds) for file in files]
    else:
        known = [_identify(Path(file)) for file in archive_files(path).read]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]


def _identify(path: Path) -> tuple[str, int, str]:
    with opened(path) as file:
        return path.name, os.fstat(file.fileno()).st_size, sync_marker(file).hex()


def damaged_files(files: Iterable[str], *, decode: bool = False, published: int | None = None) -> list[str]:
    """Return a line about each file that cannot be read, by its blocks' ends, or by all messages if ``decode``.

    Without ``decode``, a gigabyte takes tens of milliseconds, and no file behind a URL is looked at.
    """
    here = (file for file in files if decode or not is_remote(file))
    return [line for file in here if (line := _damage(file, decode, published)) is not None]


def _damage(path: str, decode: bool, published: int | None) -> str | None:
    try:
        with opened_anywhere(path) as file:
            if decode:
                deque(packed_messages(file, path, published), maxlen=0)
            else:
                count_messages(file, path, published)
    except (StreamError, EndpointError) as error:
        return str(error)
    except OSError as error:
        return f"{plain(path)}: {error.strerror}; check the file and its permissions"
    return None


def held_twice(files: Iterable[str]) -> dict[str, Runs]:
    """Return which records of files of late messages another one holds too; of a URL, by files named for one source."""
    files = sorted(files)
    sources = Counter(_source_digits(file) for file in files)
    looked_at = [file for file in files if not is_remote(file) or sources[_source_digits(file)] > 1]
    return held_before((file for file in looked_at if not is_remote(file) or _source_digits(file)), opened_anywhere)


def _source_digits(file: str) -> str:
    """Return the half of the name of a file of late messages that stands for their source; empty of another file."""
    name = os.path.basename(file)
    return name[:SOURCE_DIGITS] if re.fullmatch(rf"[0-9a-f]{{{2 * SOURCE_DIGITS}}}\.avro", name) else ""


def opened_anywhere(path: str) -> AbstractContextManager[IO[bytes]]:
    """Open a file of messages, here or behind a URL; takes what ``opened`` and ``fetched`` take."""
    return fetched(path) if is_remote(path) else opened(path)
