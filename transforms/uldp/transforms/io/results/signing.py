"""What a job signs: the lines of its journal about results that are written, and the journal of a job that ends."""

import hashlib
import math
import time
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.folders import below
from uldp.transforms.io.local.journal import JOURNAL, FileWritten, PaneWritten, encode_entry

#: The hexadecimal digits of a digest: enough to notice damage, and few for a line of the journal.
_DIGITS = 16


def line_of_pane(pane: PaneHeader) -> bytes:
    """Return the line of a statistic or an estimate."""
    estimator = pane.estimator if isinstance(pane, Estimate) else ""
    counted, apart = pane.accounting, pane.apart and not estimator
    return encode_entry(
        PaneWritten(*pane.key, estimator, counted.existed, pane.pane.revision, apart=apart, missing=counted.missing)
    )


def line_of_file(name: str, content: bytes) -> bytes:
    """Return the line of a file of late or rejected reports, which is written now."""
    digest = hashlib.sha256(content).hexdigest()[:_DIGITS]
    return encode_entry(FileWritten(name, math.ceil(time.time()), digest))


def is_as_written(path: Path, entry: FileWritten) -> bool:
    """Return whether a file has the content that its job has written; OSError if it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS] == entry.digest


def write_journal(out: str, *lines: Iterable[bytes]) -> None:
    """Write the journal of a job that has written all results, of parts in any order, in place of an older one."""
    write_file(below(out, JOURNAL), b"".join(chain(*lines)))
