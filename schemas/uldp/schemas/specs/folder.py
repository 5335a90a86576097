"""The folder of a spec, below which are the files that the spec names."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from uldp.schemas.specs.mistakes import plain
from uldp.schemas.specs.specfile import unreadable


@dataclass(frozen=True)
class SpecFolder:
    """Where the files are that a spec names.

    A spec may come from somebody else, and what is in these files reaches results that others read. So a spec opens
    regular files of its own folder alone, unless its user allows a larger folder.

    Attributes:
        below: The folder below which the files must be, with all links followed; None for the folder of the spec.
    """

    path: Path
    below: Path | None = None

    def find(self, name: str) -> Path:
        """Return the path of a file that the spec names; ValueError if it is no regular file below the allowed folder.

        The message does not name the file.
        """
        path, allowed = self.path / name, self.below or self.path
        try:
            inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(allowed))
            mode = path.stat().st_mode if inside else 0
        except (OSError, ValueError) as error:
            raise ValueError(unreadable(error)) from error
        if not inside:
            raise ValueError(
                f"the file is not below {plain(str(allowed))}; move it there, or allow another folder with uldp"
                " --files-below FOLDER"
            )
        if stat.S_ISDIR(mode):
            raise ValueError("Is a directory; check the path")
        if not stat.S_ISREG(mode):
            raise ValueError("a pipe, a socket or a device is no regular file; copy what it holds to a file")
        return path
