"""Whether a results folder has changed: a look at the times of its folders, which opens no file.

A writer renames each file into its folder, so the modification time of the folder changes with it. So that many
readers cost no more than one, a look is taken at most once a second, and takes at most a fiftieth of all time.
"""

import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from uldp.pipelines.results.panes import ESTIMATES, PANES
from uldp.transforms.io.folders import MISSING
from uldp.transforms.io.listing import entries

#: Folders of panes, whose own time tells of their files.
_OF_PANES = (PANES.folder, ESTIMATES.folder)
#: Folders of which the files are told apart too, or those one below.
_OTHERS = ("specs", MISSING, "rejected")
#: A file that is written in the same tick of a file system's clock as a look changes no time any more.
_TICK_NS = 100_000_000


class Watch:
    """Watches a results folder, a look ``least`` seconds after the last, for a ``share`` of all time at most."""

    def __init__(self, folder: Path, *, least: float = 1.0, share: float = 0.02) -> None:
        self.least, self.share = least, share
        self._folder = folder
        self._lock = threading.Lock()
        self._run = secrets.token_hex(4)  # an earlier server may have given the same numbers to other states
        self._changes = 0
        self._times: Mapping[str, int] = {}
        self._fresh_until = -1.0

    def state(self) -> str:
        """Return the name of the state of the folder; another one if anything has changed."""
        with self._lock:
            began = time.monotonic()
            if began >= self._fresh_until:
                times = dict(_times(self._folder, time.time_ns()))
                if times != self._times or not self._changes:
                    self._times, self._changes = times, self._changes + 1
                took = time.monotonic() - began
                self._fresh_until = began + max(self.least, took / self.share)
            return f"{self._run}-{self._changes}"


def _times(folder: Path, now: int) -> Iterator[tuple[str, int]]:
    """Yield the paths of folders with their modification times; below 0 if a file may still come unseen."""
    for name in (*_OF_PANES, *_OTHERS):
        with suppress(OSError):
            yield name, _settled((folder / name).stat().st_mtime_ns, now)
    for name in _OTHERS:
        with suppress(FileNotFoundError, NotADirectoryError):
            for entry in entries(folder / name):
                yield f"{name}/{entry.name}", _time(entry, now)


def _time(entry: os.DirEntry[str], now: int) -> int:
    try:
        return _settled(entry.stat().st_mtime_ns, now)
    except OSError:  # removed since it was listed
        return 0


def _settled(modified: int, now: int) -> int:
    return -now if abs(now - modified) < _TICK_NS else modified
