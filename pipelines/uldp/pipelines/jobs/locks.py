"""The lock of a results directory: one job on this machine writes to it at a time."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from uldp.pipelines.results.files import ResultsError
from uldp.schemas.locks import open_folder, try_lock
from uldp.schemas.regular_files import is_at
from uldp.transforms.io.durable_files import make_folder

#: How long to wait for a directory that another process has locked, because a stopped job needs some time to end.
LOCK_SECONDS = 20.0


@contextmanager
def locked(out: Path, option: str) -> Iterator[None]:
    """Create a directory, which ``option`` names, and lock it until the context or this process ends.

    The lock is on the directory itself, because a file in it could be removed meanwhile. ResultsError if another
    process holds it for more than ``LOCK_SECONDS``, or the directory was removed or replaced. NoLocksError if the file
    system has no locks of folders.
    """
    descriptor = _lock(out, option)
    try:
        yield
        if not is_at(descriptor, out):
            raise ResultsError(
                f"{out}: was removed or replaced while the job wrote to it, so results are missing; run the job again"
                " into a new directory"
            )
    finally:
        os.close(descriptor)


def _lock(out: Path, option: str) -> int:
    """Return the descriptor of the directory that is at ``out`` once its lock is held."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        with suppress(FileNotFoundError):  # not made yet, or removed again
            descriptor = open_folder(out)
            if try_lock(descriptor, out) and is_at(descriptor, out):
                return descriptor
            os.close(descriptor)
            if time.monotonic() > deadline:
                raise ResultsError(f"{out}: another job is writing to it; wait for its end, or choose another {option}")
            time.sleep(0.1)
        make_folder(out.absolute())
