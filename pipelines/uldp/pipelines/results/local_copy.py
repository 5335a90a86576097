"""A copy of specs, counts and journal of results that are far away, for commands that read files of this machine."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from uldp.pipelines.results.files import ResultsError
from uldp.transforms.io.folders import COUNTS, FEW, is_remote
from uldp.transforms.io.local.journal import JOURNAL
from uldp.transforms.io.remote import fetched, matching

if TYPE_CHECKING:
    from apache_beam.io.filesystem import FileMetadata

#: The folders and files that questions need.
_NEEDED = ("specs", COUNTS, FEW, JOURNAL)


@contextmanager
def here(place: str, names: Sequence[str] = _NEEDED) -> Iterator[Path]:
    """Give a folder, or a copy of parts of a URL, by default for questions; EndpointError or ResultsError if not."""
    if not is_remote(place):
        yield Path(place)
        return
    root = place.rstrip("/")
    with tempfile.TemporaryDirectory() as folder:
        found = [file.path for name in names for file in _below(f"{root}/{name}")]
        for path in found:
            name = PurePosixPath(path[len(root) + 1 :])
            if name.is_absolute() or ".." in name.parts:
                raise ResultsError(f"{path}: a name with .. is none that a job writes; remove the file")
            target = Path(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            with fetched(path) as file, target.open("wb") as copy:
                shutil.copyfileobj(file, copy, length=1 << 20)
        if not found:
            raise ResultsError(f"{place}: holds no specs and no counts; give the URL of results")
        yield Path(folder)


def _below(url: str) -> "Iterator[FileMetadata]":
    """Yield the file of a URL, or those of a folder."""
    yield from matching(url)
    yield from matching(f"{url}/**")
