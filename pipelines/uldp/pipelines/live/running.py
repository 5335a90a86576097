"""Whether a job writes to a results directory now."""

import os
from pathlib import Path

from uldp.schemas.locks import NoLocksError, open_folder, try_lock


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
