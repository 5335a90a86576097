"""The place where a device keeps its permanent responses, and the end of the window of its last report."""

import contextlib
import json
import os
from pathlib import Path
from typing import Protocol

from uldp.schemas.mistakes import plain


class Ledger(Protocol):
    """What a device remembers, by key. It is as secret as the values: who reads it can tell which value a device holds.

    Keep it for as long as the device reports, also for values that the device does not hold any more. A device that
    loses its ledger draws new permanent responses, and spends the lasting budget once more.
    """

    def recall(self, key: str) -> bytes | None:
        """Return what was remembered last for a key, or None."""

    def remember(self, key: str, payload: bytes) -> None:
        """Keep a payload for a key, in place of an earlier one. When this returns, a restart does not forget it."""


class MemoryLedger:
    """A ledger that a restart forgets, for tests of clients."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def recall(self, key: str) -> bytes | None:
        """Return what was remembered last for a key, or None."""
        return self._kept.get(key)

    def remember(self, key: str, payload: bytes) -> None:
        """Keep a payload for a key."""
        self._kept[key] = payload


class FileLedger:
    """A ledger in a JSON file, which only its owner may read and write (mode 0600).

    Each change writes the whole file aside and renames it, so that a crash leaves the file before or after the change.
    Only one process at a time may use a ledger. The file system and its backups may keep earlier contents.

    Args:
        path: The file; the first change creates it. Its folder must exist.

    Raises:
        ValueError: if others may read or write the file, or it holds no ledger. The message has no content of it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept = _read(path)

    def __repr__(self) -> str:
        return f"FileLedger({str(self._path)!r})"

    def recall(self, key: str) -> bytes | None:
        """Return what was remembered last for a key, or None."""
        return self._kept.get(key)

    def remember(self, key: str, payload: bytes) -> None:
        """Keep a payload for a key, and write the file.

        Raises:
            OSError: if the file cannot be written.
        """
        kept = self._kept | {key: payload}
        _write(self._path, kept)
        self._kept = kept


def _read(path: Path) -> dict[str, bytes]:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                name = plain(str(path))
                raise ValueError(f"{name}: others may read this ledger, or write it; give it the mode 0600")
            content = file.read()
    except FileNotFoundError:
        return {}
    with contextlib.suppress(ValueError, AttributeError, TypeError):
        return {key: bytes.fromhex(payload) for key, payload in json.loads(content).items()}
    # Not raised from the error of JSON, because that holds the content.
    raise ValueError(
        f"{plain(str(path))}: this is no ledger, or it is damaged; restore it, or remove it and spend the lasting"
        " budget of each value once more"
    )


def _write(path: Path, kept: dict[str, bytes]) -> None:
    aside = path.with_name(f"{path.name}.new")
    aside.unlink(missing_ok=True)  # a crash may have left it
    try:
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            json.dump({key: payload.hex() for key, payload in kept.items()}, file)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # else a power cut could undo the renaming
    finally:
        os.close(folder)
