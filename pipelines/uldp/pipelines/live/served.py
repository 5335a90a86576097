"""The results folders that are served, each under a name, and what is remembered of them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from uldp.pipelines.live.figures import FiguresOf
from uldp.pipelines.live.headers import Headers
from uldp.pipelines.live.watch import Watch
from uldp.pipelines.results.files import ResultsError, check_directory
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.locks import NoLocksError, open_folder, try_lock


@dataclass(frozen=True, eq=False)
class Served:
    """One results folder."""

    name: str  # its name in paths
    path: Path  # the folder
    watch: Watch  # what tells whether it has changed
    headers: Headers = field(repr=False)  # the newest header of each window
    figures: FiguresOf = field(repr=False)  # its figures for monitors

    @classmethod
    def of(cls, name: str, path: Path, private: Path | None = None) -> "Served":
        """Begin to serve a folder, whose rejected reports may be in another one."""
        watch = Watch(path)
        headers = Headers(path, watch)
        return cls(name, path, watch, headers, FiguresOf(headers, path, private))

    def folder(self, damaged: list[ResultsError]) -> ResultsFolder:
        """Open the folder as it is now; damage is added to a list."""
        return ResultsFolder(self.path, damaged.append)

    def texts(self, damaged: Sequence[ResultsError]) -> list[str]:
        """Write damage without the place of the folder, which is nobody's business far away."""
        return [str(error).replace(f"{self.path}/", "") for error in damaged]


def served(paths: Sequence[Path]) -> dict[str, Served]:
    """Name each folder by the last part of its path, numbered if taken; ResultsError if one is no directory."""
    found: dict[str, Served] = {}
    for path in paths:
        check_directory(path)
        first = path.resolve().name or "results"
        names = (first, *(f"{first}-{number}" for number in range(2, len(paths) + 1)))
        name = next(name for name in names if name not in found)
        found[name] = Served.of(name, path.resolve())
    return found


def is_running(out: Path) -> bool:
    """Return whether a process here holds a job's lock, by holding it for a moment; a job that begins tries again."""
    try:
        descriptor = open_folder(out)
        try:
            return not try_lock(descriptor, out, shared=True)
        finally:
            os.close(descriptor)
    except NoLocksError:  # no job runs where no folder can be locked
        return False
