"""Free space on the disk of a local stream: what runs beside the server needs some of it."""

import shutil
from pathlib import Path

from uldp.schemas.errors import EndpointError
from uldp.schemas.specs.mistakes import plain

#: So many bytes stay free, or this share of the disk, if that is less.
_FLOOR, _SHARE = 1 << 30, 0.05


class DiskSpace:
    """Looks at the disk of a folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def free(self) -> int:
        """Return the bytes that are free."""
        return shutil.disk_usage(self._path).free

    def check(self) -> None:
        """Do nothing while the disk has enough free space; then raise EndpointError."""
        disk = shutil.disk_usage(self._path)
        floor = min(_FLOOR, int(_SHARE * disk.total))
        if disk.free < floor:
            raise EndpointError(
                f"{plain(str(self._path))}: {disk.free >> 20:,} MiB of its disk are free, and the server leaves"
                f" {floor >> 20:,} to others; free some space"
            )
