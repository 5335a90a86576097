"""Whether a job writes to a results directory now."""

import os
from pathlib import Path

from uldp.schemas.locks import NoLocksError, open_folder, try_lock


def is_running(out: Path) -> bool:
    """Return whether a process of this machine holds the lock of a job; nobody sees those of other machines.

    The function holds the lock for a moment itself, beside others who ask. A job that begins then tries again.
    """
    try:
        descriptor = open_folder(out)
        try:
            return not try_lock(descriptor, out, shared=True)
        finally:
            os.close(descriptor)
    except NoLocksError:  # no job runs where no folder can be locked
        return False
