"""A copy of specs, counts and journal of results that are far away, for commands that read files of this machine."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from uldp.pipelines.results.files import ResultsError
from uldp.transforms.io.folders import COUNTS, FEW, is_remote
from uldp.transforms.io.local.journal import JOURNAL
from uldp.transforms.io.remote import copy_below

#: The folders and files that questions need.
_NEEDED = ("specs", COUNTS, FEW, JOURNAL)


@contextmanager
def here(place: str, names: Sequence[str] = _NEEDED) -> Iterator[Path]:
    """Give a folder, or a copy of parts of a URL, by default for questions; EndpointError or ResultsError if not."""
    if not is_remote(place):
        yield Path(place)
        return
    with TemporaryDirectory() as made:
        folder = Path(made)
        # Each name is that of a file, or of a folder.
        found = [copy_below(place, pattern, folder) for name in names for pattern in (name, f"{name}/**")]
        if not any(found):
            raise ResultsError(f"{place}: holds no specs and no counts; give the URL of results")
        yield folder
