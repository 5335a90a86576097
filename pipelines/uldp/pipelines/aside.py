"""A file that a command writes for its user: it is there whole or not at all, and an older one stays until then."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from uldp.schemas.file_errors import named
from uldp.transforms.io.folders import aside_name


@contextmanager
def written_aside(target: Path) -> Iterator[Path]:
    """Give a hidden path that becomes the target if all goes well; a pipe or a device is written itself.

    Errors of files other than the target keep their names. OSError if the operating system refuses to write the file.
    """
    target = Path(os.path.realpath(target))  # a link stays a link
    if target.exists() and not target.is_file():
        with _named(target, target):
            yield target
        return
    path = target.with_name(aside_name(target.name))
    try:
        with _named(path, target):
            yield path
            with path.open("r+b") as file:  # Windows synchronizes only what can be written
                os.fsync(file.fileno())  # else a power cut could leave an empty file under the name
            path.replace(target)
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def _named(path: Path, target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.filename in (None, str(path)):
            with named(target):
                raise
        raise
