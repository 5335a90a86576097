"""Files that are there whole or not at all: a file gets a temporary name first, and is then renamed."""

import errno
import hashlib
import io
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import fastavro

from uldp.schemas.codec.blocks import MAX_BLOCK_BYTES, SYNC_SIZE
from uldp.schemas.codec.columnar import write_varint
from uldp.schemas.codec.container import BLOCK_SIZE, write_header
from uldp.schemas.file_errors import named
from uldp.schemas.framing import load_schema
from uldp.schemas.locks import locked_folder
from uldp.schemas.regular_files import FOLDER, sync_folder
from uldp.transforms.io import remote
from uldp.transforms.io.folders import aside_name, is_remote
from uldp.transforms.io.listing import paths_below

#: Files that are written at a time.
_THREADS = 4


def encode_record(schema: str, record: Mapping[str, Any]) -> bytes:
    """Return a record as it is in a block of a container file."""
    body = io.BytesIO()
    fastavro.schemaless_writer(body, load_schema(schema), record)
    return body.getvalue()


def digest_of(encoded: Sequence[bytes]) -> bytes:
    """Return 16 bytes that name records, whatever the version of the library that compresses them."""
    digest = hashlib.sha256()
    for record in encoded:
        digest.update(record)
    return digest.digest()[:SYNC_SIZE]


def container_bytes(
    schema: str,
    encoded: Sequence[bytes],
    *,
    deflated: bool = False,
    metadata: Mapping[str, str] | None = None,
    block_size: int = BLOCK_SIZE,
) -> bytes:
    """Return an Avro container of records that ``encode_record`` has encoded; equal records give equal bytes.

    Blocks are of ``block_size``, see ``blocks_of``, and ``deflated`` unless a record is too large for that.
    ``metadata`` are further entries of the header.
    """
    marker, blocks = digest_of(encoded), list(blocks_of(encoded, block_size))
    deflated = deflated and max((sum(map(len, block)) for block in blocks), default=0) <= MAX_BLOCK_BYTES
    header = io.BytesIO()
    write_header(header, schema, marker, metadata or {}, "deflate" if deflated else "null")
    parts = [header.getvalue()]
    for records in blocks:
        block = [_deflate(records)] if deflated else records
        parts += [write_varint(len(records)), write_varint(sum(map(len, block))), *block, marker]
    return b"".join(parts)  # the only copy of records that are not compressed


def _deflate(records: Sequence[bytes]) -> bytes:
    # Higher levels take twice as long, and make random ids and counts no smaller.
    compressor = zlib.compressobj(1, wbits=-zlib.MAX_WBITS)
    return b"".join([*map(compressor.compress, records), compressor.flush()])


def blocks_of(encoded: Sequence[bytes], block_size: int) -> Iterator[Sequence[bytes]]:
    """Cut records into blocks of so many bytes, because a reader holds a whole block in memory."""
    first = size = 0
    for end, record in enumerate(encoded, 1):
        size += len(record)
        if size >= block_size or end == len(encoded):
            yield encoded[first:end]
            first, size = end, 0


#: The temporary names; they end otherwise than all that a reader lists, so that no pattern finds a file twice.
ASIDE = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{16}\.tmp")


def remove_aside(folder: Path) -> int:
    """Remove files of a killed writer below a folder that nobody else writes to, and return their number."""
    left = [path for path in paths_below(folder, "**/.*.tmp") if ASIDE.fullmatch(path.name) and path.is_file()]
    for path in left:
        path.unlink(missing_ok=True)
    return len(left)


def write_file(path: str, content: bytes, *, private: bool = False) -> None:
    """Write a file in one step, replacing any file at ``path``, which may be on any of Beam's file systems.

    On this machine, the disk then holds the file and its names, and only the owner may read it and new folders if
    ``private``; elsewhere rights belong to a bucket. OSError if the operating system refuses it.
    """
    if is_remote(path):
        folder, _, name = path.rpartition("/")
        remote.write_in_one_step(f"{folder}/{aside_name(name)}", path, content)
    else:
        with named(path):
            _write_here(path if os.path.isabs(path) else os.path.join(os.getcwd(), path), content, private=private)


def write_files(files: Sequence[tuple[str, bytes]], *, private: bool = False) -> None:
    """Write files as ``write_file``, several at a time here: a disk commits the files of several threads at once."""
    if len(files) > 1 and not is_remote(files[0][0]):
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(lambda file: write_file(*file, private=private), files))
    else:
        for path, content in files:
            write_file(path, content, private=private)


def remove_file(path: str) -> None:
    """Remove a file, here or on another of Beam's file systems, unless it is gone already."""
    if not is_remote(path):
        Path(path).unlink(missing_ok=True)
    else:
        remote.remove(path)


def _write_here(path: str, content: bytes, *, private: bool) -> None:
    # Strings, and no look whether the folder is there: a Path for each name took a third of the time of a small file.
    folder, name = os.path.split(path)
    aside = os.path.join(folder, aside_name(name))
    while True:
        try:
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
            break
        except (FileNotFoundError, NotADirectoryError):
            # Again, if uldp compact removes the empty folder meanwhile; of what cannot be made, this raises an error.
            make_folder(Path(folder), 0o700 if private else 0o777)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # else a power cut could leave an empty file under the name
        os.replace(aside, path)
        sync_folder(folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(aside)
        raise


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make an absolute folder and those above it, and write their names to the disk, or a power cut loses its files."""
    if folder.is_dir():
        return
    make_folder(folder.parent, mode)
    folder.mkdir(mode=mode, exist_ok=True)
    with suppress(PermissionError):  # a folder that may not be listed cannot be opened
        sync_folder(folder.parent)


#: What a file system says that has no hard links, or none for this user; EINVAL on Windows.
_NO_LINKS = (errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)


def publish(aside: Path, path: Path) -> None:
    """Name a file ``path`` that is complete under a temporary name in its folder, unless another file has the name.

    Of several writers that want one name, one gets it, on every file system: by a hard link, which fails if the name is
    taken, and on Windows by renaming, which fails too. Without hard links, renaming would replace another writer's
    file, so the writer locks the folder, sees that the name is free, and renames. If it is killed, the system ends the
    lock, and the name is free or leads to the whole file. The lock is of one machine, so several may write into one
    folder only if it has hard links for all of them.

    The temporary name may stay, as a second name. FileExistsError if there is anything at ``path``; NoLocksError if the
    folder has neither hard links nor locks; OSError if the operating system refuses it for another reason.
    """
    if _linked(aside, path):
        return
    if not FOLDER:  # Windows
        os.rename(aside, path)
        return
    with locked_folder(path.parent):
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        os.rename(aside, path)


def _linked(aside: Path, path: Path) -> bool:
    """Link a file to a second name; return whether the system and the file system can."""
    link = getattr(os, "link", None)
    if link is None:
        return False
    try:
        link(aside, path)
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    return True
