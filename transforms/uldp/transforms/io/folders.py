"""Kinds of folders and files: an error names the kind that a command wants, and the kind that the user gave."""

import secrets
from enum import StrEnum
from pathlib import Path

from uldp.schemas.codec.blocks import Container, ContainerError, open_file
from uldp.transforms.io.listing import paths_below, some_below, some_entries

#: The file that makes a directory a local stream.
STREAM_SETTINGS = "stream.json"
#: The file that says that a local stream is complete.
CLOSED = "closed"
#: The files of a local stream besides its segments.
STREAM_FILES = (STREAM_SETTINGS, CLOSED)
#: The file that identifies the job of a results directory.
JOB = "job.json"
#: The folder of statistics, for analysts. If a statistic is of too few reports, its header alone is there.
COUNTS = "counts"
#: The folder of the statistics of too few reports, with their cells. Only the owner may read it.
FEW = "few"
#: The file that names the folders of a merge, beside its results.
MERGED = "merged.json"
#: The folder of records of missing messages.
MISSING = "missing"
#: The folder of the ids of counted reports, if the job keeps them.
IDS = "ids"
#: The folders by which results are known whose identity is lost.
_OF_RESULTS = frozenset({COUNTS, FEW, "estimates", "late", "rejected"})
#: The record of the files that a backfill left out of its archive.
LEFT_OUT = "left_out.json"
#: Half of the digits of the name of a file of late or rejected reports: a digest of the segment, file or partition that
#: they come from. The others are a digest of the records.
SOURCE_DIGITS = 16
#: The maximum number of a folder's entries to look at.
_MAX_ENTRIES = 1000


def is_remote(path: str) -> bool:
    """Whether a path is a URL, of another of Beam's file systems; who asks needs no Beam for a path of this machine."""
    return "://" in path


def below(folder: str, *names: str) -> str:
    """Return the path or the URL of what is below a folder: slashes separate names on each of Beam's file systems.

    >>> below("gs://bucket/results/", "specs", "c-v1")
    'gs://bucket/results/specs/c-v1'
    """
    return "/".join((folder.rstrip("/"), *names))


class Kind(StrEnum):
    """What a folder or a file holds, as an error calls it."""

    STREAM = "a local stream"
    RESULTS = "results"
    MESSAGES = "messages"
    REJECTED = "rejected reports"
    MISSING = "records of missing messages"
    ESTIMATES = "estimates"
    COUNTS = "support counts"
    IDS = "ids of counted reports"
    EMPTY = "nothing"
    OTHER = "nothing that uldp writes"


#: The kind of the records of each schema that ships.
KINDS = {
    "message": Kind.MESSAGES,
    "rejected": Kind.REJECTED,
    "missing": Kind.MISSING,
    "estimate": Kind.ESTIMATES,
    "statistic": Kind.COUNTS,
    "ids": Kind.IDS,
}


def aside_name(name: str) -> str:
    """Return a temporary name for a file, until it is complete."""
    return f".{name}.{secrets.token_hex(8)}.tmp"


def kind_of(path: Path) -> Kind:
    """Return the kind of a folder, by its own files or by the first Avro file below it; or the kind of a file."""
    if path.is_file():
        return _kind_of_file(path)
    if (path / STREAM_SETTINGS).is_file():
        return Kind.STREAM
    if (path / JOB).is_file() or paths_below(path, "specs/*/spec.yaml"):
        return Kind.RESULTS
    entries = [entry for entry in some_below(path, _MAX_ENTRIES) if not entry.name.startswith(".")]
    first = next((entry for entry in entries if entry.suffix == ".avro" and not entry.is_dir()), None)
    return _kind_of_file(first) if first is not None else Kind.OTHER if entries else Kind.EMPTY


def _kind_of_file(path: Path) -> Kind:
    try:
        with open_file(path) as file:
            return KINDS[Container.open(file).name]
    except (ContainerError, OSError):  # an unreadable file tells nothing of its folder; whoever reads it says why
        return Kind.OTHER


def mismatch(path: Path, wanted: Kind) -> str:
    """Say what ``path`` holds instead of the wanted kind, and name a folder around or below it of that kind.

    >>> mismatch(Path("no/such/folder"), Kind.RESULTS)
    'no/such/folder: no such file or directory; give a directory that holds results'
    """
    near = sorted(entry for entry in some_entries(path, _MAX_ENTRIES) if entry.is_dir())
    if wanted is Kind.RESULTS:  # identified by files of their own, not by files at any depth below
        near.append(path.parent)
    hint = next((f", such as {entry}" for entry in near if kind_of(entry) is wanted), "")
    found = f"holds {kind_of(path)}" if path.exists() else "no such file or directory"
    lost = or_restore(path) if wanted is Kind.RESULTS else ""
    return f"{path}: {found}; give a directory that holds {wanted}{hint}{lost}"


def or_restore(path: Path) -> str:
    """Return the end of an error about a folder that is not one of results: how to mend it if it has been one."""
    lost = path.is_dir() and any((path / name).is_dir() for name in _OF_RESULTS) and not (path / JOB).exists()
    return f", or restore {JOB}" if lost else ""
