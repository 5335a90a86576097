"""The key with which a job digests the keys of senders: from a file of the operator, or drawn once and stored."""

import os
import secrets
import stat
from pathlib import Path

from uldp.collector.signals import SENDER_KEY_BYTES
from uldp.pipelines.results.files import ResultsError
from uldp.schemas.regular_files import NO_WAIT, others_may, read_bounded
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.folders import is_remote

#: The file of a key that a job has drawn, beside its private results.
SENDER_KEY = "sender.key"


def read_sender_key(path: Path) -> bytes:
    """Read a key: all bytes of a file; ResultsError if it is unreadable, too short, or others may read it."""
    name = plain(str(path))
    try:
        with open(os.open(path, os.O_RDONLY | NO_WAIT), "rb") as file:
            status = os.fstat(file.fileno())
            key = read_bounded(file, 1 << 20) if stat.S_ISREG(status.st_mode) else b""
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ResultsError(f"{name}: {reason}; check the path of the sender key") from error
    if others_may(status, 0o007):
        raise ResultsError(f"{name}: other users may read this sender key; run chmod 600 {name}")
    if len(key) < SENDER_KEY_BYTES:
        raise ResultsError(
            f"{name}: a sender key is a file of {SENDER_KEY_BYTES} bytes or more, and this holds {len(key)}; make one"
            f" with: head -c {SENDER_KEY_BYTES} /dev/urandom"
        )
    return key


def stored_sender_key(private: str) -> bytes:
    """Return the key in a private directory, drawn the first time; ResultsError if others may read it, or of a URL."""
    if is_remote(private):
        raise ResultsError(
            f"{private}: limits.max_reports_per_sender needs a key, which a job keeps in no directory behind a URL;"
            f" make one with: head -c {SENDER_KEY_BYTES} /dev/urandom > sender.key; chmod 600 sender.key; and add"
            " --sender-key sender.key"
        )
    path = Path(private) / SENDER_KEY
    if not path.exists():
        write_file(str(path), secrets.token_bytes(SENDER_KEY_BYTES), private=True)
    return read_sender_key(path)
