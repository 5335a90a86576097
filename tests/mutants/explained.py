"""Changes that no test can notice, each with the reason: ``explained.txt``.

An entry is a file, the lines before and after the change, and the reason. It names no line number, so other changes of
the file leave it alone::

    collector/uldp/collector/seen.py
    - while slots < count:
    + while slots <= count:
    A table that grows sooner holds the same ids.
"""

from collections.abc import Mapping
from pathlib import Path

from tests.mutants.changes import Change

FILE = Path(__file__).with_name("explained.txt")
#: A file, and its lines before and after a change.
Entry = tuple[str, str, str]


def entry(change: Change) -> Entry:
    """Return what names a change in the list."""
    return change.file, change.before, change.after


def explained(text: str) -> Mapping[Entry, str]:
    """Read the list: the reason of each change.

    Raises:
        ValueError: if an entry is not of four lines or more.
    """
    reasons = {}
    for paragraph in filter(None, text.strip().split("\n\n")):
        file, before, after, *reason = paragraph.splitlines()
        if not (before.startswith("- ") and after.startswith("+ ") and reason):
            raise ValueError(f"{FILE.name}: {file}: an entry is a file, '- before', '+ after', and the reason")
        reasons[file, before[2:], after[2:]] = " ".join(reason)
    return reasons
