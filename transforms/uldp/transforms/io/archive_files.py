"""Which files below a folder hold messages, and how many of the others are left out, and why.

A file of messages has a name that ends in ``.avro``, in letters of any case. A hidden name begins with ``.`` or ``_``,
as the names of Hadoop, Spark and Flink do while a job writes; nothing below a hidden folder is read. Links are
followed, also out of the folder, but nothing is read twice.
"""

import os
import stat
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.folders import STREAM_FILES, STREAM_SETTINGS
from uldp.transforms.io.listing import LeftOut, Reason, ends_with, entries

_ENDING = ".avro"
_HIDDEN = (".", "_")


@dataclass
class ArchiveFiles:
    """The files of an archive."""

    read: list[str] = field(default_factory=list)  # the paths or URLs of the files to read, in order of name
    left_out: dict[Reason, LeftOut] = field(default_factory=dict)  # the others, by reason
    #: A line about each folder that cannot be listed, and each file of messages that is not there.
    unreadable: list[str] = field(default_factory=list)

    def leave_out(self, reason: Reason, name: str) -> None:
        """Count a file that is left out."""
        before = self.left_out.get(reason)
        self.left_out[reason] = LeftOut(1, name) if before is None else LeftOut(before.files + 1, before.first)


def is_hidden(name: str) -> bool:
    """Whether a name, or one of the folders in it, is hidden."""
    return any(part.startswith(_HIDDEN) for part in name.split("/"))


def _judge(found: ArchiveFiles, path: str, name: str) -> None:
    """Read a file, or leave it out, by its name below the folder."""
    if path.encode(errors="replace").decode() != path:
        found.unreadable.append(f"{plain(path)}: its name is no text in UTF-8; rename it")
        return
    if is_hidden(name):
        found.leave_out(Reason.HIDDEN, name)
    elif not ends_with(name, _ENDING):
        found.leave_out(Reason.ENDING, name)
    else:
        found.read.append(path)


def listed(root: str, urls: Iterable[str]) -> ArchiveFiles:
    """Return which of the files below a URL are read. Object stores tell of no links, and some of empty folders."""
    found, urls = ArchiveFiles(), list(urls)
    own = _own_files(urls)
    for url in urls:
        if not url.endswith("/") and url not in own:
            _judge(found, url, url.removeprefix(root).lstrip("/"))
    return found


def _own_files(paths: Iterable[str]) -> set[str]:
    """Return which files are local streams' own, beside its segments: they are neither messages nor left out."""
    streams = [path.removesuffix(STREAM_SETTINGS) for path in paths if path.endswith(f"/{STREAM_SETTINGS}")]
    return {f"{stream}{name}" for stream in streams for name in STREAM_FILES}


def walked(root: Path) -> ArchiveFiles:
    """Return which of the files below a folder on this machine are read."""
    walk = _Walk(root)
    walk.run()
    walk.found.read.sort(key=Path)
    return walk.found


class _Walk:
    """A walk over folders. Links come last, so of several ways to a file the walk takes one without a link."""

    def __init__(self, root: Path) -> None:
        self.found = ArchiveFiles()
        self._root, self._own = root, set[str]()
        self._folders, self._links = [root], deque[Path]()
        #: What is read already. A link to a folder around the root would lead to files that are not below it.
        self._seen = {_identity(folder.stat()) for folder in root.resolve().parents}

    def run(self) -> None:
        """Visit all that is there."""
        while self._folders or self._links:
            path = self._folders.pop() if self._folders else self._links.popleft()
            name = "" if path == self._root else path.relative_to(self._root).as_posix()
            try:
                self._visit(path, name)
            except OSError as error:
                self._pass_over(path, name, error)

    def _visit(self, path: Path, name: str) -> None:
        hidden = is_hidden(name)
        status = path.stat(follow_symlinks=not hidden)
        if not hidden:  # a link to what is hidden has a name of its own, by which it is to be read
            identity = _identity(status)
            if identity in self._seen:
                self.found.leave_out(Reason.TWICE, name)
                return
            if status.st_ino:  # some file systems have no number of a file
                self._seen.add(identity)
        if stat.S_ISDIR(status.st_mode):
            self._open(path)
        elif str(path) not in self._own:
            _judge(self.found, str(path), name)

    def _open(self, folder: Path) -> None:
        found = entries(folder)
        self._own |= _own_files(f"{folder}/{entry.name}" for entry in found)
        for entry in reversed(found):
            (self._links if entry.is_symlink() else self._folders).append(folder / entry.name)

    def _pass_over(self, path: Path, name: str, error: OSError) -> None:
        if is_hidden(name):
            self.found.leave_out(Reason.HIDDEN, name)
        elif path.is_symlink() and not ends_with(name, _ENDING):
            self.found.leave_out(Reason.BROKEN, name)
        else:
            self.found.unreadable.append(f"{plain(str(path))}: {error.strerror}; check the path and its permissions")


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
