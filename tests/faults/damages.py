"""What can happen to a file."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

#: Damages a file; takes the file, and the same one as it was earlier, which may not have been there.
Damage = Callable[[Path, Path], None]


def remove(path: Path, earlier: Path) -> None:
    path.unlink()


def truncate(path: Path, earlier: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])


def empty(path: Path, earlier: Path) -> None:
    path.write_bytes(b"")


def double(path: Path, earlier: Path) -> None:
    """Copy a file to the next name of its kind, as a backup that is unpacked twice does."""
    number, digits = 1, len(path.stem)
    copy = path.with_name(f"copy-of-{path.name}")
    if path.stem.isdecimal():
        while (copy := path.with_name(f"{int(path.stem) + number:0{digits}d}{path.suffix}")).exists():
            number += 1
    shutil.copyfile(path, copy)


def restore(path: Path, earlier: Path) -> None:
    """Put back what was there earlier: another content, or nothing."""
    path.unlink()
    if earlier.exists():
        shutil.copyfile(earlier, path)


DAMAGES: Mapping[str, Damage] = {
    "removed": remove,
    "truncated": truncate,
    "emptied": empty,
    "doubled": double,
    "restored": restore,
}
