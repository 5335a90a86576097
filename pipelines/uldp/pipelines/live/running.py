"""Whether a job writes to a results directory now."""

import fcntl
import os
from pathlib import Path


def is_running(out: Path) -> bool:
    """Return whether a process of this machine holds the lock of a job; nobody sees those of other machines.

    The function holds the lock for a moment itself, beside others who ask. A job that begins then tries again.
    """
    descriptor = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
