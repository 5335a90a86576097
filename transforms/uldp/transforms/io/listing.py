"""What a folder on this machine holds. No other module lists folders; what is left out is decided, and said, here.

A command reads regular files alone: a pipe would never end, and a device could do anything.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path

from uldp.schemas.specs.mistakes import plain

#: What the name of a spec ends in, in letters of any case.
_SPEC_ENDINGS = (".yaml", ".yml")


class Reason(StrEnum):
    """Why a file of an archive is left out; the text follows the number of files in a line."""

    HIDDEN = "hidden by a name that begins with . or _"
    ENDING = "with a name that does not end in .avro"
    TWICE = "linked to what is read already, or to a folder around it"
    BROKEN = "linked to nothing"
    GIVEN_UP = "given up as lost before it came back"


@dataclass(frozen=True)
class LeftOut:
    """Files that are left out for one reason: how many, and the first of them, as a path below the folder."""

    files: int
    first: str


def left_out_text(left_out: Mapping[Reason, LeftOut]) -> str:
    """Return what is left out as one line.

    >>> left_out_text({Reason.HIDDEN: LeftOut(2, "_temporary/0/a.avro"), Reason.BROKEN: LeftOut(1, "b")})
    'left out 3 files: 2 hidden by a name that begins with . or _ (as _temporary/0/a.avro), 1 linked to nothing (as b)'
    """
    files = sum(each.files for each in left_out.values())
    reasons = (f"{each.files:,} {reason} (as {plain(each.first)})" for reason, each in sorted(left_out.items()))
    return f"left out {files:,} file{'s' if files > 1 else ''}: {', '.join(reasons)}"


def ends_with(name: str, endings: str | tuple[str, ...]) -> bool:
    """Whether a name ends so, in letters of any case."""
    return name.casefold().endswith(endings)


def entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return all entries of a folder, in order of name; OSError if there is none, or it cannot be listed."""
    with os.scandir(folder) as found:
        return sorted(found, key=lambda entry: entry.name)


def is_empty(folder: Path) -> bool:
    """Whether a path is a folder without entries."""
    return folder.is_dir() and not some_entries(folder, 1)


def some_entries(folder: Path, most: int) -> list[Path]:
    """Return the first entries of a folder as the system lists them; none of what is no folder."""
    return list(islice(folder.iterdir(), most)) if folder.is_dir() else []


def some_below(folder: Path, most: int) -> list[Path]:
    """Return the first entries at any depth below a folder."""
    return list(islice(folder.rglob("*"), most))


def paths_below(folder: Path, pattern: str) -> list[Path]:
    """List what ``glob`` finds below a folder, while another command may remove folders there."""
    while True:
        try:
            return list(folder.glob(pattern))
        except FileNotFoundError:  # uldp compact has just removed a folder
            continue


def files_below(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the regular files at any depth below a folder, and links to such files; none that goes meanwhile."""
    for root, _, names in os.walk(folder):
        for path in (Path(root, name) for name in sorted(names)):
            try:
                status = path.stat()
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield path, status


def spec_files(folder: Path) -> tuple[list[Path], dict[str, str]]:
    """Return what is called as a spec in a folder, and why others, but for CSV, are left out; OSError if unlisted."""
    read, others = [], {}
    for entry in entries(folder):
        if entry.name.startswith("."):
            others[entry.name] = "hidden by a name that begins with ."
        elif ends_with(entry.name, _SPEC_ENDINGS):
            read.append(folder / entry.name)
        elif not ends_with(entry.name, ".csv"):
            others[entry.name] = f"no spec by its name, which ends in neither {' nor '.join(_SPEC_ENDINGS)}"
    return read, others


def others_text(others: Mapping[str, str], most: int = 5) -> Iterator[str]:
    """Yield a line about entries that are left out for each reason, with the names of the first of them.

    >>> list(others_text({"a.csv": "no spec", "b": "no spec", "c": "a pipe"}))
    ['left out a.csv, b: no spec', 'left out c: a pipe']
    """
    for reason in dict.fromkeys(others.values()):
        names = [plain(name) for name, why in others.items() if why == reason]
        more = f" and {len(names) - most:,} more" if len(names) > most else ""
        yield f"left out {', '.join(names[:most])}{more}: {reason}"
