"""A value on which processes agree, in a folder that all of them see; each value is made from the one before.

A process that wants another value writes a ballot above all that it sees, looks for the highest value, makes its own
from that, and writes it under the ballot. A value holds for a process that has read it and has then found no ballot
above it.

So no two processes go on from different values. If one holds V, then whoever writes a ballot above V does so after the
first has looked, and looks for values after that: it finds V, or a value that was made from V. What a slower process
still writes below holds for nobody. Neither clocks nor waiting decide anything, and a process may be stopped or killed
at any line. These are the ballots of Disk Paxos (Gafni and Lamport, Distributed Computing 2003), in one store.

The store must show a file in each listing that begins after the file was written. Disks, Google Cloud Storage and S3
do; a mount of NFS does if it caches no names.
"""

import re
import secrets
import time
from collections.abc import Callable, Set
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from uldp.schemas.errors import EndpointError
from uldp.schemas.regular_files import open_regular, read_bounded
from uldp.transforms.io.durable_files import remove_file, write_file
from uldp.transforms.io.folders import is_remote
from uldp.transforms.io.listing import entries
from uldp.transforms.io.remote import fetched, matching

#: The largest value in bytes.
MAX_BYTES = 64 << 20
_BALLOT, _VALUE = ".ballot", ".json"
_NAME = re.compile(r"(?P<ballot>\d{12}-[0-9a-f]{16})(?P<ending>\.ballot|\.json)")


class Store(Protocol):
    """Named files."""

    def names(self) -> Set[str]:
        """Return the names of all files."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it is gone."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file in one step."""

    def remove(self, name: str) -> None:
        """Remove a file, unless it is gone."""


class FolderStore:
    """The files of a folder, here or behind a URL of another of Beam's file systems.

    Raises:
        EndpointError, OSError: from each method, if the folder cannot be read or written.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def names(self) -> Set[str]:
        """Return the names of all files that are complete."""
        if is_remote(self._folder):
            return {file.path.rpartition("/")[2] for file in matching(f"{self._folder}/*")}
        with suppress(FileNotFoundError):
            return {name for name in (entry.name for entry in entries(Path(self._folder))) if not name.startswith(".")}
        return set()

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it is gone."""
        if not is_remote(self._folder):
            with suppress(FileNotFoundError), open_regular(Path(self._folder, name)) as file:
                return read_bounded(file, MAX_BYTES)
            return None
        try:
            with fetched(f"{self._folder}/{name}") as file:
                return read_bounded(file, MAX_BYTES)
        except EndpointError:
            if name in self.names():
                raise
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file in one step."""
        write_file(f"{self._folder}/{name}", content)

    def remove(self, name: str) -> None:
        """Remove a file, unless it is gone."""
        remove_file(f"{self._folder}/{name}")


class _Seen(NamedTuple):
    """What a listing has: the highest ballot, and the ballots with a value; in the order of text."""

    top: str | None
    valued: Set[str]


class Agreed:
    """A value on which processes agree.

    Args:
        store: Holds the ballots and their values, and nothing else.
        wait: Sleeps for seconds.
    """

    #: Seconds in which a ballot of another process gets its value, before this process writes one above it; twice as
    #: long after each time that this was too short.
    PATIENCE = 1.0

    def __init__(self, store: Store, wait: Callable[[float], None] = time.sleep) -> None:
        self._store, self._wait = store, wait

    @property
    def begun(self) -> bool:
        """Whether there is a value."""
        return bool(self._look().valued)

    def agree(self, enough: Callable[[bytes], bool], following: Callable[[bytes | None], bytes]) -> bytes:
        """Return the newest value if it is enough, and one that follows it otherwise.

        Args:
            enough: Whether a value is what this process needs.
            following: Returns a value that is, made from the one before; from None if there is none. It may be called
                more than once. It should be quick, because other processes wait for it.
        """
        patience = self.PATIENCE
        while True:
            seen = self._look()
            if seen.top in seen.valued:
                value = self._store.read(f"{seen.top}{_VALUE}")
                if value is None or self._look().top != seen.top:
                    continue
                if enough(value):
                    return value
            elif seen.top is not None and self._changes(seen, patience):
                continue
            proposed = self._propose(seen.top, following)
            if proposed is not None:
                return proposed
            patience *= 2

    def _propose(self, top: str | None, following: Callable[[bytes | None], bytes]) -> bytes | None:
        """Write a value above all that are there; return it if it holds."""
        number = 0 if top is None else int(top.partition("-")[0])
        mine = f"{number + 1:012d}-{secrets.token_hex(8)}"
        self._store.write(f"{mine}{_BALLOT}", b"")
        try:
            below = max((each for each in self._look().valued if each < mine), default=None)
            before = None if below is None else self._store.read(f"{below}{_VALUE}")
            if before is None and (below is not None or self._look().top != mine):
                self._remove(f"{mine}{_BALLOT}")  # whoever has a ballot above may have removed the value before
                return None
            value = following(before)
        except BaseException:
            self._remove(f"{mine}{_BALLOT}")  # spare others the wait
            raise
        # The ballot stays if this fails: the store may show the value later, and none below it may hold then.
        self._store.write(f"{mine}{_VALUE}", value)
        if self._look().top != mine:
            return None
        for name in self._names():
            if (found := _NAME.fullmatch(name)) is not None and found["ballot"] < mine:
                self._remove(name)
        return value

    def _names(self) -> Set[str]:
        """Return the names of all files; none if the store does not say."""
        with suppress(EndpointError, OSError):
            return self._store.names()
        return set()

    def _remove(self, name: str) -> None:
        """Remove a file that nobody needs; if the store does not, whoever comes next removes it too."""
        with suppress(EndpointError, OSError):
            self._store.remove(name)

    def _look(self) -> _Seen:
        found = [match for name in self._store.names() if (match := _NAME.fullmatch(name)) is not None]
        valued = {match["ballot"] for match in found if match["ending"] == _VALUE}
        return _Seen(max((match["ballot"] for match in found), default=None), valued)

    def _changes(self, seen: _Seen, patience: float) -> bool:
        """Wait until there is another highest ballot or its value; return whether there is."""
        pause, waited = 0.01, 0.0
        while waited < patience:
            self._wait(pause)
            waited += pause
            pause = min(2 * pause, 0.2)
            if self._look() != seen:
                return True
        return False
