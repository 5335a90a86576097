"""A copy of the specs and counts of results that are far away, for commands that read files of this machine."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from uldp.pipelines.results.files import ResultsError
from uldp.transforms.io.folders import COUNTS, FEW

#: The folders that questions need.
_FOLDERS = ("specs", COUNTS, FEW)


@contextmanager
def here(place: str) -> Iterator[Path]:
    """Give the folder itself if it is on this machine, or a copy of what questions need of a URL.

    Raises:
        EndpointError: if a file cannot be fetched.
        ResultsError: if there is none, or if a name leads out of the folder.
    """
    from uldp.transforms.io.folders import is_remote

    if not is_remote(place):
        yield Path(place)
        return
    from uldp.transforms.io.remote import fetched, matching

    root = place.rstrip("/")
    with tempfile.TemporaryDirectory() as folder:
        found = [file.path for name in _FOLDERS for file in matching(f"{root}/{name}/**")]
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
