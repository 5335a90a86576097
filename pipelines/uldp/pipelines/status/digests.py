"""The key by which senders are named in what an operator sees."""

from pathlib import Path

from uldp.pipelines.jobs.sender_key import SENDER_KEY, read_sender_key
from uldp.pipelines.status.uncounted import Digests


def digests_of(out: Path, private: Path | None) -> Digests:
    """Return digests by a job's key, or one of this process; ResultsError if the key cannot be used."""
    path = (private or out) / SENDER_KEY
    return Digests(read_sender_key(path) if path.exists() else None)
