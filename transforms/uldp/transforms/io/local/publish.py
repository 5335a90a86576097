"""Gives a file its name in one step, unless another file has that name: nobody sees half of it, and no file is lost.

Of several writers that want one name at a time, one gets it, on every file system:

- With hard links: the writer links the file to the name, which fails if the name is taken.
- Without: renaming would replace a file of another writer. So the writer locks the folder, sees that the name is free,
  renames the file, and ends the lock. If it is killed at any step, the system ends the lock, and the name is free or
  leads to the whole file. The file is never created under its name first: a reader would see an empty file, and a
  writer that is killed then would leave it there.
- On Windows: renaming fails if the name is taken.

The lock is of one machine, so several machines may write into one folder only if it has hard links for all of them. A
folder that has neither hard links nor locks is refused.
"""

import errno
import os
from pathlib import Path

from uldp.schemas.locks import locked_folder
from uldp.schemas.regular_files import FOLDER

#: What a file system says that has no hard links, or none for this user; EINVAL on Windows.
_NO_LINKS = (errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)


def publish(aside: Path, path: Path) -> None:
    """Name a file ``path`` that is complete under a temporary name in its folder, which may stay a second name.

    FileExistsError if there is anything at ``path``; NoLocksError if the folder has neither hard links nor locks;
    OSError if the operating system refuses it for another reason.
    """
    if _linked(aside, path):
        return
    if not FOLDER:  # Windows
        os.rename(aside, path)
        return
    with locked_folder(path.parent):
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        os.rename(aside, path)


def _linked(aside: Path, path: Path) -> bool:
    """Link a file to a second name; return whether the system and the file system can."""
    link = getattr(os, "link", None)
    if link is None:
        return False
    try:
        link(aside, path)
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    return True
