"""The memory of a device: its permanent responses, the windows that it has reported to, and what its user has spent."""

import contextlib
import copy
import hashlib
import json
import os
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from uldp.mechanisms.devices.spending import Spending
from uldp.schemas.specs.mistakes import plain

#: The format of the file. Files of format 1 are a mapping of keys without a salt to payloads, and nothing else.
_FORMAT = 2


@dataclass
class LedgerContent:
    """The content of a ledger.

    Attributes:
        salt: Random bytes in each key, so that nobody can find values by hashing all of a domain who reads keys alone.
            Empty in a ledger whose keys have none, because an earlier version has begun it.
        kept: Payloads by key.
        spent: What the user has spent, over all collections.
    """

    salt: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    kept: dict[str, bytes] = field(default_factory=dict)
    spent: list[Spending] = field(default_factory=list)

    def key(self, name: str) -> str:
        """Return the key of an entry."""
        return hashlib.sha256(self.salt + name.encode()).hexdigest()


class Ledger(Protocol):
    """The memory of a device. It is as secret as the values: who reads it can tell which value a device holds.

    All collections of one user share one ledger, so that their spendings add up. Keep it for as long as the device
    reports, also for values that the device does not hold any more. A device that loses its ledger draws new permanent
    responses, and spends the lasting budget and the budget of each period once more.
    """

    def change(self) -> contextlib.AbstractContextManager[LedgerContent]:
        """Give the content to one device at a time, which may change it.

        When the block ends, a restart does not forget the change. If it ends by an error, nothing has changed.
        """


class MemoryLedger:
    """A ledger that a restart forgets, for tests of clients."""

    def __init__(self) -> None:
        self._content = LedgerContent()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def change(self) -> Iterator[LedgerContent]:
        """Give the content to one thread at a time."""
        with self._lock:
            content = copy.deepcopy(self._content)
            yield content
            self._content = content


class FileLedger:
    """A ledger in a JSON file, which only its owner may read and write (mode 0600).

    Each change writes the whole file aside, synchronizes it to the disk and renames it, so that a crash leaves the file
    before or after the change. Processes and threads may share a ledger: a change waits for a lock, on a file beside it
    with ``.lock`` behind its name. The lock holds on one machine, so no ledger may be on a network drive that several
    machines use. The file system and its backups may keep earlier contents. Only POSIX systems have such locks.

    Args:
        path: The file; the first change creates it. Its folder must exist.

    Raises:
        ValueError: if others may read or write the file, or it holds no ledger. The message has no content of it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        _read(path)

    def __repr__(self) -> str:
        return f"FileLedger({str(self._path)!r})"

    @contextlib.contextmanager
    def change(self) -> Iterator[LedgerContent]:
        """Give the content of the file to one device at a time, and write the file.

        Raises:
            OSError: if the file cannot be written.
            ValueError: if the file holds no ledger any more.
        """
        with _locked(self._path.with_name(f"{self._path.name}.lock")):
            content = _read(self._path)
            yield content
            _write(self._path, content)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    import fcntl  # here, because Windows has none, and all else of this package runs there

    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _read(path: Path) -> LedgerContent:
    name = plain(str(path))
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise ValueError(f"{name}: others may read this ledger, or write it; give it the mode 0600")
            written = file.read()
    except FileNotFoundError:
        return LedgerContent()
    form = None
    with contextlib.suppress(ValueError, AttributeError, TypeError, KeyError):
        value = json.loads(written)
        form = value.get("format", 1)
        if form == 1:
            return LedgerContent(b"", _payloads(value))
        if form == _FORMAT:
            spent = [Spending(int(time), float(epsilon)) for time, epsilon in value["spent"]]
            return LedgerContent(bytes.fromhex(value["salt"]), _payloads(value["kept"]), spent)
    # Not raised from the error of JSON, because that holds the content.
    if isinstance(form, int) and form > _FORMAT:
        raise ValueError(f"{name}: a later version of uldp has written this ledger; use that version")
    raise ValueError(
        f"{name}: this is no ledger, or it is damaged; restore it, or remove it and spend all budgets once more"
    )


def _payloads(written: dict[str, str]) -> dict[str, bytes]:
    return {key: bytes.fromhex(payload) for key, payload in written.items()}


def _write(path: Path, content: LedgerContent) -> None:
    value: dict[str, Any] = {
        "format": _FORMAT,
        "salt": content.salt.hex(),
        "kept": {key: payload.hex() for key, payload in content.kept.items()},
        "spent": content.spent,
    }
    aside = path.with_name(f"{path.name}.new")
    aside.unlink(missing_ok=True)  # a crash may have left it
    try:
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            json.dump(value, file)
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
